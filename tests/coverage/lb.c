/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The load balancer's program as C. */
#include "../../bpf/shunt.bpf.c"
#include "shadow.h"

#ifndef SHADOW
#define SHADOW shadow_lb
#endif

#define MAP(name)                                                                                                      \
	{                                                                                                              \
		&name, #name                                                                                           \
	}

static const struct shadow_map maps[] = {
	MAP(snapshot),
	MAP(tables_s),
	MAP(tables_m),
	MAP(tables_l),
	MAP(ranges_s),
	MAP(ranges_m),
	MAP(ranges_l),
	MAP(fragments),
	MAP(error_clock),
	MAP(backend_path),
	MAP(pool_stats),
	MAP(backends),
	MAP(nexthops),
	MAP(ifaces),
	MAP(service_stats),
	MAP(backend_stats),
	MAP(reasons),
	MAP(outer_sources),
	MAP(endpoints),
	MAP(flows),
	MAP(scratch_answer),
	MAP(scratch_transit),
#if SHUNT_EXPLAIN
	MAP(scratch_trace),
#endif
	{},
};

const struct shadow_program SHADOW = {maps, (void *)&config, sizeof(config), shunt};
