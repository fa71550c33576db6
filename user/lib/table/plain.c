/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jump consistent hash (Lamping, Veach, 2014), with the division in integers, and a hash modulo the number of members:
 * for comparison in the simulator.  Both number the members of positive weight in order of names and know no weights.
 */
#include <errno.h>

#include "internal.h"

static uint32_t jump(uint64_t key, uint32_t buckets)
{
	uint64_t bucket = 0, next = 0;

	while (next < buckets) {
		bucket = next;
		key = key * 2862933555777941757ull + 1;
		next = ((bucket + 1) << 31) / ((key >> 33) + 1);
	}
	return (uint32_t)bucket;
}

static uint32_t by_jump(uint32_t slot, uint32_t buckets)
{
	return jump(table_mix(slot + 0x9e3779b97f4a7c15ull), buckets);
}

static uint32_t by_modulo(uint32_t slot, uint32_t buckets)
{
	return (uint32_t)(table_mix(slot) % buckets);
}

static int build(const struct table_member *members, size_t n, uint32_t slots,
		 uint32_t (*bucket_of)(uint32_t slot, uint32_t buckets), uint16_t *owner, struct report *report)
{
	uint16_t *order = table_alloc(n, sizeof(*order));
	uint32_t buckets = 0;
	int err = order ? table_check_size(slots, report) : -ENOMEM;

	if (!err)
		err = table_order(members, n, order, report);
	for (size_t rank = 0; !err && rank < n; rank++) {
		if (members[order[rank]].weight)
			order[buckets++] = order[rank];
	}
	for (uint32_t slot = 0; !err && slot < slots; slot++)
		owner[slot] = buckets ? order[bucket_of(slot, buckets)] : TABLE_NONE;
	if (!err)
		table_warn_empty(members, n, owner, slots, report);
	table_free(order);
	return err;
}

int table_build_jump(const struct table_member *members, size_t n, const struct table_params *params,
		     const struct table *previous __attribute__((unused)), uint16_t *owner, struct report *report)
{
	return build(members, n, params->slots, by_jump, owner, report);
}

int table_build_modulo(const struct table_member *members, size_t n, const struct table_params *params,
		       const struct table *previous __attribute__((unused)), uint16_t *owner, struct report *report)
{
	return build(members, n, params->slots, by_modulo, owner, report);
}
