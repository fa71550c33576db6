/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Weighted rendezvous scores.  A member's hash for a slot is taken as a uniform number u in (0, 1]; the member with the
 * least -log2(u) / weight comes first, which makes it first with a probability proportional to its weight (the least of
 * exponential variables).  Logarithms are fixed point with SCORE_LOG_BITS of fraction, and are compared by cross
 * multiplication: no rounding depends on the machine.
 */
#ifndef SHUNT_TABLE_SCORE_H
#define SHUNT_TABLE_SCORE_H

#include "internal.h"

#define SCORE_LOG_BITS 41 /* log (below 2^47) x weight (below 2^16) fits in 64 bits */
#define SCORE_TABLE_BITS 8

struct score_log {
	uint64_t log2[1 << SCORE_TABLE_BITS];	    /* of 1 + i / 256, in units of 2^-64 */
	uint64_t reciprocal[1 << SCORE_TABLE_BITS]; /* of the same, in units of 2^-63 */
};

/* A member as scores see it. */
struct score_member {
	uint64_t hash;
	uint32_t weight;
	uint16_t member, rank;
};

/* A member's score for one slot. */
struct score {
	uint64_t log; /* -log2(u) */
	uint64_t hash;
	const struct score_member *who;
};

void score_log_init(struct score_log *table);

/* -log2((hash + 1) / 2^64) in units of 2^-SCORE_LOG_BITS; never grows with hash. */
uint64_t score_log(const struct score_log *table, uint64_t hash);

static inline uint64_t score_slot(uint32_t slot)
{
	return table_mix(slot + 0x9e3779b97f4a7c15ull);
}

static inline uint64_t score_hash(const struct score_member *m, uint64_t slot_hash)
{
	return table_mix(m->hash ^ slot_hash);
}

/* The order of preference; a strict order for members with different ranks. */
static inline bool score_before(const struct score *a, const struct score *b)
{
	uint64_t x = a->log * b->who->weight, y = b->log * a->who->weight;

	if (x != y)
		return x < y;
	if (a->hash != b->hash)
		return a->hash > b->hash;
	return a->who->rank < b->who->rank;
}

/* The members of positive weight, by weight, then name.  Returns how many; out has room for n. */
size_t score_members(const struct table_member *members, size_t n, const uint16_t *order, struct score_member *out);

#endif
