/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the parts of the simulator. */
#ifndef SHUNT_SIMULATE_INTERNAL_H
#define SHUNT_SIMULATE_INTERNAL_H

#include "simulate.h"

/* SplitMix64 (Steele, Lea, Flood, 2014). */
static inline uint64_t simulate_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* 0 .. n-1; the bias of multiply-shift is below n / 2^32. */
static inline uint32_t simulate_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((simulate_random(state) >> 32) * n >> 32);
}

/*
 * The backends of a simulation, those that join included: absent is weight 0, so an index is the same backend in every
 * table.
 */
struct course {
	struct table_member *members;
	size_t n; /* of which the last ones are yet to join */
	size_t n_start;
	uint32_t *weight; /* of each in full: what it comes back with, or grows to */
	uint32_t *turn;	  /* who of the first ones is struck: in random order, of positive weight only */
	size_t n_turns;
	uint32_t steps;
	uint32_t scale; /* by which weights were multiplied, so that parts of them are whole */
	char (*names)[32];
};

int course_start(struct course *course, const struct simulate_options *options, struct report *report);
/* Change the members' weights to what they are after this step of the event. */
void course_step(struct course *course, struct simulate_event event, uint32_t step);
void course_free(struct course *course);

/* What each slot carries. */
struct traffic {
	uint32_t slots;
	double *keys;	  /* NULL: one a slot */
	double *requests; /* NULL without zipf */
	double *bytes;
	double hot_requests, all_requests;
	uint32_t hot_slot;
};

int traffic_make(struct traffic *traffic, const struct simulate_options *options);
void traffic_free(struct traffic *traffic);

/* `each` is per slot, NULL: 1. */
int traffic_load(const struct course *course, const uint16_t *owner, uint32_t slots, const double *each,
		 struct simulate_load *out);
/* amount[i] of member i against its weight's share of the sum. */
void traffic_ratios(const struct course *course, const double *amount, struct simulate_load *out);

#endif
