/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From one set of maps into another of other capacities. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "kernel.h"
#include "maps_internal.h"
#include "upgrade.h"

static int too_small(struct report *report, const char *option, uint32_t least)
{
	return report_error(report, -ENOSPC, "--%s is too small for what is in use: at least %u", option, least);
}

int upgrade_snapshot(const void *from, const struct snapshot_capacity *old, void *to,
		     const struct snapshot_capacity *new, uint32_t n_pools, struct report *report)
{
	uint32_t pools = 0, services;
	struct snapshot_content content;
	int error = snapshot_read(from, old, &content);

	if (error)
		return report_error(report, error, "the published snapshot is damaged: restart shuntd, then try again");
	services = (uint32_t)content.n_services;
	for (size_t i = 0; i < content.n_services; i++) {
		if (content.services[i].pool >= pools)
			pools = content.services[i].pool + 1u;
		if (content.services[i].counter >= services)
			services = content.services[i].counter + 1;
	}
	if (pools > n_pools)
		error = too_small(report, "pools", pools);
	else if (services > new->services)
		error = too_small(report, "services", services);
	else if (content.n_addresses > new->addresses)
		error = too_small(report, "addresses", (uint32_t)content.n_addresses);
	else
		error = snapshot_build(&content, new, to, report);
	snapshot_free(&content);
	return error;
}

static int copy_snapshot(const struct maps *from, const struct maps *to, struct report *report)
{
	const struct snapshot_capacity old = {from->meta.addresses, from->meta.services};
	const struct snapshot_capacity new = {to->meta.addresses, to->meta.services};
	void *value = calloc(1, snapshot_size(&old)), *rebuilt = calloc(1, snapshot_size(&new));
	int error = -ENOMEM;

	if (value && rebuilt) {
		error = maps_inner_read(from, MAPS_SNAPSHOT, 0, value);
		if (error == -ENOENT) {
			error = 0;
		} else if (error) {
			kernel_error(report, error, "cannot read the published snapshot");
		} else {
			error = upgrade_snapshot(value, &old, rebuilt, &new, to->meta.pools, report);
			if (!error)
				error = maps_inner_publish(to, MAPS_SNAPSHOT, 0, rebuilt);
		}
	}
	free(value);
	free(rebuilt);
	return error;
}

/* Tables have the same size whatever the capacities: copied as they are. */
static int copy_tables(const struct maps *from, const struct maps *to, enum maps_inner kind, struct report *report)
{
	void *value = malloc(maps_inner_size(from, kind));
	int error = value ? 0 : -ENOMEM;

	for (uint32_t pool = 0; pool < from->meta.pools && !error; pool++) {
		error = maps_inner_read(from, kind, pool, value);
		if (error == -ENOENT)
			error = 0;
		else if (!error && pool >= to->meta.pools)
			error = too_small(report, "pools", pool + 1);
		else if (!error)
			error = maps_inner_publish(to, kind, pool, value);
		if (error && error != -ENOSPC)
			kernel_error(report, error, "cannot copy the table of pool %u", pool);
	}
	free(value);
	return error;
}

static bool is_zero(const char *bytes, size_t size)
{
	return !*bytes && !memcmp(bytes, bytes + 1, size - 1);
}

/* Two arrays and a piece of what goes from one to the other. */
struct transfer {
	int from, to;
	uint32_t old_entries, new_entries;
	size_t size; /* bytes of a value, of all CPUs */
	uint32_t *keys;
	char *values;	    /* of PIECE elements */
	const char *option; /* the one that sizes the array; NULL: what has no place is dropped */
};

#define PIECE 1024u /* elements read by one system call */

static int write_piece(const struct transfer *t, uint32_t first, uint32_t count, struct report *report)
{
	for (uint32_t i = 0; i < count; i++) {
		const char *value = t->values + i * t->size;
		uint32_t index = first + i;

		if (is_zero(value, t->size))
			continue;
		if (index < t->new_entries) {
			if (bpf_map_update_elem(t->to, &index, value, BPF_ANY))
				return -errno;
		} else if (t->option) {
			return too_small(report, t->option, index + 1);
		}
	}
	return 0;
}

