/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The document's `announce`: how service addresses are announced to the network. */
#include <linux/rtnetlink.h>

#include "document_fields.h"
#include "probe.h"

static bool is_taken(uint32_t table)
{
	return table == RT_TABLE_UNSPEC || (table >= RT_TABLE_DEFAULT && table <= RT_TABLE_LOCAL) ||
	       (table >= PROBE_TABLE_FIRST && table - PROBE_TABLE_FIRST < PROBE_NUMBERS);
}

static bool read_table(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_announce *announce = object;
	uint32_t table;

	if (!read_number(reader, value, "table", UINT32_MAX, "the number of a routing table", &table))
		return false;
	if (is_taken(table)) {
		complain_at(
			reader->report, value,
			"table is %u, which is in use for other things: give announcements a table of their own, such "
			"as 100",
			table);
		return false;
	}
	announce->table = table;
	return true;
}

static bool read_when(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_announce *announce = object;
	unsigned int choice;

	if (!read_choice(reader, value, "when", model_when_names, MODEL_NR_WHENS, &choice))
		return false;
	announce->when = choice;
	return true;
}

static const struct field announce_fields[] = {
	{"table", read_table, "give the number of a routing table that nothing else uses, such as 100"},
	{"when", read_when, NULL},
};

bool read_announce(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model *model = object;

	model->announce.given = true;
	return read_fields(reader, value, "announce", announce_fields,
			   sizeof(announce_fields) / sizeof(*announce_fields), &model->announce);
}
