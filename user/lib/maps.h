/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The pinned maps of an instance: opened, or created, by one function, whoever of loader and daemon comes first.
 * Pins: SHUNT_PIN_ROOT/<instance>/v<SHUNT_ABI>/<map>, inner maps in its folder inner/ as "snapshot" and
 * "pool-<index>-<s|m|l>".
 * Creation is staged in a folder beside and renamed, so that a half-made set is never seen.
 */
#ifndef SHUNT_MAPS_H
#define SHUNT_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <shunt/types.h>

#include "report.h"

/* 0: the default when the maps are created, whatever is there when they are opened. */
struct maps_capacities {
	uint32_t services, addresses, pools, backends, flows;
};

/* Descriptors; -1 for the maps of the other role. */
struct maps {
	char instance[SHUNT_INSTANCE_MAX + 1];
	char dir[128]; /* of the pins */
	struct shunt_meta meta;
	int meta_fd, snapshot, tables[SHUNT_NR_TABLE_CLASSES], backends, nexthops, ifaces;
	int reasons, service_stats, backend_stats;
	int ranges[SHUNT_NR_TABLE_CLASSES], pool_stats, flows;
	int fragments, error_clock, outer_sources, endpoints, backend_path;
	int decap_sources, decap_inner, decap_reasons;
	int n_cpus; /* possible CPUs: values of a per-CPU element */
};

/* 0, or -EINVAL and an error naming the rule. */
int maps_check_instance(const char *instance, struct report *report);

/* What makes a command in a message one for the instance: " --instance " and its name, or "" twice for the default. */
const char *maps_instance_option(const char *instance);
const char *maps_instance_name(const char *instance);

/*
 * Mount bpffs at SHUNT_BPFFS if nothing is there and we may, else report the command to run.  -ENODEV where the path is
 * some other file system.  Safe to call by anyone at any time.
 */
int maps_bpffs(struct report *report);

/*
 * Open the instance's maps, creating them if there are none.  Where they exist with a capacity other than one asked
 * for: -ESTALE, and the report names `shunt-loader upgrade` with the option.  On success the caller owns *out:
 * maps_close().
 */
int maps_open(const char *instance, const struct maps_capacities *want, struct maps *out, struct report *report);

/* Open only: -ENOENT (not reported) where there are none. */
int maps_open_existing(const char *instance, struct maps *out, struct report *report);
void maps_close(struct maps *maps);

/*
 * The same for the maps of the decapsulating program, which have no capacities; pinned in
 * SHUNT_PIN_ROOT/<instance>/decap-v<SHUNT_ABI>/.
 */
int maps_open_decap(const char *instance, struct maps *out, struct report *report);
int maps_open_existing_decap(const char *instance, struct maps *out, struct report *report);

/* Whether `maps` are still the ones pinned (meta.serial): false after a rebuild with other capacities. */
bool maps_current(const struct maps *maps);

/*
 * The instance's lock (a file in /run/shunt/): held around every change of what is pinned, by whoever makes it. Returns
 * a descriptor to close, or -errno (-EBUSY after timeout_ms).
 */
int maps_lock(const char *instance, unsigned int timeout_ms);

/*
 * Inner maps.  index: pool index for tables, SHUNT_RANGES_INDEX() for ranges, 0 for the snapshot.  A pool has ranges
 * only while slots of it are in transition.
 */
enum maps_inner {
	MAPS_TABLE_S,
	MAPS_TABLE_M,
	MAPS_TABLE_L,
	MAPS_RANGES_S,
	MAPS_RANGES_M,
	MAPS_RANGES_L,
	MAPS_SNAPSHOT,
	MAPS_NR_INNER
};

size_t maps_inner_size(const struct maps *maps, enum maps_inner kind);

/*
 * Publish a value: new inner map, one write, freeze, pin, one update of the outer map, which returns after an RCU grace
 * period: on return no packet sees the old value.  A crash at any point leaves the old or the new value in force, and
 * maps_inner_read() finds it.  The caller holds maps_lock(), so that no rebuild copies the old value
 * meanwhile.  -ESTALE, and nothing changed, if `maps` are not maps_current().
 */
int maps_inner_publish(const struct maps *maps, enum maps_inner kind, uint32_t index, const void *value);

/* The value in force; -ENOENT if there is none. */
int maps_inner_read(const struct maps *maps, enum maps_inner kind, uint32_t index, void *value);

/* Whether there is a value, without reading it. */
bool maps_inner_exists(const struct maps *maps, enum maps_inner kind, uint32_t index);

/* Take a pool's table (or the snapshot) away; under maps_lock(), -ESTALE as above. */
int maps_inner_remove(const struct maps *maps, enum maps_inner kind, uint32_t index);

/* Sum over the CPUs; and zero, before an index is given to somebody else. */
int maps_stats_read(const struct maps *maps, int fd, uint32_t index, struct shunt_stats *out);
int maps_stats_clear(const struct maps *maps, int fd, uint32_t index);
int maps_reasons_read(int fd, int n_cpus, uint64_t out[SHUNT_NR_REASONS]);

/* Bytes of kernel memory that the maps take, per-CPU counters apart (from fdinfo's memlock). */
int maps_memory(const struct maps *maps, uint64_t *bytes, uint64_t *per_cpu_bytes);

#endif
