/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>

#include "score.h"

static uint64_t high(uint64_t a, uint64_t b)
{
	return (uint64_t)((unsigned __int128)a * b >> 64);
}

/* Squaring doubles the logarithm: whenever the number reaches 2, the next binary digit is 1. */
static uint64_t digits(uint32_t i)
{
	uint64_t x = ((1ull << SCORE_TABLE_BITS) + i) << (63 - SCORE_TABLE_BITS), log = 0; /* x in units of 2^-63 */

	for (int bit = 63; bit > 63 - SCORE_LOG_BITS - 8; bit--) {
		unsigned __int128 square = (unsigned __int128)x * x >> 63;

		if (square >> 64) {
			log |= 1ull << bit;
			square >>= 1;
		}
		x = (uint64_t)square;
	}
	return log;
}

void score_log_init(struct score_log *table)
{
	for (uint32_t i = 0; i < 1 << SCORE_TABLE_BITS; i++) {
		table->log2[i] = digits(i);
		table->reciprocal[i] =
			(uint64_t)(((unsigned __int128)1 << (63 + SCORE_TABLE_BITS)) / ((1u << SCORE_TABLE_BITS) + i));
	}
}

/*
 * With u = 2^-(zeros + 1) x (1 + f), f = i / 256 + rest: log2(1 + f) is the table's log2(1 + i / 256) and log2(1 + z)
 * for z = rest / (1 + i / 256) < 2^-8, by four terms of its series; the fifth is below 2^-42, and leaves the sum too
 * low, never above 1.  The lowest bits of the fraction are dropped: then two different ones are further apart than all
 * roundings together (some 2^-61), so the logarithm never grows with the hash.
 */
uint64_t score_log(const struct score_log *table, uint64_t hash)
{
	const uint64_t third = UINT64_MAX / 3, log2_e_half = 0xb8aa3b295c17f0bcull; /* log2(e) / 2 x 2^64 */
	uint64_t fraction, z, ln, log2;
	int zeros;

	if (hash == UINT64_MAX)
		return 0;
	zeros = __builtin_clzll(hash + 1);
	fraction = (hash + 1) << zeros << 1 & ~0xffull;
	z = high(fraction << SCORE_TABLE_BITS >> SCORE_TABLE_BITS,
		 table->reciprocal[fraction >> (64 - SCORE_TABLE_BITS)])
	    << 1;
	ln = z - high(z, z / 2 - high(z, high(z, third) - high(z, z / 4)));
	log2 = table->log2[fraction >> (64 - SCORE_TABLE_BITS)] + (high(ln, log2_e_half) << 1);
	return ((uint64_t)(zeros + 1) << SCORE_LOG_BITS) - (log2 >> (64 - SCORE_LOG_BITS));
}

static int by_weight(const void *a, const void *b)
{
	const struct score_member *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
}

size_t score_members(const struct table_member *members, size_t n, const uint16_t *order, struct score_member *out)
{
	size_t count = 0;

	for (size_t rank = 0; rank < n; rank++) {
		const struct table_member *m = &members[order[rank]];

		if (m->weight)
			out[count++] = (struct score_member){table_name_hash(m->name, TABLE_HASH_SCORE), m->weight,
							     order[rank], (uint16_t)rank};
	}
	qsort(out, count, sizeof(*out), by_weight);
	return count;
}
