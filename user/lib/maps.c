/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An instance's set of maps: what each looks like; creating, opening and closing them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel.h"
#include "maps_internal.h"

#define LOCK_TIMEOUT_MS 10000

struct map_spec maps_spec(enum set_map map, const struct shunt_meta *meta)
{
	const uint32_t array = BPF_MAP_TYPE_ARRAY, outer = BPF_MAP_TYPE_ARRAY_OF_MAPS, cpu = BPF_MAP_TYPE_PERCPU_ARRAY;
	const uint32_t nexthops = meta->backends < SHUNT_IFACES ? SHUNT_IFACES : meta->backends;
	const uint32_t snapshot = SHUNT_SNAPSHOT_SIZE(meta->addresses, meta->services);
	/*
	 * Backends and next hops are mapped by who writes them: an update by system call copies bytes as the machine
	 * likes, a store into the mapping is one aligned word.  A mapping also begins on a page, so that a backend is
	 * one cache line.
	 */
	const struct map_spec specs[SET_MAPS] = {
		[SET_META] = {SHUNT_MAP_META, array, 4, sizeof(struct shunt_meta), 1, 0, 0},
		[SET_SNAPSHOT] = {SHUNT_MAP_SNAPSHOT, outer, 4, 4, 1, 0, snapshot},
		[SET_TABLES_S] = {SHUNT_MAP_TABLES_S, outer, 4, 4, meta->pools, 0, SHUNT_TABLE_SIZE(SHUNT_SLOTS_S)},
		[SET_TABLES_M] = {SHUNT_MAP_TABLES_M, outer, 4, 4, meta->pools, 0, SHUNT_TABLE_SIZE(SHUNT_SLOTS_M)},
		[SET_TABLES_L] = {SHUNT_MAP_TABLES_L, outer, 4, 4, meta->pools, 0, SHUNT_TABLE_SIZE(SHUNT_SLOTS_L)},
		[SET_BACKENDS] = {SHUNT_MAP_BACKENDS, array, 4, sizeof(struct shunt_backend), meta->backends,
				  BPF_F_MMAPABLE, 0},
		[SET_NEXTHOPS] = {SHUNT_MAP_NEXTHOPS, array, 4, sizeof(__u64), nexthops, BPF_F_MMAPABLE, 0},
		[SET_IFACES] = {SHUNT_MAP_IFACES, array, 4, sizeof(struct shunt_iface), SHUNT_IFACES, 0, 0},
		[SET_REASONS] = {SHUNT_MAP_REASONS, cpu, 4, sizeof(struct shunt_reasons), 1, 0, 0},
		[SET_SERVICE_STATS] = {SHUNT_MAP_SERVICE_STATS, cpu, 4, sizeof(struct shunt_stats), meta->services, 0,
				       0},
		[SET_BACKEND_STATS] = {SHUNT_MAP_BACKEND_STATS, cpu, 4, sizeof(struct shunt_stats), meta->backends, 0,
				       0},
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

static int create_pinned(const char *dir, const struct map_spec *spec, struct report *report)
{
	char path[PIN_PATH_MAX + 32];
	int fd = maps_create_one(spec), error = 0;

	if (fd < 0)
		return kernel_error(report, fd, "cannot create the map '%s' (%u entries)", spec->name,
				    spec->max_entries);
	snprintf(path, sizeof(path), "%s/%s", dir, spec->name);
	if (bpf_obj_pin(fd, path))
		error = kernel_error(report, -errno, "cannot pin the map at %s", path);
	close(fd);
	return error;
}

static int write_meta(const char *dir, const struct shunt_meta *meta)
{
	char path[PIN_PATH_MAX + 32];
	uint32_t zero = 0;
	int fd, error = 0;

	snprintf(path, sizeof(path), "%s/" SHUNT_MAP_META, dir);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -errno;
	if (bpf_map_update_elem(fd, &zero, meta, BPF_ANY))
		error = -errno;
	close(fd);
	return error;
}

int maps_create_set(const char *dir, const struct shunt_meta *meta, struct report *report)
{
	char inner[PIN_PATH_MAX + 16];
	int error = 0;

	snprintf(inner, sizeof(inner), "%s/" PIN_INNER, dir);
	if (mkdir(dir, 0700) || mkdir(inner, 0700))
		error = kernel_error(report, -errno, "cannot make %s", dir);
	for (enum set_map i = 0; i < SET_MAPS && !error; i++) {
		struct map_spec spec = maps_spec(i, meta);

		error = create_pinned(dir, &spec, report);
	}
	if (!error) {
		error = write_meta(dir, meta);
		if (error)
			kernel_error(report, error, "cannot write the capacities into %s/" SHUNT_MAP_META, dir);
	}
	if (error)
		maps_remove_tree(dir);
	return error;
}

static int read_meta(const char *dir, struct shunt_meta *out, struct report *report)
{
	const struct shunt_meta any = {};
	struct map_spec spec = maps_spec(SET_META, &any);
	char path[PIN_PATH_MAX + 32];
	struct shunt_meta meta;
	uint32_t zero = 0;
	int fd, error = 0;

	snprintf(path, sizeof(path), "%s/" SHUNT_MAP_META, dir);
	fd = maps_open_one(path, &spec);
	if (fd == -ENOENT)
		return fd;
	if (fd < 0)
		return kernel_error(report, fd, "cannot open the map %s", path);
	if (bpf_map_lookup_elem(fd, &zero, &meta))
		error = -errno;
	close(fd);
	if (error)
		return kernel_error(report, error, "cannot read the map %s", path);
	if (meta.abi != SHUNT_ABI)
		return report_error(report, -EUCLEAN,
				    "%s is of ABI %u where this program expects %u: detach, then remove the folder %s",
				    path, meta.abi, SHUNT_ABI, dir);
	*out = meta;
	return 0;
}

int maps_open_set(const char *dir, struct maps *out, struct report *report)
{
	struct maps maps = {};
	char path[PIN_PATH_MAX + 32];
	int error;

	error = read_meta(dir, &maps.meta, report);
	if (error)
		return error;
	for (enum set_map i = 0; i < SET_MAPS; i++)
		*maps_set_fd(&maps, i) = -1;
	maps.n_cpus = libbpf_num_possible_cpus();
	if (maps.n_cpus < 0)
		return kernel_error(report, maps.n_cpus, "cannot count the CPUs");
	snprintf(maps.dir, sizeof(maps.dir), "%s", dir);
	for (enum set_map i = 0; i < SET_MAPS; i++) {
		struct map_spec spec = maps_spec(i, &maps.meta);
		int fd;

		snprintf(path, sizeof(path), "%s/%s", dir, spec.name);
		fd = maps_open_one(path, &spec);
		if (fd < 0) {
			maps_close(&maps);
			return kernel_error(report, fd == -ENOENT ? -EUCLEAN : fd,
					    "cannot open the map %s as ABI %u has it (remedy: detach, then remove the "
					    "folder %s)",
					    path, SHUNT_ABI, dir);
		}
		*maps_set_fd(&maps, i) = fd;
	}
	*out = maps;
	return 0;
}

static int create_staged(const char *instance, const char *dir, const struct shunt_meta *meta, struct report *report)
{
	char stage[PIN_PATH_MAX];
	int error;

	maps_set_dir(instance, PIN_STAGE, stage);
	error = maps_make_instance_dir(instance, report);
	if (error)
		return error;
	error = maps_remove_tree(stage);
	if (error)
		return kernel_error(report, error, "cannot remove the left-over folder %s", stage);
	error = maps_create_set(stage, meta, report);
	if (error)
		return error;
	if (!rename(stage, dir))
		return 0;
	error = -errno;
	maps_remove_tree(stage);
	return kernel_error(report, error, "cannot rename %s to %s", stage, dir);
}

int maps_open_locked(const char *instance, const struct maps_capacities *want, struct maps *out, struct report *report)
{
	struct shunt_meta meta = {.abi = SHUNT_ABI, .serial = 1};
	char dir[PIN_PATH_MAX];
	struct maps maps;
	int error;

	error = maps_check_capacities(want, &meta, report);
	if (error)
		return error;
	maps_set_dir(instance, "", dir);
	error = maps_open_set(dir, &maps, report);
	if (error == -ENOENT) {
		error = create_staged(instance, dir, &meta, report);
		if (!error)
			error = maps_open_set(dir, &maps, report);
	} else if (!error) {
		error = maps_match_capacities(want, &maps, instance, report);
		if (!error)
			error = maps_inner_sweep(&maps);
		if (error)
			maps_close(&maps);
	}
	if (error)
		return error;
	snprintf(maps.instance, sizeof(maps.instance), "%s", instance);
	*out = maps;
	return 0;
}

int maps_open(const char *instance, const struct maps_capacities *want, struct maps *out, struct report *report)
{
	int lock, error;

	error = maps_check_instance(instance, report);
	if (!error)
		error = maps_bpffs(report);
	if (error)
		return error;
	lock = maps_lock(instance, LOCK_TIMEOUT_MS);
	if (lock < 0)
		return kernel_error(report, lock, "cannot lock the instance '%s' (/run/shunt/%s.lock)", instance,
				    instance);
	error = maps_open_locked(instance, want, out, report);
	close(lock);
	return error;
}

int maps_open_existing(const char *instance, struct maps *out, struct report *report)
{
	char dir[PIN_PATH_MAX];
	int error;

	error = maps_check_instance(instance, report);
	if (error)
		return error;
	maps_set_dir(instance, "", dir);
	error = maps_open_set(dir, out, report);
	if (!error)
		snprintf(out->instance, sizeof(out->instance), "%s", instance);
	return error;
}

void maps_close(struct maps *maps)
{
	for (enum set_map i = 0; i < SET_MAPS; i++) {
		int *fd = maps_set_fd(maps, i);

		if (*fd >= 0)
			close(*fd);
		*fd = -1;
	}
}

bool maps_current(const struct maps *maps)
{
	char path[PIN_PATH_MAX];
	bool current;
	int fd;

	snprintf(path, sizeof(path), "%s/" SHUNT_MAP_META, maps->dir);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return false;
	current = maps_id(fd) == maps_id(maps->meta_fd);
	close(fd);
	return current;
}
