/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Values that are replaced whole: inner maps, written once, frozen, and pinned each, because a daemon without
 * CAP_SYS_ADMIN cannot open them by the id that the outer map tells.
 *
 * The new one is pinned as "<name>-new" before the outer map names it and renamed to "<name>" afterwards; to take a
 * value away, its pin is renamed to "<name>-new" first and removed last.  So "<name>" alone is in force; only while
 * there is a "<name>-new", because somebody is at it or crashed there, the outer map has to be asked which of the two
 * it is.  That matters: up to kernel 6.7 every look-up in an outer map waits for an RCU grace period, used or not.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "maps_internal.h"

struct inner_paths {
	char current[PIN_PATH_MAX + 16];
	char next[PIN_PATH_MAX + 16];
};

static struct inner_paths paths_of(const struct maps *maps, enum maps_inner kind, uint32_t index)
{
	struct inner_paths paths;
	char name[32] = "snapshot";

	if (kind != MAPS_SNAPSHOT)
		snprintf(name, sizeof(name), "%s-%u-%c", kind < MAPS_RANGES_S ? "pool" : "ranges", index,
			 "smlsml"[kind]);
	snprintf(paths.current, sizeof(paths.current), "%s/" PIN_INNER "/%s", maps->dir, name);
	snprintf(paths.next, sizeof(paths.next), "%s/" PIN_INNER "/%s" PIN_INNER_NEW, maps->dir, name);
	return paths;
}

static int outer_fd(const struct maps *maps, enum maps_inner kind)
{
	if (kind == MAPS_SNAPSHOT)
		return maps->snapshot;
	return kind < MAPS_RANGES_S ? maps->tables[kind] : maps->ranges[kind - MAPS_RANGES_S];
}

size_t maps_inner_size(const struct maps *maps, enum maps_inner kind)
{
	static const uint32_t slots[SHUNT_NR_TABLE_CLASSES] = {SHUNT_SLOTS_S, SHUNT_SLOTS_M, SHUNT_SLOTS_L};

	if (kind == MAPS_SNAPSHOT)
		return SHUNT_SNAPSHOT_SIZE(maps->meta.addresses, maps->meta.services);
	return kind < MAPS_RANGES_S ? SHUNT_TABLE_SIZE(slots[kind]) : SHUNT_RANGES_SIZE(slots[kind - MAPS_RANGES_S]);
}

/* The id of the inner map in force: 0 if there is none. */
static int id_in_force(const struct maps *maps, enum maps_inner kind, uint32_t index, uint32_t *id)
{
	if (!bpf_map_lookup_elem(outer_fd(maps, kind), &index, id))
		return 0;
	*id = 0;
	return errno == ENOENT ? 0 : -errno;
}

/* Descriptor of the pin if it holds the map `id`, else -ENOENT. */
static int open_if(const char *path, uint32_t id)
{
	int fd = bpf_obj_get(path);

	if (fd < 0)
		return -errno;
	if (maps_id(fd) == id)
		return fd;
	close(fd);
	return -ENOENT;
}

/* Finish or forget what an interrupted change left. */
static int settle(const struct maps *maps, enum maps_inner kind, uint32_t index, const struct inner_paths *paths)
{
	uint32_t id;
	int error, fd;

	if (access(paths->next, F_OK))
		return errno == ENOENT ? 0 : -errno;
	error = id_in_force(maps, kind, index, &id);
	if (error)
		return error;
	fd = open_if(paths->next, id);
	if (fd >= 0) {
		close(fd);
		return rename(paths->next, paths->current) ? -errno : 0;
	}
	if (unlink(paths->next))
		return -errno;
	if (!id) /* it was being taken away, or never came into force */
		return unlink(paths->current) && errno != ENOENT ? -errno : 0;
	return 0;
}

