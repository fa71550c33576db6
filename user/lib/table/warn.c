/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Warnings about tables that are as asked for and yet not what one would want. */
#include <stdio.h>
#include <string.h>

#include "internal.h"

#define OFF_PERCENT 1

struct shares {
	size_t positive, off;
	uint64_t sum;
	uint32_t smallest; /* positive weight */
	const char *worst;
	uint32_t worst_tenths; /* of a percent */
};

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static void look(const struct table_member *members, size_t n, uint32_t slots, const uint32_t *quota,
		 struct shares *shares)
{
	*shares = (struct shares){.smallest = TABLE_WEIGHT_MAX};
	for (size_t i = 0; i < n; i++) {
		shares->sum += members[i].weight;
		shares->positive += members[i].weight > 0;
		if (members[i].weight && members[i].weight < shares->smallest)
			shares->smallest = members[i].weight;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t ideal = (uint64_t)slots * members[i].weight, off = distance(quota[i] * shares->sum, ideal);
		uint32_t tenths;

		if (!members[i].weight || off * 100 <= ideal * OFF_PERCENT)
			continue;
		shares->off++;
		/* Ties go to the first name, so that the sentence does not depend on the order of input. */
		tenths = (uint32_t)(off * 1000 / ideal);
		if (!shares->worst || tenths > shares->worst_tenths ||
		    (tenths == shares->worst_tenths && strcmp(members[i].name, shares->worst) < 0)) {
			shares->worst = members[i].name;
			shares->worst_tenths = tenths;
		}
	}
}

/* A largest-remainder share is less than one slot off, so 100 slots for the smallest weight keep all within 1 %. */
void table_warn_shares(const struct table_member *members, size_t n, uint32_t slots, const uint32_t *quota,
		       struct report *report)
{
	struct shares shares;
	uint32_t below, size = 0;
	char remedy[96];
	uint64_t least;

	look(members, n, slots, quota, &shares);
	if (!shares.off)
		return;
	least = (shares.sum * 100 / OFF_PERCENT + shares.smallest - 1) / shares.smallest;
	if (least <= TABLE_SLOTS_MAX)
		table_nearest_primes((uint32_t)least - 1, &below, &size);
	if (size)
		snprintf(remedy, sizeof(remedy), "a table size of %u keeps all within %d %%", size, OFF_PERCENT);
	else
		snprintf(remedy, sizeof(remedy), "no table size is large enough: use weights that differ less");
	report_add(report, REPORT_WARNING, 0, 0,
		   "%zu of %zu shares are off by more than %d %% (\"%s\" by %u.%u %%) with %u slots: %s", shares.off,
		   shares.positive, OFF_PERCENT, shares.worst, shares.worst_tenths / 10, shares.worst_tenths % 10,
		   slots, remedy);
}

void table_warn_empty(const struct table_member *members, size_t n, const uint16_t *owner, uint32_t slots,
		      struct report *report)
{
	const char *first = NULL;
	size_t empty = 0;
	bool *owns = table_zalloc(n, sizeof(*owns));

	if (!owns)
		return;
	for (uint32_t slot = 0; slot < slots; slot++) {
		if (owner[slot] != TABLE_NONE)
			owns[owner[slot]] = true;
	}
	for (size_t i = 0; i < n; i++) {
		if (owns[i] || !members[i].weight)
			continue;
		empty++;
		if (!first || strcmp(members[i].name, first) < 0)
			first = members[i].name;
	}
	table_free(owns);
	if (empty)
		report_add(report, REPORT_WARNING, 0, 0,
			   "%zu backends with a positive weight own no slot (first \"%s\"): use a larger table, or "
			   "algorithm maglev or minimal, which give each at least one",
			   empty, first);
}
