/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An instance's set of maps: creating, opening and closing it. */
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

static const struct shunt_meta no_meta;

/* given: the map, or -1: a new one */
static int create_pinned(const char *dir, const struct map_spec *spec, int given, struct report *report)
{
	char path[PIN_PATH_MAX + 32];
	int fd = given < 0 ? maps_create_one(spec) : given, error = 0;

	if (fd < 0)
		return kernel_error(report, fd, "cannot create the map '%s' (%u entries)", spec->name,
				    spec->max_entries);
	snprintf(path, sizeof(path), "%s/%s", dir, spec->name);
	if (bpf_obj_pin(fd, path))
		error = kernel_error(report, -errno, "cannot pin the map at %s", path);
	if (given < 0)
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

int maps_create_set(const char *dir, const struct shunt_meta *meta, int flows, struct report *report)
{
	const struct set_range *range = meta ? &set_lb : &set_decap;
	char inner[PIN_PATH_MAX + 16];
	int error = 0;

	snprintf(inner, sizeof(inner), "%s/" PIN_INNER, dir);
	if (mkdir(dir, 0700) || (meta && mkdir(inner, 0700)))
		error = kernel_error(report, -errno, "cannot make %s", dir);
	for (enum set_map i = range->first; i <= range->last && !error; i++) {
		struct map_spec spec = maps_spec(i, meta ? meta : &no_meta);

		error = create_pinned(dir, &spec, i == SET_FLOWS ? flows : -1, report);
	}
	if (!error && meta) {
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
	struct map_spec spec = maps_spec(SET_META, &no_meta);
	char path[PIN_PATH_MAX + 32];
	struct shunt_meta meta;
	uint32_t zero = 0;
	int fd, error = 0;

	snprintf(path, sizeof(path), "%s/" SHUNT_MAP_META, dir);
	fd = maps_open_one(path, &spec);
	if (fd == -ENOENT)
		return fd;
	if (fd == -EUCLEAN)
		return report_error(report, fd, "%s is not of shunt: detach what uses it, then remove the folder %s",
				    path, dir);
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

static int open_range(const char *dir, const struct set_range *range, struct maps *maps, struct report *report)
{
	char path[PIN_PATH_MAX + 32];

	for (enum set_map i = range->first; i <= range->last; i++) {
		struct map_spec spec = maps_spec(i, &maps->meta);
		int fd;

		snprintf(path, sizeof(path), "%s/%s", dir, spec.name);
		fd = maps_open_one(path, &spec);
		if (fd < 0)
			return kernel_error(report, fd == -ENOENT ? -EUCLEAN : fd,
					    "cannot open the map %s as ABI %u has it (remedy: detach, then remove the "
					    "folder %s)",
					    path, SHUNT_ABI, dir);
		*maps_set_fd(maps, i) = fd;
	}
	return 0;
}

int maps_open_set(const char *dir, const struct set_range *range, struct maps *out, struct report *report)
{
	struct maps maps = {.n_cpus = libbpf_num_possible_cpus()};
	int error = 0;

	for (enum set_map i = 0; i < SET_MAPS; i++)
		*maps_set_fd(&maps, i) = -1;
	if (maps.n_cpus < 0)
		return kernel_error(report, maps.n_cpus, "cannot count the CPUs");
	if (range == &set_lb)
		error = read_meta(dir, &maps.meta, report);
	else if (access(dir, F_OK))
		error = errno == ENOENT ? -ENOENT : kernel_error(report, -errno, "cannot open %s", dir);
	if (error)
		return error;
	snprintf(maps.dir, sizeof(maps.dir), "%s", dir);
	error = open_range(dir, range, &maps, report);
	if (error)
		maps_close(&maps);
	else
		*out = maps;
	return error;
}

/* Build the set in the stage, then rename it.  meta: NULL for the decap set. */
static int create_staged(const char *instance, const char *dir, const struct shunt_meta *meta, struct report *report)
{
	char stage[PIN_PATH_MAX];
	int error;

	maps_set_dir(instance, meta ? &set_lb : &set_decap, PIN_STAGE, stage);
	error = maps_make_instance_dir(instance, report);
	if (error)
		return error;
	error = maps_remove_tree(stage);
	if (error)
		return kernel_error(report, error, "cannot remove the left-over folder %s", stage);
	error = maps_create_set(stage, meta, -1, report);
	if (error)
		return error;
	if (!rename(stage, dir))
		return 0;
	error = -errno;
	maps_remove_tree(stage);
	return kernel_error(report, error, "cannot rename %s to %s", stage, dir);
}

/* Open the set, creating it first if there is none. */
static int open_or_create(const char *instance, const struct shunt_meta *meta, struct maps *out, struct report *report)
{
	const struct set_range *range = meta ? &set_lb : &set_decap;
	char dir[PIN_PATH_MAX];
	int error;

	maps_set_dir(instance, range, "", dir);
	error = maps_open_set(dir, range, out, report);
	if (error == -ENOENT) {
		error = create_staged(instance, dir, meta, report);
		if (!error)
			error = maps_open_set(dir, range, out, report);
	}
	if (!error)
		snprintf(out->instance, sizeof(out->instance), "%s", instance);
	return error;
}

int maps_open_locked(const char *instance, const struct maps_capacities *want, struct maps *out, struct report *report)
{
	struct shunt_meta meta = {.abi = SHUNT_ABI, .serial = 1};
	struct maps maps;
	int error;

	error = maps_check_capacities(want, &meta, report);
	if (!error)
		error = open_or_create(instance, &meta, &maps, report);
	if (error)
		return error;
	error = maps_match_capacities(want, &maps, instance, report);
	if (!error) {
		error = maps_inner_sweep(&maps);
		if (error)
			kernel_error(report, error, "cannot tidy up %s/" PIN_INNER, maps.dir);
	}
	if (error)
		maps_close(&maps);
	else
		*out = maps;
	return error;
}

int maps_open_decap_locked(const char *instance, struct maps *out, struct report *report)
{
	return open_or_create(instance, NULL, out, report);
}

int maps_open(const char *instance, const struct maps_capacities *want, struct maps *out, struct report *report)
{
	int lock = maps_begin(instance, report), error;

	if (lock < 0)
		return lock;
	error = maps_open_locked(instance, want, out, report);
	close(lock);
	return error;
}

int maps_open_decap(const char *instance, struct maps *out, struct report *report)
{
	int lock = maps_begin(instance, report), error;

	if (lock < 0)
		return lock;
	error = maps_open_decap_locked(instance, out, report);
	close(lock);
	return error;
}

static int open_existing(const char *instance, const struct set_range *range, struct maps *out, struct report *report)
{
	char dir[PIN_PATH_MAX];
	int error;

	error = maps_check_instance(instance, report);
	if (error)
		return error;
	maps_set_dir(instance, range, "", dir);
	error = maps_open_set(dir, range, out, report);
	if (!error)
		snprintf(out->instance, sizeof(out->instance), "%s", instance);
	return error;
}

int maps_open_existing(const char *instance, struct maps *out, struct report *report)
{
	return open_existing(instance, &set_lb, out, report);
}

int maps_open_existing_decap(const char *instance, struct maps *out, struct report *report)
{
	return open_existing(instance, &set_decap, out, report);
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
