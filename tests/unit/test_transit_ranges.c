/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ranges of buckets never overlap, stay in the arena and are not taken back, whatever changes come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "duration.h"
#include "transit.h"

#define SLOTS 251u

static uint32_t below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((*seed >> 33) % n);
}

/* How many buckets are taken. */
static uint32_t check(const struct transit *transit, uint32_t buckets)
{
	uint8_t *taken = calloc(buckets + 1, 1);
	uint32_t n = 0;

	for (uint32_t i = 0; i < SLOTS; i++) {
		uint32_t range = transit->range[i];

		assert_true(!range || transit->owner[i] & SHUNT_SLOT_TRACKED);
		for (uint32_t j = 0; range && j < 1u << SHUNT_RANGE_LOG2(range); j++) {
			assert_true(SHUNT_RANGE_START(range) + j < buckets);
			assert_int_equal(taken[SHUNT_RANGE_START(range) + j]++, 0);
			n++;
		}
	}
	for (uint32_t j = 0; j < transit_own_buckets(transit); j++, n++) {
		assert_true(transit->own / SHUNT_FLOW_WAYS + j < buckets);
		assert_int_equal(taken[transit->own / SHUNT_FLOW_WAYS + j]++, 0);
	}
	free(taken);
	return n;
}

static void ranges_never_overlap(void **state)
{
	(void)state;
	for (uint64_t history = 1; history <= 60; history++) {
		uint64_t seed = history;
		uint32_t buckets = 1 + below(&seed, history % 2 ? 4000 : 40000), used[SLOTS + TRANSIT_OWN_RANGES];
		struct transit transit;

		assert_int_equal(transit_init(&transit, SLOTS), 0);
		for (int round = 0; round < 60; round++) {
			struct transit_room room;
			size_t n = 0, own;

			for (uint32_t i = 0; i < SLOTS; i++) {
				if (below(&seed, 8))
					continue;
				transit.owner[i] ^= SHUNT_SLOT_TRACKED;
				transit.range[i] = 0;
			}
			for (uint32_t i = 0; i < SLOTS; i++)
				if (transit.range[i])
					used[n++] = transit.range[i];
			if (!transit_tracked(&transit))
				transit.own = 0;
			own = transit_own_ranges(&transit, &used[n]);
			assert_int_equal(transit_room_init(&room, buckets, used, n + own), 0);
			transit_allot(&transit, &room, SLOTS - transit_tracked(&transit));
			assert_int_equal(room.used - own, transit_tracked(&transit) - transit_without(&transit));
			assert_int_equal(room.free, buckets - check(&transit, buckets));
			transit_allot_own(&transit, &room, SLOTS - transit_tracked(&transit));
			assert_int_equal(transit.own % SHUNT_FLOW_WAYS, 0);
			assert_int_equal(room.free, buckets - check(&transit, buckets));
			transit_room_free(&room);
			if (buckets >= 3 * SLOTS && transit_tracked(&transit))
				assert_true(transit.own);
			/* With two buckets for each slot nobody goes without. */
			if (buckets >= 2 * SLOTS)
				assert_int_equal(transit_without(&transit), 0);
		}
		transit_free(&transit);
	}
}

static void durations_survive_their_text(void **state)
{
	char text[DURATION_TEXT_MAX];
	uint64_t seed = 7, back;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		uint64_t value = below(&seed, 2592000) * 1000ull + below(&seed, 1000);

		assert_int_equal(duration_parse(duration_format(value, text), &back), 0);
		assert_int_equal(back, value);
	}
	assert_int_equal(duration_parse("2h10m", &back), 0);
	assert_int_equal(back, 7800000);
	assert_true(duration_parse("10m2h", &back) < 0 && duration_parse("5", &back) < 0 &&
		    duration_parse("", &back) < 0);
}

/* Times around the wrap of the clock, equal ones, none, and one beyond what is kept. */
static void times_survive_publication(void **state)
{
	uint8_t bytes[sizeof(uint32_t) + 3 * SLOTS + 1];
	struct transit transit, back;
	uint64_t seed = 11;

	(void)state;
	assert_int_equal(transit_init(&transit, SLOTS), 0);
	assert_int_equal(transit_init(&back, SLOTS), 0);
	for (uint32_t now = 5000; now; now = now == 5000 ? 0xffffff00 : 0) {
		for (uint32_t i = 0; i < SLOTS; i++)
			transit.t0[i] = below(&seed, 3) ? now - 4000 + below(&seed, 4001) : 0;
		transit.t0[0] = now;
		transit.t0[1] = now - SHUNT_T0_OLDEST;
		transit.t0[2] = now - SHUNT_T0_OLDEST - 77;
		bytes[sizeof(bytes) - 1] = 0x5a;
		transit_pack_t0(&transit, bytes);
		transit_unpack_t0(&back, bytes);
		transit.t0[2] = now - SHUNT_T0_OLDEST;
		assert_memory_equal(back.t0, transit.t0, SLOTS * sizeof(*back.t0));
		assert_int_equal(bytes[sizeof(bytes) - 1], 0x5a);
	}
	memset(transit.t0, 0, SLOTS * sizeof(*transit.t0));
	transit_pack_t0(&transit, bytes);
	transit_unpack_t0(&back, bytes);
	assert_memory_equal(back.t0, transit.t0, SLOTS * sizeof(*back.t0));
	transit_free(&transit);
	transit_free(&back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_never_overlap),
		cmocka_unit_test(times_survive_publication),
		cmocka_unit_test(durations_survive_their_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
