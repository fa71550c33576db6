/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What path.c measures, and on which balancers. */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include "figures.h"
#include "live.h"

enum balancer_name {
	ONE,
	GUE,
	SERVICES64,
	SERVICES2K,
	POOLS8,
	POOLS64,
	BACKENDS1K,
	BACKENDS4K,
	HIT_10K,
	HIT_1M,
	INSERT_10K,
	INSERT_1M,
	N_BALANCERS
};

extern const struct setup setups[N_BALANCERS];

enum method { LIVE, WRAP, N_METHODS, VERIFY /* as WRAP does, but no time is taken */ };

struct bench_case {
	const char *name;
	enum balancer_name balancer;
	struct path_traffic constants;
	unsigned int cpus; /* 0: one */
	/* In transition. */
	unsigned int recorded;	   /* flows that have entries before, and are hit */
	unsigned int insert_up_to; /* entries that are there when the last new flow came */
	unsigned int insert_alone; /* new flows that come to an empty table, again and again */
	struct traffic traffic;
	double ns[N_METHODS][N_CONTENDERS][ROUNDS_MAX];
};

#define MILLION 1000000

extern struct bench_case cases[];
extern const size_t n_cases;

#endif
