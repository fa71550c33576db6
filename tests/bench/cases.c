/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cases.h"

const struct setup setups[N_BALANCERS] = {
	[ONE] = {1, 1, 100},
	[GUE] = {1, 1, 100, .encapsulation = "gue"},
	[SERVICES64] = {64, 1, 100},
	[SERVICES2K] = {2000, 1, 100},
	[POOLS8] = {64, 8, 100},
	[POOLS64] = {64, 64, 100},
	[BACKENDS1K] = {1, 1, 1000},
	[BACKENDS4K] = {1, 1, 4000},
	[HIT_10K] = {1, 1, 100, .transition = true},
	[HIT_1M] = {1, 1, 100, .transition = true},
	[INSERT_10K] = {1, 1, 100, .transition = true},
	[INSERT_1M] = {1, 1, 100, .transition = true},
};

#define LEAVING .third = PATH_LEAVING, .third_mask = 0xff
/* Or those that leave, where there is no room for an entry. */
#define COMING .third = 0, .third_mask = 0xff & ~PATH_LEAVING, .syn = 1

struct bench_case cases[] = {
	{.name = "steady.v4.ipip.1", .balancer = ONE, .constants = {.flows = 1}},
	{.name = "steady.v4.ipip.10k", .balancer = ONE, .constants = {.flows = 10000}},
	{.name = "steady.v4.ipip.1m", .balancer = ONE, .constants = {.flows = MILLION}},
	{.name = "steady.v4.ipip.1m.1400", .balancer = ONE, .constants = {.flows = MILLION, .length = 1400}},
	{.name = "steady.v4.ipip.1m.2cpus", .balancer = ONE, .constants = {.flows = MILLION}, .cpus = 2},
	{.name = "steady.v6.ipip.1m", .balancer = ONE, .constants = {.flows = MILLION, .ipv6 = 1}},
	{.name = "steady.v6.ipip.1m.1400", .balancer = ONE, .constants = {.flows = MILLION, .ipv6 = 1, .length = 1400}},
	{.name = "steady.v4.gue.1m", .balancer = GUE, .constants = {.flows = MILLION, .gue = 1}},
	{.name = "steady.v4.gue.1m.1400", .balancer = GUE, .constants = {.flows = MILLION, .gue = 1, .length = 1400}},
	{.name = "syn.v4.ipip.1m", .balancer = ONE, .constants = {.flows = MILLION, .syn = 1}},
	{.name = "services64.v4.ipip.1m", .balancer = SERVICES64, .constants = {.flows = MILLION, .services = 64}},
	{.name = "services2k.v4.ipip.1m", .balancer = SERVICES2K, .constants = {.flows = MILLION, .services = 2000}},
	{.name = "pools8.v4.ipip.1m", .balancer = POOLS8, .constants = {.flows = MILLION, .services = 64}},
	{.name = "pools64.v4.ipip.1m", .balancer = POOLS64, .constants = {.flows = MILLION, .services = 64}},
	{.name = "backends1k.v4.ipip.1m", .balancer = BACKENDS1K, .constants = {.flows = MILLION}},
	{.name = "backends4k.v4.ipip.1m", .balancer = BACKENDS4K, .constants = {.flows = MILLION}},
	{.name = "pass.v4.1m", .balancer = ONE, .constants = {.flows = MILLION, .foreign = 1}},
	{.name = "transit.hit.1", .balancer = HIT_10K, .constants = {.flows = 1, LEAVING}, .recorded = 10000},
	{.name = "transit.hit.1k", .balancer = HIT_10K, .constants = {.flows = 1000, LEAVING}, .recorded = 10000},
	{.name = "transit.hit.10k", .balancer = HIT_10K, .constants = {.flows = 10000, LEAVING}, .recorded = 10000},
	{.name = "transit.hit.1m", .balancer = HIT_1M, .constants = {.flows = MILLION, LEAVING}, .recorded = MILLION},
	{.name = "transit.hit.1m.2cpus",
	 .balancer = HIT_1M,
	 .constants = {.flows = MILLION, LEAVING},
	 .cpus = 2,
	 .recorded = MILLION},
	{.name = "transit.insert.10k", .balancer = INSERT_10K, .constants = {COMING}, .insert_alone = 10000},
	{.name = "transit.insert.1m", .balancer = INSERT_1M, .constants = {COMING}, .insert_up_to = MILLION},
};

const size_t n_cases = sizeof(cases) / sizeof(cases[0]);
