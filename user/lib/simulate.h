/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a table does with load, and what a change moves, without a daemon: pure functions of their arguments and a seed.
 */
#ifndef SHUNT_SIMULATE_H
#define SHUNT_SIMULATE_H

#include "table/table.h"

#define SIMULATE_KEYS_MAX 100000000u
#define SIMULATE_STEPS_MAX 1000u /* of a ramp */
#define SIMULATE_ZIPF_MAX 10.0

enum simulate_what {
	SIMULATE_NOTHING,
	SIMULATE_ADD,	 /* one joins, with the weight of a random one */
	SIMULATE_REMOVE, /* a random one leaves */
	SIMULATE_FAIL,	 /* `number` random ones leave at once */
	SIMULATE_DOUBLE, /* a random one's weight */
	SIMULATE_HALVE,
	SIMULATE_DRAIN, /* a random one's weight becomes 0 */
	SIMULATE_FLAP,	/* a random one leaves and comes back */
	SIMULATE_RAMP,	/* one joins, its weight growing in `number` equal steps */
	SIMULATE_ROLL,	/* each in turn leaves and comes back */
	SIMULATE_GROW,	/* as many join at once that there are `number` */
};

struct simulate_event {
	enum simulate_what what;
	uint32_t number;
};

/* "add", "remove", "fail:K", "double", "halve", "drain", "flap", "ramp:STEPS", "roll", "grow:N".  -EINVAL, reported. */
int simulate_event_parse(const char *text, struct simulate_event *out, struct report *report);

/* Backends made up for a simulation. */
struct simulate_backends {
	struct table_member *members;
	size_t n;
	char (*names)[32];
};

/*
 * n backends, whose names differ from seed to seed.  weights: NULL (all 1), "1,2,4" (repeated as often as it takes) or
 * "1-100" (at random).  zones: so many, in turn; 0: none.  -EINVAL, reported; -ENOMEM.
 */
int simulate_backends(size_t n, const char *weights, uint32_t zones, uint64_t seed, struct simulate_backends *out,
		      struct report *report);
void simulate_backends_free(struct simulate_backends *backends);

/* Give the backends zones in turn, each with the name of its first backend. */
void simulate_zones(struct table_member *members, size_t n, uint32_t zones);

struct simulate_options {
	const struct table_algorithm *algorithm;
	const struct table_member *members;
	size_t n;
	struct table_params params;
	struct simulate_event event;
	uint64_t seed;
	uint32_t keys;		 /* 0: slots are what is counted */
	double zipf;		 /* exponent; 0: all keys are alike */
	uint32_t replicas;	 /* 0: no preference lists */
	uint64_t (*clock)(void); /* nanoseconds of CPU time, for build times; NULL: they are 0 */
};

/* Shares, each in terms of what the backend's weight promises: 1 is exact. */
struct simulate_load {
	double max_over_mean, min_over_mean;
	double cv; /* coefficient of variation */
};

struct simulate_result {
	struct simulate_load load; /* by slots, or by keys where there are some; before the event */
	/* Sums over the steps of the event, as fractions of all slots or keys. */
	double moved, minimum, excess;
	uint32_t steps;
	bool restored;	   /* the last table is the first one */
	double build_ms;   /* median of this algorithm's builds */
	size_t peak_bytes; /* of one build, its table included */
	/* With zipf: a key's requests, and its bytes, which are its requests times a size of its own. */
	struct simulate_load by_request, by_byte;
	double hot_share;     /* of all requests, that the hottest key has */
	double hot_over_mean; /* what that is in terms of its backend's share: no table can get below it */
	/* With replicas: */
	double under_replicated; /* fraction of slots */
	uint32_t zones_least;	 /* distinct zones of the slot that has the fewest */
	struct simulate_load by_replica;
};

/* 0; errors of the builder, -EINVAL (an event that cannot be), -ENOMEM, reported.  Warnings are the first table's. */
int simulate(const struct simulate_options *options, struct simulate_result *out, struct report *report);

#endif
