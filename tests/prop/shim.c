/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What Python cannot know of the library: the layout of a report, and the sizes of the structs that it repeats. */
#include <stdlib.h>

#include "table/table.h"
#include "transit.h"

const size_t shim_sizes[] = {sizeof(struct table_member),    sizeof(struct table_params), sizeof(struct table),
			     sizeof(struct table_algorithm), sizeof(struct table_move),	  sizeof(struct table_diff),
			     sizeof(struct table_replicas)};

const size_t shim_transit_sizes[] = {sizeof(struct transit), sizeof(struct transit_times), sizeof(struct transit_done),
				     sizeof(struct transit_scan)};
const size_t shim_backend_size = sizeof(struct shunt_backend);

struct report *shim_report_new(void);
size_t shim_report_count(const struct report *report);
int shim_report_level(const struct report *report, size_t entry);
const char *shim_report_text(const struct report *report, size_t entry);
void shim_report_free(struct report *report);

void shim_transit_allot(struct transit *transit, uint32_t buckets, uint32_t *used, size_t n, uint64_t others);

/* Of an arena of which used[n] and the slots' own words are taken; used has room for those, too. */
void shim_transit_allot(struct transit *transit, uint32_t buckets, uint32_t *used, size_t n, uint64_t others)
{
	struct transit_room room;

	n += transit_own_ranges(transit, &used[n]);
	if (transit_room_init(&room, buckets, used, n))
		abort();
	transit_allot(transit, &room, others);
	transit_allot_own(transit, &room, others);
	transit_room_free(&room);
}

struct report *shim_report_new(void)
{
	return calloc(1, sizeof(struct report));
}

size_t shim_report_count(const struct report *report)
{
	return report->count;
}

int shim_report_level(const struct report *report, size_t entry)
{
	return report->entries[entry].level;
}

const char *shim_report_text(const struct report *report, size_t entry)
{
	return report->entries[entry].text;
}

void shim_report_free(struct report *report)
{
	report_free(report);
	free(report);
}
