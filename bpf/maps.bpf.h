/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The maps of the load balancer.  User space replaces each by the instance's pinned one, whose sizes come
 * from the instance's capacities: max_entries and the inner snapshot's value_size here are placeholders.
 * The inner maps of the tables have their real size, because the verifier bounds slots by it.
 */
#ifndef SHUNT_MAPS_BPF_H
#define SHUNT_MAPS_BPF_H

#include <shunt/flow.h>
#include "env.bpf.h"

/* clang 14 emits only a forward declaration for a type named by an inner map: give its size instead. */
#define SHUNT_OUTER_MAP(name, size)                                                                                    \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                                              \
		__uint(max_entries, 1);                                                                                \
		__type(key, __u32);                                                                                    \
		__array(                                                                                               \
			values, struct {                                                                               \
				__uint(type, BPF_MAP_TYPE_ARRAY);                                                      \
				__uint(max_entries, 1);                                                                \
				__uint(key_size, sizeof(__u32));                                                       \
				__uint(value_size, size);                                                              \
				__uint(map_flags, BPF_F_RDONLY_PROG);                                                  \
			});                                                                                            \
	} name SEC(".maps")

/* Mapped by the daemon too, which scans and wipes ranges. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct shunt_flow_bucket);
} flows SEC(".maps");

#define SHUNT_ARRAY(name, map_type, value_type)                                                                        \
	struct {                                                                                                       \
		__uint(type, map_type);                                                                                \
		__uint(max_entries, 1);                                                                                \
		__type(key, __u32);                                                                                    \
		__type(value, value_type);                                                                             \
	} name SEC(".maps")

SHUNT_OUTER_MAP(snapshot, SHUNT_SNAPSHOT_SIZE(1, 2));
SHUNT_OUTER_MAP(tables_s, SHUNT_TABLE_SIZE(SHUNT_SLOTS_S));
SHUNT_OUTER_MAP(tables_m, SHUNT_TABLE_SIZE(SHUNT_SLOTS_M));
SHUNT_OUTER_MAP(tables_l, SHUNT_TABLE_SIZE(SHUNT_SLOTS_L));
SHUNT_OUTER_MAP(ranges_s, SHUNT_RANGES_SIZE(SHUNT_SLOTS_S));
SHUNT_OUTER_MAP(ranges_m, SHUNT_RANGES_SIZE(SHUNT_SLOTS_M));
SHUNT_OUTER_MAP(ranges_l, SHUNT_RANGES_SIZE(SHUNT_SLOTS_L));
SHUNT_ARRAY(fragments, BPF_MAP_TYPE_ARRAY, struct shunt_fragment_bucket);
SHUNT_ARRAY(error_clock, BPF_MAP_TYPE_PERCPU_ARRAY, __u64);
SHUNT_ARRAY(backend_path, BPF_MAP_TYPE_ARRAY, struct shunt_path);
SHUNT_ARRAY(pool_stats, BPF_MAP_TYPE_PERCPU_ARRAY, struct shunt_pool_stats);
SHUNT_ARRAY(backends, BPF_MAP_TYPE_ARRAY, struct shunt_backend);
SHUNT_ARRAY(nexthops, BPF_MAP_TYPE_ARRAY, __u64);
SHUNT_ARRAY(ifaces, BPF_MAP_TYPE_ARRAY, struct shunt_iface);
SHUNT_ARRAY(service_stats, BPF_MAP_TYPE_PERCPU_ARRAY, struct shunt_stats);
SHUNT_ARRAY(backend_stats, BPF_MAP_TYPE_PERCPU_ARRAY, struct shunt_stats);
SHUNT_ARRAY(reasons, BPF_MAP_TYPE_PERCPU_ARRAY, struct shunt_reasons);

/* Outer sources of ours, prefixes included, and who is behind an outer destination. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct shunt_prefix);
	__type(value, __u8);
} outer_sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, union shunt_address);
	__type(value, struct shunt_endpoint);
} endpoints SEC(".maps");

#endif
