/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the flow table beside a running packet path: words change under our eyes, and are replaced only as read. */
#include <string.h>

#include "transit.h"

#define HALF_MS 60000u
#define NS_PER_MS 1000000ull

bool transit_valid(uint64_t word, const struct shunt_backend *backends, uint32_t n_backends)
{
	uint32_t id = SHUNT_FLOW_BACKEND(word);
	uint64_t state;

	if (!word || id >= n_backends)
		return false;
	state = __atomic_load_n(&backends[id].state, __ATOMIC_RELAXED);
	return state & SHUNT_BACKEND_PRESENT && SHUNT_BACKEND_GENERATION(state) == SHUNT_FLOW_GENERATION(word);
}

uint32_t transit_age(uint64_t word, uint64_t limits, uint64_t clock)
{
	uint32_t shift = SHUNT_FLOW_IS_UDP(word) ? SHUNT_LIMITS_UDP_SHIFT(limits) : SHUNT_LIMITS_TCP_SHIFT(limits);

	return shunt_flow_age((uint32_t)(clock >> shift), word);
}

/* A handshake takes a minute at most; and no entry is kept for longer than a live one. */
static uint32_t half_limit(uint64_t limits)
{
	uint64_t units = ((HALF_MS * NS_PER_MS) >> SHUNT_LIMITS_TCP_SHIFT(limits)) + 1;

	if (units < 2)
		units = 2;
	return units < SHUNT_LIMITS_SETTLE(limits) ? (uint32_t)units : SHUNT_LIMITS_SETTLE(limits);
}

static uint32_t limit_of(uint64_t word, uint64_t limits)
{
	if (SHUNT_FLOW_IS_UDP(word))
		return SHUNT_LIMITS_WINDOW(limits);
	switch (SHUNT_FLOW_STATUS(word)) {
	case SHUNT_FLOW_HALF:
		return half_limit(limits);
	case SHUNT_FLOW_CLOSING:
		return SHUNT_LIMITS_CLOSING(limits);
	default:
		return SHUNT_LIMITS_SETTLE(limits);
	}
}

/* The same entry under the id that its server has now. */
static uint64_t renamed(const struct transit_scan *scan, uint64_t word)
{
	uint16_t id = SHUNT_FLOW_BACKEND(word) & SHUNT_BACKEND_NONE, now = scan->called ? scan->called[id] : id;
	uint64_t state;

	if (now == id || now >= scan->n_backends || !transit_valid(word, scan->backends, scan->n_backends))
		return word;
	state = __atomic_load_n(&scan->backends[now].state, __ATOMIC_RELAXED);
	return shunt_flow_word(SHUNT_FLOW_FP(word), SHUNT_FLOW_ISN(word), SHUNT_FLOW_SEEN(word),
			       SHUNT_FLOW_STATUS(word), SHUNT_BACKEND_GENERATION(state), now);
}

/* What the word should be: itself, renamed, or 0 to be deleted. */
static uint64_t judge(const struct transit_scan *scan, uint64_t word)
{
	word = renamed(scan, word);
	if ((scan->cut && scan->cut[SHUNT_FLOW_BACKEND(word) & SHUNT_BACKEND_NONE]) ||
	    !transit_valid(word, scan->backends, scan->n_backends) ||
	    transit_age(word, scan->limits, scan->clock) > limit_of(word, scan->limits))
		return 0;
	return word;
}

/*
 * Judges until it is settled: a packet may replace the word meanwhile.  The word that stays, or 0.  empty: what stands
 * for an entry that is deleted.
 */
static uint64_t scan_word(const struct transit_scan *scan, uint64_t *place, uint64_t empty)
{
	uint64_t word = __atomic_load_n(place, __ATOMIC_RELAXED);

	while (SHUNT_FLOW_FP(word)) {
		uint64_t now = judge(scan, word);

		if (now == word || __atomic_compare_exchange_n(place, &word, now ? now : empty, false, __ATOMIC_ACQ_REL,
							       __ATOMIC_RELAXED))
			return now;
	}
	return 0;
}

/* Whether a valid entry is left that disagrees with the owner. */
static bool scan_place(const struct transit_scan *scan, __u64 *place, uint64_t empty, uint32_t owner)
{
	uint64_t word = scan_word(scan, (uint64_t *)place, empty);

	if (!word)
		return false;
	if (scan->of_backend)
		scan->of_backend[SHUNT_FLOW_BACKEND(word)]++;
	if (scan->of_status)
		scan->of_status[SHUNT_FLOW_STATUS(word)]++;
	return SHUNT_FLOW_BACKEND(word) != owner;
}

static bool scan_bucket(const struct transit_scan *scan, struct shunt_flow_bucket *bucket, uint32_t owner)
{
	bool dirty = false;

	for (int i = 0; i < SHUNT_FLOW_WAYS; i++)
		dirty |= scan_place(scan, &bucket->word[i], 0, owner);
	return dirty;
}

void transit_scan(const struct transit *transit, const struct transit_scan *scan, bool *dirty)
{
	for (uint32_t i = 0; i < transit->slots; i++) {
		uint32_t range = transit->range[i], owner = transit->owner[i] & SHUNT_BACKEND_NONE;
		bool found = false;

		if (dirty)
			dirty[i] = false;
		if (!range)
			continue;
		if (transit->own)
			found = scan_place(scan, shunt_flow_place(scan->buckets, transit->own + i), SHUNT_FLOW_USED,
					   owner);
		for (uint32_t at = 0; at < 1u << SHUNT_RANGE_LOG2(range); at++)
			found |= scan_bucket(scan, &scan->buckets[SHUNT_RANGE_START(range) + at], owner);
		if (dirty)
			dirty[i] = found;
	}
}