static int make_inner(size_t size, const void *value, const char *pin)
{
	uint32_t zero = 0;
	int fd = maps_create_inner(size), error = 0;

	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(fd, &zero, value, BPF_ANY) || bpf_map_freeze(fd) || bpf_obj_pin(fd, pin)) {
		error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

int maps_inner_publish(const struct maps *maps, enum maps_inner kind, uint32_t index, const void *value)
{
	struct inner_paths paths = paths_of(maps, kind, index);
	int error, fd;

	if (!maps_current(maps))
		return -ESTALE;
	error = settle(maps, kind, index, &paths);
	if (error)
		return error;
	fd = make_inner(maps_inner_size(maps, kind), value, paths.next);
	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(outer_fd(maps, kind), &index, &fd, BPF_ANY)) {
		error = -errno;
		unlink(paths.next);
	} else if (rename(paths.next, paths.current)) {
		error = -errno;
	}
	close(fd);
	return error;
}

/* The map in force, -ENOENT if there is none.  Its pin may be renamed or replaced meanwhile by who publishes. */
static int open_in_force(const struct maps *maps, enum maps_inner kind, uint32_t index)
{
	struct inner_paths paths = paths_of(maps, kind, index);
	uint32_t id;
	int error, fd = -ENOENT;

	for (int attempt = 0; attempt < 8 && fd == -ENOENT; attempt++) {
		if (access(paths.next, F_OK)) {
			fd = bpf_obj_get(paths.current);
			return fd < 0 ? -errno : fd;
		}
		error = id_in_force(maps, kind, index, &id);
		if (error || !id)
			return error ? error : -ENOENT;
		fd = open_if(paths.current, id);
		if (fd == -ENOENT)
			fd = open_if(paths.next, id);
	}
	return fd == -ENOENT ? -EAGAIN : fd;
}

bool maps_inner_exists(const struct maps *maps, enum maps_inner kind, uint32_t index)
{
	struct inner_paths paths = paths_of(maps, kind, index);

	return !access(paths.current, F_OK);
}

int maps_inner_read(const struct maps *maps, enum maps_inner kind, uint32_t index, void *value)
{
	uint32_t zero = 0;
	int error = 0, fd = open_in_force(maps, kind, index);

	if (fd < 0)
		return fd;
	if (bpf_map_lookup_elem(fd, &zero, value))
		error = -errno;
	close(fd);
	return error;
}

int maps_inner_remove(const struct maps *maps, enum maps_inner kind, uint32_t index)
{
	struct inner_paths paths = paths_of(maps, kind, index);
	int error;

	if (!maps_current(maps))
		return -ESTALE;
	error = settle(maps, kind, index, &paths);
	if (error)
		return error;
	if (rename(paths.current, paths.next))
		return errno == ENOENT ? 0 : -errno;
	if (bpf_map_delete_elem(outer_fd(maps, kind), &index) && errno != ENOENT)
		return -errno;
	return unlink(paths.next) ? -errno : 0;
}

bool maps_inner_parse(const char *name, enum maps_inner *kind, uint32_t *index)
{
	const char *class;
	char letter;

	*index = 0;
	*kind = MAPS_SNAPSHOT;
	if (!strncmp(name, "snapshot", 8))
		return true;
	if (sscanf(name, "pool-%u-%c", index, &letter) == 2)
		*kind = MAPS_TABLE_S;
	else if (sscanf(name, "ranges-%u-%c", index, &letter) == 2)
		*kind = MAPS_RANGES_S;
	else
		return false;
	class = strchr("sml", letter);
	if (!class)
		return false;
	*kind += (enum maps_inner)(class - "sml");
	return true;
}

int maps_inner_sweep(const struct maps *maps)
{
	char path[PIN_PATH_MAX];
	struct dirent *entry;
	enum maps_inner kind;
	uint32_t index;
	int error = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/" PIN_INNER, maps->dir);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!error && (entry = readdir(dir))) {
		struct inner_paths paths;

		if (!strstr(entry->d_name, PIN_INNER_NEW) || !maps_inner_parse(entry->d_name, &kind, &index))
			continue;
		paths = paths_of(maps, kind, index);
		error = settle(maps, kind, index, &paths);
	}
	closedir(dir);
	return error;
}
