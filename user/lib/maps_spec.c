/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each map looks like: the one place for types, sizes and flags. */
#include <errno.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include <shunt/flow.h>

#include "decap.h"
#include "maps_internal.h"

const struct set_range set_lb = {SET_META, SET_BACKEND_PATH};
const struct set_range set_decap = {SET_DECAP_SOURCES, SET_DECAP_REASONS};

#define TABLE_SIZE(class) SHUNT_TABLE_SIZE(SHUNT_SLOTS_##class)
#define RANGES_SIZE(class) SHUNT_RANGES_SIZE(SHUNT_SLOTS_##class)

struct map_spec maps_spec(enum set_map map, const struct shunt_meta *meta)
{
	const uint32_t array = BPF_MAP_TYPE_ARRAY, outer = BPF_MAP_TYPE_ARRAY_OF_MAPS, cpu = BPF_MAP_TYPE_PERCPU_ARRAY;
	const uint32_t nexthops = meta->backends < SHUNT_IFACES ? SHUNT_IFACES : meta->backends;
	const uint32_t ranges = SHUNT_RANGES_INDEX(meta->pools, 0), buckets = SHUNT_FLOW_BUCKETS(meta->flows);
	const uint32_t snapshot = SHUNT_SNAPSHOT_SIZE(meta->addresses, meta->services);
	const uint32_t trie = BPF_MAP_TYPE_LPM_TRIE, prefix = sizeof(struct shunt_prefix), list = DECAP_PREFIXES_MAX;
	/*
	 * Backends and next hops are mapped by who writes them: an update by system call copies bytes as the machine
	 * likes, a store into the mapping is one aligned word.  A mapping also begins on a page, so that a backend is
	 * one cache line.
	 */
	const struct map_spec specs[SET_MAPS] = {
		[SET_META] = {SHUNT_MAP_META, array, 4, sizeof(struct shunt_meta), 1},
		[SET_SNAPSHOT] = {SHUNT_MAP_SNAPSHOT, outer, 4, 4, 1, .inner_size = snapshot},
		[SET_TABLES_S] = {SHUNT_MAP_TABLES_S, outer, 4, 4, meta->pools, .inner_size = TABLE_SIZE(S)},
		[SET_TABLES_M] = {SHUNT_MAP_TABLES_M, outer, 4, 4, meta->pools, .inner_size = TABLE_SIZE(M)},
		[SET_TABLES_L] = {SHUNT_MAP_TABLES_L, outer, 4, 4, meta->pools, .inner_size = TABLE_SIZE(L)},
		[SET_BACKENDS] = {SHUNT_MAP_BACKENDS, array, 4, sizeof(struct shunt_backend), meta->backends,
				  BPF_F_MMAPABLE},
		[SET_NEXTHOPS] = {SHUNT_MAP_NEXTHOPS, array, 4, sizeof(__u64), nexthops, BPF_F_MMAPABLE},
		[SET_IFACES] = {SHUNT_MAP_IFACES, array, 4, sizeof(struct shunt_iface), SHUNT_IFACES},
		[SET_REASONS] = {SHUNT_MAP_REASONS, cpu, 4, sizeof(struct shunt_reasons), 1},
		[SET_SERVICE_STATS] = {SHUNT_MAP_SERVICE_STATS, cpu, 4, sizeof(struct shunt_stats), meta->services},
		[SET_BACKEND_STATS] = {SHUNT_MAP_BACKEND_STATS, cpu, 4, sizeof(struct shunt_stats), meta->backends},
		[SET_RANGES_S] = {SHUNT_MAP_RANGES_S, outer, 4, 4, ranges, .inner_size = RANGES_SIZE(S)},
		[SET_RANGES_M] = {SHUNT_MAP_RANGES_M, outer, 4, 4, ranges, .inner_size = RANGES_SIZE(M)},
		[SET_RANGES_L] = {SHUNT_MAP_RANGES_L, outer, 4, 4, ranges, .inner_size = RANGES_SIZE(L)},
		[SET_POOL_STATS] = {SHUNT_MAP_POOL_STATS, cpu, 4, sizeof(struct shunt_pool_stats), meta->pools},
		[SET_FLOWS] = {SHUNT_MAP_FLOWS, array, 4, sizeof(struct shunt_flow_bucket), buckets, BPF_F_MMAPABLE},
		[SET_FRAGMENTS] = {SHUNT_MAP_FRAGMENTS, array, 4, sizeof(struct shunt_fragment_bucket),
				   SHUNT_FRAGMENT_BUCKETS},
		[SET_ERROR_CLOCK] = {SHUNT_MAP_ERROR_CLOCK, cpu, 4, sizeof(__u64), 1},
		[SET_OUTER_SOURCES] = {SHUNT_MAP_OUTER_SOURCES, trie, prefix, 1, meta->backends, BPF_F_NO_PREALLOC},
		[SET_ENDPOINTS] = {SHUNT_MAP_ENDPOINTS, BPF_MAP_TYPE_HASH, sizeof(union shunt_address),
				   sizeof(struct shunt_endpoint), meta->backends, BPF_F_NO_PREALLOC},
		[SET_BACKEND_PATH] = {SHUNT_MAP_BACKEND_PATH, array, 4, sizeof(struct shunt_path), meta->backends,
				      BPF_F_MMAPABLE},
		[SET_DECAP_SOURCES] = {SHUNT_MAP_DECAP_SOURCES, trie, prefix, 1, list, BPF_F_NO_PREALLOC},
		[SET_DECAP_INNER] = {SHUNT_MAP_DECAP_INNER, trie, prefix, 1, list, BPF_F_NO_PREALLOC},
		[SET_DECAP_REASONS] = {SHUNT_MAP_DECAP_REASONS, cpu, 4, sizeof(struct shunt_reasons), 1},
	};

