/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ranges of buckets for slots in transition, from one arena: what is free follows from what is in use. */
#include <stdlib.h>

#include "transit.h"

static int by_start(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Walks the gaps between used ranges, which are sorted. */
struct gaps {
	const uint32_t *used;
	size_t n, at;
	uint32_t buckets; /* of the arena */
	uint32_t from, to;
	uint32_t next; /* behind the used range that ends the gap */
};

static bool next_gap(struct gaps *gaps)
{
	do {
		uint32_t range = gaps->at < gaps->n ? gaps->used[gaps->at] : 0;

		if (gaps->at > gaps->n)
			return false;
		gaps->at++;
		gaps->from = gaps->next;
		gaps->to = range ? SHUNT_RANGE_START(range) : gaps->buckets;
		if (range && gaps->to + (1u << SHUNT_RANGE_LOG2(range)) > gaps->next)
			gaps->next = gaps->to + (1u << SHUNT_RANGE_LOG2(range));
	} while (gaps->to <= gaps->from);
	return true;
}

static uint32_t count_free(struct gaps gaps)
{
	uint32_t free = 0;

	while (next_gap(&gaps))
		free += gaps.to - gaps.from;
	return free;
}

static bool lacks(const struct transit *transit, uint32_t slot)
{
	return transit->owner[slot] & SHUNT_SLOT_TRACKED && !transit->range[slot];
}

uint32_t transit_without(const struct transit *transit)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < transit->slots; i++)
		n += lacks(transit, i);
	return n;
}

/* The logarithm of the size of `wanted` new ranges. */
static uint32_t size_for(uint64_t wanted, uint64_t free, uint64_t others)
{
	uint64_t share = 4 * free / (wanted + others), room = free / 4 * 3;
	uint32_t log2 = 0;

	if (free > others && free - others < room)
		room = free - others;
	while (log2 < SHUNT_RANGE_LOG2_MAX && 2ull << log2 <= share && wanted << (log2 + 1) <= room)
		log2++;
	return log2;
}

/*
 * Fills the gaps between used ranges with ranges of 2^log2 buckets.  rest: of each gap, only what is left beside
 * multiples of rest + 1 buckets.
 */
static uint32_t fill_gaps(struct transit *transit, struct gaps gaps, uint32_t log2, uint32_t rest, uint32_t wanted)
{
	uint32_t slot = 0;

	while (wanted && next_gap(&gaps)) {
		gaps.from = gaps.to - ((gaps.to - gaps.from) & rest);
		for (; wanted && gaps.to - gaps.from >= 1u << log2; gaps.from += 1u << log2, wanted--) {
			while (!lacks(transit, slot))
				slot++;
			transit->range[slot] = SHUNT_RANGE(gaps.from, log2);
		}
	}
	return wanted;
}

void transit_allot(struct transit *transit, uint32_t buckets, uint32_t *used, size_t n, uint64_t others)
{
	struct gaps gaps = {.used = used, .n = n, .buckets = buckets};
	uint32_t wanted = transit_without(transit), rest = UINT32_MAX, log2;

	if (!wanted)
		return;
	if (n)
		qsort(used, n, sizeof(*used), by_start);
	log2 = size_for(wanted, count_free(gaps), others);
	wanted = fill_gaps(transit, gaps, log2, rest, wanted);
	/* What is free may be in pieces that are smaller. */
	while (wanted && log2) {
		rest = (1u << log2) - 1;
		wanted = fill_gaps(transit, gaps, --log2, rest, wanted);
	}
}
