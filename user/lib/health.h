/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Health of backends, from the results of their checks: a state machine without clock, sockets or memory of its own.
 * Times are milliseconds of any clock that never goes back; the caller passes the present one.
 */
#ifndef SHUNT_HEALTH_H
#define SHUNT_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum health_state { HEALTH_UNKNOWN, HEALTH_UP, HEALTH_DOWN, HEALTH_NR_STATES };

extern const char *const health_state_names[HEALTH_NR_STATES];

struct health_params {
	uint32_t interval;	/* from the start of a check to that of the next; at least 1 */
	uint32_t rise;		/* checks passed in a row that bring up; at least 1 */
	uint32_t fall;		/* checks failed in a row that bring down; at least 1 */
	uint32_t hold_down;	/* the first time that a flapping backend is kept down, doubled each time; 0: never */
	uint32_t hold_down_max; /* up so long, a backend flaps no more; also the longest hold-down */
};

struct health {
	enum health_state state;
	uint64_t since;		 /* the state began */
	uint32_t passed, failed; /* in a row: one of them is 0 */
	bool flaps;		 /* came up lately */
	uint32_t hold;		 /* the last hold-down, 0: none */
	uint64_t held_until;
	uint64_t n_passed, n_failed, n_changes; /* ever */
};

/* A backend whose checks begin, in a state that is known otherwise or HEALTH_UNKNOWN. */
void health_begin(struct health *health, enum health_state state, uint64_t now);

/* A check ended.  Whether the state is another one now. */
bool health_take(struct health *health, const struct health_params *params, bool passed, uint64_t now);

/* Down, although it has passed as many checks as bring up: until held_until. */
bool health_held(const struct health *health, const struct health_params *params, uint64_t now);

/*
 * When to start the next check.  Jitter shortens an interval by up to a tenth, never lengthens it: so `fall` checks
 * start within fall * interval.  seed tells backends apart; n is a number of the check.
 */
uint64_t health_next(const struct health_params *params, uint64_t started, uint64_t seed, uint64_t n);

/* When to start the first: anywhere in the interval. */
uint64_t health_first(const struct health_params *params, uint64_t now, uint64_t seed);

/* ---- a pool ---- */

/* What becomes of the pool when every backend is down. */
enum health_last { HEALTH_FAIL_OPEN, HEALTH_REFUSE, HEALTH_NR_LASTS };

struct health_policy {
	uint32_t panic;	 /* more than so many per cent down: nobody is taken out any more; 100: never */
	uint32_t window; /* who went down so long before that, or longer, stays out */
	enum health_last last;
};

struct health_member {
	enum health_state state;
	uint64_t since; /* the state began */
	bool waits;	/* serves only when it has passed its checks: of HEALTH_UNKNOWN */
};

struct health_pool {
	bool frozen;
	uint64_t frozen_since;
};

/*
 * Who of the members (those that would have slots) is taken out, beside them in out[].  Everybody serves where the rule
 * would leave nobody, unless the policy is to refuse.
 */
void health_judge(struct health_pool *pool, const struct health_policy *policy, const struct health_member *members,
		  size_t n, uint64_t now, bool *out);

#endif