	return specs[map];
}

int *maps_set_fd(struct maps *maps, enum set_map map)
{
	int *const fds[SET_MAPS] = {
		[SET_META] = &maps->meta_fd,
		[SET_SNAPSHOT] = &maps->snapshot,
		[SET_TABLES_S] = &maps->tables[SHUNT_TABLE_S],
		[SET_TABLES_M] = &maps->tables[SHUNT_TABLE_M],
		[SET_TABLES_L] = &maps->tables[SHUNT_TABLE_L],
		[SET_BACKENDS] = &maps->backends,
		[SET_NEXTHOPS] = &maps->nexthops,
		[SET_IFACES] = &maps->ifaces,
		[SET_REASONS] = &maps->reasons,
		[SET_SERVICE_STATS] = &maps->service_stats,
		[SET_BACKEND_STATS] = &maps->backend_stats,
		[SET_RANGES_S] = &maps->ranges[SHUNT_TABLE_S],
		[SET_RANGES_M] = &maps->ranges[SHUNT_TABLE_M],
		[SET_RANGES_L] = &maps->ranges[SHUNT_TABLE_L],
		[SET_POOL_STATS] = &maps->pool_stats,
		[SET_FLOWS] = &maps->flows,
		[SET_FRAGMENTS] = &maps->fragments,
		[SET_ERROR_CLOCK] = &maps->error_clock,
		[SET_OUTER_SOURCES] = &maps->outer_sources,
		[SET_ENDPOINTS] = &maps->endpoints,
		[SET_BACKEND_PATH] = &maps->backend_path,
		[SET_DECAP_SOURCES] = &maps->decap_sources,
		[SET_DECAP_INNER] = &maps->decap_inner,
		[SET_DECAP_REASONS] = &maps->decap_reasons,
	};

	return fds[map];
}

/* The kernel wants every inner map to be exactly like the outer map's template, flags included: made here alone. */
int maps_create_inner(uint32_t size)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_RDONLY_PROG);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "shunt_inner", 4, size, 1, &opts);
}

int maps_create_one(const struct map_spec *spec)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = spec->flags);
	int template = -1, fd;

	if (spec->inner_size) {
		template = maps_create_inner(spec->inner_size);
		if (template <0)
			return template;
		opts.inner_map_fd = (__u32) template;
	}
	fd = bpf_map_create(spec->type, spec->name, spec->key_size, spec->value_size, spec->max_entries, &opts);
	if (template >= 0)
		close(template);
	return fd;
}

uint32_t maps_id(int fd)
{
	struct bpf_map_info info = {};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

int maps_open_one(const char *path, const struct map_spec *spec)
{
	struct bpf_map_info info = {};
	__u32 size = sizeof(info);
	int fd = bpf_obj_get(path);

	if (fd < 0)
		return -errno;
	if (!bpf_obj_get_info_by_fd(fd, &info, &size) && info.type == spec->type && info.key_size == spec->key_size &&
	    info.value_size == spec->value_size && info.max_entries == spec->max_entries)
		return fd;
	close(fd);
	return -EUCLEAN;
}
