/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one exit: counts the reason and turns it into an XDP action. */
#ifndef SHUNT_COUNT_BPF_H
#define SHUNT_COUNT_BPF_H

#include "env.bpf.h"

/* Per CPU, so plain additions: nothing interrupts XDP that could run it again on the same CPU. */
static __always_inline void count_reason(void *map, __u32 reason)
{
	__u32 zero = 0;
	struct shunt_reasons *counters = SHUNT_EXPLAIN ? NULL : bpf_map_lookup_elem(map, &zero);

	if (counters && reason < SHUNT_REASONS_ROOM)
		counters->packets[reason]++;
}

static __always_inline void count_stats(void *map, __u32 index, __u64 bytes)
{
	struct shunt_stats *stats = SHUNT_EXPLAIN ? NULL : bpf_map_lookup_elem(map, &index);

	if (!stats)
		return;
	stats->packets++;
	stats->bytes += bytes;
}

/* A packet that was redirected is XDP_REDIRECT, whatever its class says. */
#define SHUNT_ACTION_PASS XDP_PASS
#define SHUNT_ACTION_FORWARD XDP_TX
#define SHUNT_ACTION_ANSWER XDP_TX
#define SHUNT_ACTION_DROP XDP_DROP
#define SHUNT_ACTION_BUG XDP_DROP

static __always_inline int reason_action(enum shunt_reason reason)
{
	switch (reason) {
#define SHUNT_COUNTER(id, name, class, sentence)                                                                       \
	case SHUNT_##id:                                                                                               \
		return SHUNT_ACTION_##class;
#include <shunt/counters.def>
#undef SHUNT_COUNTER
	default:
		return XDP_DROP;
	}
}

#endif
