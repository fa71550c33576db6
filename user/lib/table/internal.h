/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the builders share. */
#ifndef SHUNT_TABLE_INTERNAL_H
#define SHUNT_TABLE_INTERNAL_H

#include "table.h"

/* ---- memory: like reallocarray(NULL, ...), calloc() and free(), counted for table_memory_peak() ---- */

void *table_alloc(size_t count, size_t size);
void *table_zalloc(size_t count, size_t size);
void table_free(void *memory);

/* ---- names ---- */

/* Seeds of XXH64(name): one for each use, so that a name's numbers are independent of each other. */
enum table_hash_use { TABLE_HASH_OFFSET, TABLE_HASH_SKIP, TABLE_HASH_SCORE, TABLE_HASH_TOKEN };

uint64_t table_name_hash(const char *name, enum table_hash_use use);

/* A bijection of 64 bits in which every output bit depends on every input bit (the finalizer of MurmurHash3). */
static inline uint64_t table_mix(uint64_t x)
{
	x = (x ^ x >> 33) * 0xff51afd7ed558ccdull;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ull;
	return x ^ x >> 33;
}

/* order[rank] is the index of the member whose name has that rank in strcmp() order.  Names may repeat. */
void table_sort(const struct table_member *members, size_t n, uint16_t *order);

/* table_sort() of members that are fit for a table: -EINVAL (a name twice or missing, a weight), -E2BIG (too many). */
int table_order(const struct table_member *members, size_t n, uint16_t *order, struct report *report);

/* to_of[i]: the index among `to` of the member that has the name of from[i], or TABLE_NONE.  -E2BIG, -ENOMEM. */
int table_match(const struct table_member *from, size_t n_from, const struct table_member *to, size_t n_to,
		uint16_t *to_of);

/* ---- sizes and shares ---- */

/* -EINVAL, with the nearest primes, unless the size is allowed. */
int table_check_size(uint32_t slots, struct report *report);

/* The members in order of names, and their quotas; both of n entries, freed by table_plan_free(). */
struct table_plan {
	uint16_t *order;
	uint32_t *quota;
	size_t positive; /* members with a positive weight */
};

/* Checks size and members as table_quotas() does, but warns of nothing. */
int table_plan(const struct table_member *members, size_t n, uint32_t slots, struct table_plan *plan,
	       struct report *report);
void table_plan_free(struct table_plan *plan);

void table_warn_shares(const struct table_member *members, size_t n, uint32_t slots, const uint32_t *quota,
		       struct report *report);
void table_warn_empty(const struct table_member *members, size_t n, const uint16_t *owner, uint32_t slots,
		      struct report *report);

/*
 * Caps for params->balance_percent: quota x percent / 100, rounded down, but where that is above 100 at least one slot
 * above the quota.
 * *cap is NULL where no balance is asked for; table_free() it.
 */
int table_caps(const struct table_member *members, size_t n, const struct table_params *params, uint32_t **cap,
	       struct report *report);

/* ---- algorithms ---- */

/* The maglev table of a plan. */
int table_fill_maglev(const struct table_member *members, size_t n, const struct table_plan *plan, uint32_t slots,
		      uint16_t *owner);

table_build_fn table_build_maglev, table_build_minimal, table_build_rendezvous, table_build_ring, table_build_jump,
	table_build_modulo;

#endif
