/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opens the maps and finds out what is in force in them. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <bpf/bpf.h>

#include "engine_internal.h"
#include "kernel.h"

static int map_array(int fd, size_t value_size, void **out, uint32_t *entries)
{
	struct bpf_map_info info = {};
	__u32 size = sizeof(info);
	void *address = NULL;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return -errno;
	address = mmap(NULL, (size_t)info.max_entries * value_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (address == MAP_FAILED)
		return -errno;
	*out = address;
	*entries = info.max_entries;
	return 0;
}

static int map_arrays(struct pinned *pinned)
{
	uint32_t backends;
	void *address = NULL;
	int ret;

	ret = map_array(pinned->maps.flows, sizeof(*pinned->flows), &address, &pinned->n_buckets);
	if (ret)
		return ret;
	pinned->flows = address;
	ret = map_array(pinned->maps.backends, sizeof(*pinned->backends), &address, &backends);
	if (ret)
		return ret;
	pinned->backends = address;
	ret = map_array(pinned->maps.backend_path, sizeof(*pinned->paths), &address, &backends);
	if (ret)
		return ret;
	pinned->paths = address;
	ret = map_array(pinned->maps.nexthops, sizeof(*pinned->nexthops), &address, &pinned->n_nexthops);
	if (ret)
		return ret;
	pinned->nexthops = address;
	return 0;
}

static int read_ifaces(struct pinned *pinned)
{
	for (uint32_t i = 0; i < SHUNT_IFACES; i++) {
		if (bpf_map_lookup_elem(pinned->maps.ifaces, &i, &pinned->ifaces[i]))
			return -errno;
	}
	return 0;
}

static int read_tables_of(struct pinned *pinned, enum shunt_table_class class)
{
	struct shunt_table *value = malloc(maps_inner_size(&pinned->maps, (enum maps_inner) class));
	int ret = value ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < pinned->maps.meta.pools && !ret; i++) {
		struct live_table *live = pinned_table(pinned, class, i);

		if (!maps_inner_exists(&pinned->maps, (enum maps_inner) class, i))
			continue;
		ret = maps_inner_read(&pinned->maps, (enum maps_inner) class, i, value);
		if (!ret && value->abi == SHUNT_ABI && engine_table_class(value->slots) <= class)
			*live = (struct live_table){.published = true, .header = *value};
	}
	free(value);
	return ret;
}

static int read_snapshot(struct pinned *pinned)
{
	void *value = malloc(maps_inner_size(&pinned->maps, MAPS_SNAPSHOT));
	int ret;

	if (!value)
		return -ENOMEM;
	ret = maps_inner_read(&pinned->maps, MAPS_SNAPSHOT, 0, value);
	if (!ret)
		ret = pinned_take_snapshot(pinned, value);
	if (ret)
		free(value);
	/* One that snapshot_build() did not write counts as none: the next publication replaces it. */
	return ret == -ENOENT || ret == -EUCLEAN ? 0 : ret;
}

static int pinned_read(struct pinned *pinned)
{
	const struct shunt_meta *meta = &pinned->maps.meta;
	int ret;

	pinned->tables = calloc((size_t)SHUNT_NR_TABLE_CLASSES * meta->pools, sizeof(*pinned->tables));
	pinned->counter_live = calloc(meta->services, sizeof(*pinned->counter_live));
	pinned->slots = calloc(meta->backends, sizeof(*pinned->slots));
	pinned->quotas = calloc(meta->backends, sizeof(*pinned->quotas));
	pinned->bases = calloc(meta->backends, sizeof(*pinned->bases));
	pinned->entries = calloc(meta->backends, sizeof(*pinned->entries));
	pinned->watches = calloc(meta->pools, sizeof(*pinned->watches));
	if (!pinned->tables || !pinned->counter_live || !pinned->slots || !pinned->quotas || !pinned->bases ||
	    !pinned->entries || !pinned->watches)
		return -ENOMEM;
	ret = map_arrays(pinned);
	if (!ret)
		ret = read_ifaces(pinned);
	if (!ret)
		ret = read_snapshot(pinned);
	for (int class = 0; class < SHUNT_NR_TABLE_CLASSES && !ret; class ++)
		ret = read_tables_of(pinned, class);
	return ret;
}

int pinned_open(const char *instance, const struct maps_capacities *want, struct pinned *out, struct report *report)
{
	struct pinned pinned = {};
	int ret;

	ret = maps_open(instance, want, &pinned.maps, report);
	if (ret)
		return ret;
	ret = pinned_read(&pinned);
	if (ret) {
		pinned_close(&pinned);
		return kernel_error(report, ret, "cannot read what is pinned in %s", pinned.maps.dir);
	}
	*out = pinned;
	return 0;
}

void pinned_close(struct pinned *pinned)
{
	if (pinned->backends)
		munmap(pinned->backends, pinned->maps.meta.backends * sizeof(*pinned->backends));
	if (pinned->paths)
		munmap(pinned->paths, pinned->maps.meta.backends * sizeof(*pinned->paths));
	if (pinned->nexthops)
		munmap(pinned->nexthops, pinned->n_nexthops * sizeof(*pinned->nexthops));
	if (pinned->flows)
		munmap(pinned->flows, (size_t)pinned->n_buckets * sizeof(*pinned->flows));
	free(pinned->bases);
	free(pinned->entries);
	free(pinned->watches);
	free(pinned->tables);
	free(pinned->snapshot);
	free(pinned->counter_live);
	free(pinned->slots);
	free(pinned->quotas);
	maps_close(&pinned->maps);
}

struct live_table *pinned_table(const struct pinned *pinned, enum shunt_table_class class, uint32_t index)
{
	return &pinned->tables[(size_t) class * pinned->maps.meta.pools + index];
}

int pinned_take_snapshot(struct pinned *pinned, void *value)
{
	const struct shunt_meta *meta = &pinned->maps.meta;
	const struct snapshot_capacity capacity = {meta->addresses, meta->services};
	bool *live = calloc(meta->services, sizeof(*live));
	struct snapshot_content content;
	int ret;

	if (!live)
		return -ENOMEM;
	ret = snapshot_read(value, &capacity, &content);
	if (ret) {
		free(live);
		return ret;
	}
	for (size_t i = 0; i < content.n_services; i++) {
		if (content.services[i].counter < meta->services)
			live[content.services[i].counter] = true;
	}
	snapshot_free(&content);
	free(pinned->counter_live);
	free(pinned->snapshot);
	pinned->counter_live = live;
	pinned->snapshot = value;
	return 0;
}

int pinned_grace(const struct pinned *pinned)
{
	/* The update of an outer map waits for one; and without a snapshot no packet gets as far as a next hop. */
	return pinned->snapshot ? maps_inner_publish(&pinned->maps, MAPS_SNAPSHOT, 0, pinned->snapshot) : 0;
}
