/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is published beside a table: ranges of buckets from one arena, where what is free follows from what is in use;
 * t0. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transit.h"

static int by_start(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

int transit_room_init(struct transit_room *out, uint32_t buckets, uint32_t *used, size_t n)
{
	struct transit_room room = {.gaps = calloc(n + 1, sizeof(*room.gaps)), .used = n};
	uint32_t next = 0;

	if (!room.gaps)
		return -ENOMEM;
	if (n)
		qsort(used, n, sizeof(*used), by_start);
	for (size_t i = 0; i <= n; i++) {
		uint32_t start = i < n ? SHUNT_RANGE_START(used[i]) : buckets;
		uint32_t end = i < n ? start + (1u << SHUNT_RANGE_LOG2(used[i])) : buckets;

		if (start > next) {
			room.gaps[room.n++] = (struct transit_gap){next, start};
			room.free += start - next;
		}
		if (end > next)
			next = end;
	}
	*out = room;
	return 0;
}

void transit_room_free(struct transit_room *room)
{
	free(room->gaps);
	*room = (struct transit_room){};
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

/* Fills gaps with ranges of 2^log2 buckets, from the first that slots lack on.  How many are still wanted. */
static uint32_t fill_gaps(struct transit *transit, struct transit_room *room, uint32_t log2, uint32_t wanted)
{
	const uint32_t size = 1u << log2;
	uint32_t slot = 0;

	for (size_t i = 0; i < room->n && wanted; i++) {
		struct transit_gap *gap = &room->gaps[i];

		for (; wanted && gap->to - gap->from >= size; gap->from += size, wanted--) {
			while (!lacks(transit, slot))
				slot++;
			transit->range[slot] = SHUNT_RANGE(gap->from, log2);
			room->free -= size;
			room->used++;
		}
	}
	return wanted;
}

void transit_allot(struct transit *transit, struct transit_room *room, uint64_t others)
{
	uint32_t wanted = transit_without(transit), log2;

	if (!wanted)
		return;
	log2 = size_for(wanted, room->free, others);
	wanted = fill_gaps(transit, room, log2, wanted);
	/* What is free may be in pieces that are smaller. */
	while (wanted && log2)
		wanted = fill_gaps(transit, room, --log2, wanted);
}

uint32_t transit_own_buckets(const struct transit *transit)
{
	return transit->own && transit_tracked(transit) ? SHUNT_FLOW_OWN_BUCKETS(transit->slots) : 0;
}

/* From the end of a gap, so that what is left of it still takes large ranges; never bucket 0, whose word 0 means none.
 */
void transit_allot_own(struct transit *transit, struct transit_room *room, uint64_t others)
{
	const uint32_t n = SHUNT_FLOW_OWN_BUCKETS(transit->slots);

	if (transit->own || transit_without(transit) || room->free < n + others)
		return;
	for (size_t i = 0; i < room->n; i++) {
		struct transit_gap *gap = &room->gaps[i];

		if (gap->to - gap->from < n || gap->to == n)
			continue;
		gap->to -= n;
		room->free -= n;
		transit->own = gap->to * SHUNT_FLOW_WAYS;
		return;
	}
}

size_t transit_own_ranges(const struct transit *transit, uint32_t *out)
{
	uint32_t start = transit->own / SHUNT_FLOW_WAYS, left = transit_own_buckets(transit);
	size_t n = 0;

	for (uint32_t log2 = SHUNT_RANGE_LOG2_MAX; left; log2 -= log2 > 0) {
		for (; left >> log2; start += 1u << log2, left -= 1u << log2)
			out[n++] = SHUNT_RANGE(start, log2);
	}
	return n;
}

static uint32_t newest_t0(const struct transit *transit)
{
	uint32_t newest = 0;

	for (uint32_t i = 0; i < transit->slots; i++) {
		uint32_t t0 = transit->t0[i];

		if (t0 && (!newest || (int32_t)(t0 - newest) > 0))
			newest = t0;
	}
	return newest;
}

void transit_pack_t0(const struct transit *transit, void *out)
{
	const uint32_t newest = newest_t0(transit);
	uint8_t *older = (uint8_t *)out + sizeof(newest);

	memcpy(out, &newest, sizeof(newest));
	for (uint32_t i = 0; i < transit->slots; i++, older += 3) {
		uint32_t by = SHUNT_T0_NONE;

		if (transit->t0[i]) {
			by = newest - transit->t0[i];
			by = by < SHUNT_T0_OLDEST ? by : SHUNT_T0_OLDEST;
		}
		older[0] = (uint8_t)by;
		older[1] = (uint8_t)(by >> 8);
		older[2] = (uint8_t)(by >> 16);
	}
}

void transit_unpack_t0(struct transit *transit, const void *in)
{
	const uint8_t *older = (const uint8_t *)in + sizeof(uint32_t);
	uint32_t newest;

	memcpy(&newest, in, sizeof(newest));
	for (uint32_t i = 0; i < transit->slots; i++, older += 3) {
		uint32_t by = older[0] | (uint32_t)older[1] << 8 | (uint32_t)older[2] << 16;

		transit->t0[i] = by == SHUNT_T0_NONE ? 0 : newest - by;
	}
}