static int transfer_all(const struct transfer *t, struct report *report)
{
	uint32_t next = 0, count;
	int error = 0;

	for (uint32_t first = 0; first < t->old_entries && !error; first += count) {
		count = t->old_entries - first < PIECE ? t->old_entries - first : PIECE;
		if (bpf_map_lookup_batch(t->from, first ? &next : NULL, &next, t->keys, t->values, &count, NULL) &&
		    errno != ENOENT) /* which says that it was the last piece */
			return -errno;
		error = count ? write_piece(t, first, count, report) : -EIO;
	}
	return error;
}

/* Only what is not zero is written: the new map is new.  Counters lose nothing by it, they never go back to zero. */
static int copy_array(const struct maps *from, const struct maps *to, enum set_map map, const char *option,
		      struct report *report)
{
	const struct map_spec old = maps_spec(map, &from->meta), new = maps_spec(map, &to->meta);
	struct maps from_fds = *from, to_fds = *to;
	struct transfer t = {
		.from = *maps_set_fd(&from_fds, map),
		.to = *maps_set_fd(&to_fds, map),
		.old_entries = old.max_entries,
		.new_entries = new.max_entries,
		.size = (size_t)old.value_size *(old.type == BPF_MAP_TYPE_PERCPU_ARRAY ? (size_t)from->n_cpus : 1),
		.option = option,
	};
	int error = -ENOMEM;

	t.keys = calloc(PIECE, sizeof(*t.keys));
	t.values = calloc(PIECE, t.size);
	if (t.keys && t.values)
		error = transfer_all(&t, report);
	if (error && error != -ENOSPC)
		kernel_error(report, error, "cannot copy the map '%s'", old.name);
	free(t.keys);
	free(t.values);
	return error;
}

/* What comes of the backends, and no more than they; kept whole, because no packet writes it. */
static int copy_keys(const struct maps *from, const struct maps *to, enum set_map map, struct report *report)
{
	const struct map_spec spec = maps_spec(map, &from->meta);
	struct maps from_fds = *from, to_fds = *to;
	int source = *maps_set_fd(&from_fds, map), target = *maps_set_fd(&to_fds, map), error = 0;
	char keys[2][sizeof(struct shunt_prefix)], value[sizeof(struct shunt_endpoint)], *key = NULL;

	for (uint32_t i = 0; i < spec.max_entries && !error; i++) {
		if (bpf_map_get_next_key(source, key, keys[i & 1])) {
			error = errno == ENOENT ? 0 : -errno;
			break;
		}
		key = keys[i & 1];
		if (bpf_map_lookup_elem(source, key, value) || bpf_map_update_elem(target, key, value, BPF_ANY))
			error = -errno;
	}
	return error ? kernel_error(report, error, "cannot copy the map '%s'", spec.name) : 0;
}

int upgrade_copy_counters(const struct maps *from, const struct maps *to, struct report *report)
{
	static const enum set_map counters[] = {SET_REASONS, SET_SERVICE_STATS, SET_BACKEND_STATS, SET_POOL_STATS};
	int error = 0;

	/* A counter beyond the new capacity belongs to nobody any more. */
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]) && !error; i++)
		error = copy_array(from, to, counters[i], NULL, report);
	return error;
}

int upgrade_copy(const struct maps *from, const struct maps *to, struct report *report)
{
	int error = copy_array(from, to, SET_BACKENDS, "backends", report);

	if (!error)
		error = copy_array(from, to, SET_NEXTHOPS, "backends", report);
	if (!error)
		error = copy_array(from, to, SET_IFACES, NULL, report);
	if (!error)
		error = copy_array(from, to, SET_BACKEND_PATH, NULL, report);
	if (!error)
		error = copy_keys(from, to, SET_OUTER_SOURCES, report);
	if (!error)
		error = copy_keys(from, to, SET_ENDPOINTS, report);
	if (!error)
		error = upgrade_copy_flows(from, to, report);
	for (enum maps_inner kind = MAPS_TABLE_S; kind <= MAPS_TABLE_L && !error; kind++)
		error = copy_tables(from, to, kind, report);
	if (!error)
		error = copy_snapshot(from, to, report);
	return error ? error : upgrade_copy_counters(from, to, report);
}
