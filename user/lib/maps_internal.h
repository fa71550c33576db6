/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of maps*.c and the loader's upgrade share; not for other users of the maps. */
#ifndef SHUNT_MAPS_INTERNAL_H
#define SHUNT_MAPS_INTERNAL_H

#include <stddef.h>

#include "maps.h"

#define PIN_PATH_MAX 192 /* bytes of any path that shunt makes in bpffs */

/*
 * Folders of an instance.  bpffs allows no dot in a name.  The stage is where a set is built; whatever a crash leaves
 * there is never in force and is removed by the next who builds.
 */
#define PIN_DECAP "decap-"
#define PIN_STAGE "-stage"
#define PIN_INNER "inner"
#define PIN_INNER_NEW "-new"

enum set_map {
	SET_META,
	SET_SNAPSHOT,
	SET_TABLES_S,
	SET_TABLES_M,
	SET_TABLES_L,
	SET_BACKENDS,
	SET_NEXTHOPS,
	SET_IFACES,
	SET_REASONS,
	SET_SERVICE_STATS,
	SET_BACKEND_STATS,
	SET_RANGES_S,
	SET_RANGES_M,
	SET_RANGES_L,
	SET_POOL_STATS,
	SET_FLOWS,
	SET_FRAGMENTS,
	SET_ERROR_CLOCK,
	SET_OUTER_SOURCES,
	SET_ENDPOINTS,
	SET_BACKEND_PATH,
	SET_DECAP_SOURCES,
	SET_DECAP_INNER,
	SET_DECAP_REASONS,
	SET_MAPS
};

/* The maps of a role: first .. last of enum set_map. */
struct set_range {
	enum set_map first, last;
};

extern const struct set_range set_lb, set_decap;

/* What a map is created with and must look like when opened. */
struct map_spec {
	const char *name;
	uint32_t type, key_size, value_size, max_entries, flags;
	uint32_t inner_size; /* value size of the inner maps; 0: no map of maps */
};

struct map_spec maps_spec(enum set_map map, const struct shunt_meta *meta);
int *maps_set_fd(struct maps *maps, enum set_map map);

/* New descriptor, or -errno. */
int maps_create_one(const struct map_spec *spec);
int maps_create_inner(uint32_t size);
/* The map pinned at `path` if it is as `spec` says; -EUCLEAN if it is another. */
int maps_open_one(const char *path, const struct map_spec *spec);
/* Add what the kernel says that the map takes to *bytes. */
int maps_fd_memory(int fd, uint64_t *bytes);
/* The kernel's id of a map; 0 if it cannot be told. */
uint32_t maps_id(int fd);

/*
 * Create all maps of a set, pinned in `dir`, which must not exist.  meta: capacities, written too; NULL for the decap
 * set.  flows: a map for as many flows, which the set takes as its own, or -1.  Nothing is left behind on failure.
 */
int maps_create_set(const char *dir, const struct shunt_meta *meta, int flows, struct report *report);
/* Open all maps of the set pinned in `dir` into *out (all but out->instance).  -ENOENT (not reported) if none. */
int maps_open_set(const char *dir, const struct set_range *range, struct maps *out, struct report *report);

/* "<root>/<instance>/v<abi><suffix>", or decap-v<abi> */
void maps_set_dir(const char *instance, const struct set_range *range, const char *suffix,
		  char out[static PIN_PATH_MAX]);
/* The folder of an instance, made if missing.  -errno, reported. */
int maps_make_instance_dir(const char *instance, struct report *report);
/* Remove a folder of pins and what is in it; 0 also if there is none. */
int maps_remove_tree(const char *dir);

/* Kind and index of what a pin's name says; false: it is none of an inner map. */
bool maps_inner_parse(const char *name, enum maps_inner *kind, uint32_t *index);
/* Remove the pins of inner maps that are not in force, which a crash left.  The caller holds the lock. */
int maps_inner_sweep(const struct maps *maps);

/* Capacities within the limits of abi.h; 0 becomes the default.  Errors name option and range. */
int maps_check_capacities(const struct maps_capacities *want, struct shunt_meta *out, struct report *report);
/* Whether each capacity asked for is the one in force: 0, or -ESTALE and an error naming the upgrade command. */
int maps_match_capacities(const struct maps_capacities *want, const struct maps *maps, const char *instance,
			  struct report *report);
/* Put the capacities asked for in place of those in *meta. */
void maps_merge_capacities(const struct maps_capacities *want, struct shunt_meta *meta);
/*
 * What comes before every change of an instance: its name is right, bpffs is there, nobody else is at it.  The lock's
 * descriptor, to be closed, or -errno, reported.
 */
int maps_begin(const char *instance, struct report *report);
/* maps_open() for a caller that holds the lock. */
int maps_open_locked(const char *instance, const struct maps_capacities *want, struct maps *out, struct report *report);
int maps_open_decap_locked(const char *instance, struct maps *out, struct report *report);

#endif
