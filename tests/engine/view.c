/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "state.h"
#include "view.h"

static const uint32_t class_slots[] = {SHUNT_SLOTS_S, SHUNT_SLOTS_M, SHUNT_SLOTS_L};

static uint32_t inner_id(int outer, uint32_t index)
{
	uint32_t id;

	return bpf_map_lookup_elem(outer, &index, &id) ? 0 : id;
}

static void *read_inner(uint32_t id, size_t size)
{
	uint32_t zero = 0;
	int fd = bpf_map_get_fd_by_id(id);
	void *value = calloc(1, size);

	assert_true(fd >= 0);
	assert_int_equal(bpf_map_lookup_elem(fd, &zero, value), 0);
	close(fd);
	return value;
}

/* In the place of base[] id[] and of[]: what packets read must be what owner[] says. */
static void read_dense(struct view_table *table, const void *at, uint32_t slots)
{
	const uint8_t *of = at + 2 * SHUNT_TABLE_IDS;
	const uint16_t *id = at;

	assert_false(table->header.flags & SHUNT_TABLE_IN_TRANSITION);
	for (uint32_t i = 0; i < slots; i++)
		assert_int_equal(id[of[i]], table->owner[i]);
	memcpy(table->base, table->owner, slots * sizeof(*table->base));
}

static void read_table(struct view *view, int class, uint32_t pool)
{
	struct view_table *table = &view->tables[class][pool];
	const int ranges[] = {view->maps.ranges[0], view->maps.ranges[1], view->maps.ranges[2]};
	size_t capacity = (class_slots[class] + 3) & ~3u;
	uint32_t inner;
	char *value;

	table->inner = inner_id(view->maps.tables[class], pool);
	if (!table->inner)
		return;
	value = read_inner(table->inner, 64 + 4 * capacity);
	memcpy(&table->header, value, 64);
	table->owner = malloc(2 * capacity);
	table->base = malloc(2 * capacity);
	memcpy(table->owner, value + 64, 2 * capacity);
	memcpy(table->base, value + 64 + 2 * capacity, 2 * capacity);
	if (table->header.ranges == SHUNT_TABLE_DENSE)
		read_dense(table, value + 64 + 2 * capacity, class_slots[class]);
	free(value);
	table->tracked = calloc(capacity, 1);
	table->learn = calloc(capacity, 1);
	for (uint32_t i = 0; i < class_slots[class]; i++) {
		table->tracked[i] = table->owner[i] >> 15;
		table->learn[i] = table->base[i] >> 15;
		table->owner[i] &= 0x7fff;
		table->base[i] &= 0x7fff;
	}
	inner = table->header.flags & 1 ? inner_id(ranges[class], table->header.ranges) : 0;
	if (!inner)
		return;
	value = read_inner(inner, 8 * capacity);
	table->range = malloc(4 * capacity);
	table->t0 = malloc(4 * capacity);
	memcpy(table->range, value, 4 * capacity);
	memcpy(table->t0, value + 4 * capacity, 4 * capacity);
	free(value);
}

bool view_read(const struct fixture *f, struct view *out)
{
	const struct shunt_meta *meta = &out->maps.meta;

	memset(out, 0, sizeof(*out));
	if (maps_open_existing(f->instance, &out->maps, NULL))
		return false;
	assert_true(meta->pools <= VIEW_POOLS && meta->backends <= VIEW_BACKENDS);
	for (int class = 0; class < SHUNT_NR_TABLE_CLASSES; class ++) {
		for (uint32_t i = 0; i < meta->pools; i++)
			read_table(out, class, i);
	}
	out->snapshot_inner = inner_id(out->maps.snapshot, 0);
	if (out->snapshot_inner)
		out->snapshot = read_inner(out->snapshot_inner,
					   128 + 64ull * meta->addresses + 64ull * ((meta->services + 1) / 2));
	for (uint32_t i = 0; i < meta->backends; i++)
		assert_int_equal(bpf_map_lookup_elem(out->maps.backends, &i, &out->backends[i]), 0);
	for (uint32_t i = 0; i < VIEW_BACKENDS; i++)
		assert_int_equal(bpf_map_lookup_elem(out->maps.nexthops, &i, &out->nexthops[i]), 0);
	for (uint32_t i = 0; i < SHUNT_IFACES; i++)
		assert_int_equal(bpf_map_lookup_elem(out->maps.ifaces, &i, &out->ifaces[i]), 0);
	return true;
}

void view_free(struct view *view)
{
	for (int class = 0; class < SHUNT_NR_TABLE_CLASSES; class ++) {
		for (uint32_t i = 0; i < VIEW_POOLS; i++) {
			free(view->tables[class][i].owner);
			free(view->tables[class][i].base);
			free(view->tables[class][i].tracked);
			free(view->tables[class][i].learn);
			free(view->tables[class][i].range);
			free(view->tables[class][i].t0);
		}
	}
	free(view->snapshot);
	maps_close(&view->maps);
}

static void check_backend(const struct view *view, uint32_t id)
{
	const struct shunt_backend *backend = &view->backends[id];
	uint32_t nexthop = (uint32_t)(backend->state >> 16) & 0xffff;
	uint64_t word;

	assert_true(id < view->maps.meta.backends);
	assert_int_equal(backend->state & 3, 3); /* present, up */
	assert_in_range(backend->encap, SHUNT_ENCAP_IPIP4, SHUNT_ENCAP_L2);
	if (backend->encap != SHUNT_ENCAP_L2) {
		bool v4 = backend->encap == SHUNT_ENCAP_IPIP4 || backend->encap == SHUNT_ENCAP_GUE4;
		bool gue = backend->encap == SHUNT_ENCAP_GUE4 || backend->encap == SHUNT_ENCAP_GUE6;

		assert_int_equal(backend->overhead, (v4 ? 20 : 40) + (gue ? 32 : 0));
		assert_int_equal(backend->outer[0] >> 4, v4 ? 4 : 6);
		assert_int_equal(backend->port != 0, gue);
	}
	assert_true(nexthop < VIEW_BACKENDS);
	word = view->nexthops[nexthop];
	assert_true(word != 0);
	assert_true(word >> 48 < SHUNT_IFACES);
	assert_true(view->ifaces[word >> 48].ifindex != 0);
}

static uint32_t count_tracked(const struct view_table *table, int class)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < class_slots[class]; i++)
		n += table->tracked[i];
	return n;
}

static void check_table(const struct view *view, int class, uint32_t pool)
{
	const struct view_table *table = &view->tables[class][pool];

	assert_int_equal(table->header.abi, SHUNT_ABI);
	assert_int_equal(table->header.pool, pool);
	assert_true(table->header.epoch > 0 && table->header.activated > 1600000000);
	assert_true(table->header.slots <= class_slots[class]);
	assert_int_equal(table->header.flags & 1, count_tracked(table, class) != 0);
	assert_int_equal(table->header.flags & 1, table->range != NULL);
	assert_true(table->header.flags & 1 || !table->header.own);
	for (uint32_t i = 0; i < class_slots[class]; i++) {
		if (!table->tracked[i]) {
			assert_int_equal(table->owner[i], table->base[i]);
			assert_false(table->learn[i]);
			assert_true(!table->range || !table->range[i]);
		} else if (table->base[i] != SHUNT_BACKEND_NONE && view->backends[table->base[i]].state) {
			check_backend(view, table->base[i]); /* else the way to it is not known yet, after a reboot */
		}
		if (i >= table->header.slots)
			assert_int_equal(table->owner[i], SHUNT_BACKEND_NONE);
		else if (table->owner[i] != SHUNT_BACKEND_NONE)
			check_backend(view, table->owner[i]);
	}
}

void view_check(const struct view *view)
{
	const struct shunt_meta *meta = &view->maps.meta;
	const uint8_t *service = view->snapshot ? view->snapshot + 128 + 64ull * meta->addresses : NULL;

	for (int class = 0; class < SHUNT_NR_TABLE_CLASSES; class ++) {
		for (uint32_t i = 0; i < meta->pools; i++) {
			if (view->tables[class][i].inner)
				check_table(view, class, i);
		}
	}
	for (uint32_t i = 0; service && i < (meta->services + 1) / 2 * 4; i++, service += 16) {
		uint64_t key;
		uint16_t pool;

		memcpy(&key, service, 8);
		memcpy(&pool, service + 12, 2);
		if (!key)
			continue;
		assert_true(pool < meta->pools && service[14] < SHUNT_NR_TABLE_CLASSES);
		assert_true(view->tables[service[14]][pool].inner != 0);
	}
}

const struct view_table *view_table(const struct view *view, uint32_t pool)
{
	for (int class = 0; class < SHUNT_NR_TABLE_CLASSES; class ++) {
		if (view->tables[class][pool].inner)
			return &view->tables[class][pool];
	}
	return NULL;
}

void view_check_state(const struct fixture *f, const struct view *view)
{
	uint32_t generation[VIEW_BACKENDS], pool_of[VIEW_BACKENDS], tables = 0;
	struct state state;

	memset(pool_of, 0xff, sizeof(pool_of));
	assert_int_equal(state_load(f->state_dir, &state, NULL), 0);
	for (size_t i = 0; i < state.model->n_pools; i++) {
		for (size_t j = 0; j < state.model->pools[i].n_backends; j++) {
			uint32_t id = state.pools[i].backends[j].id;

			assert_true(id < view->maps.meta.backends);
			assert_int_equal(pool_of[id], UINT32_MAX); /* no id is given twice */
			pool_of[id] = state.pools[i].index;
			generation[id] = state.pools[i].backends[j].generation;
		}
	}
	for (size_t i = 0; i < state.model->n_pools; i++) {
		const struct view_table *table = view_table(view, state.pools[i].index);

		assert_non_null(table);
		for (uint32_t slot = 0; slot < table->header.slots; slot++) {
			uint16_t id = table->owner[slot];

			if (id == SHUNT_BACKEND_NONE)
				continue;
			assert_int_equal(pool_of[id], state.pools[i].index);
			assert_int_equal(view->backends[id].state >> 8 & 0xf, generation[id]);
		}
	}
	for (uint32_t id = 0; id < view->maps.meta.backends; id++)
		assert_true(pool_of[id] != UINT32_MAX || !(view->backends[id].state & 1));
	for (int class = 0; class < SHUNT_NR_TABLE_CLASSES; class ++) {
		for (uint32_t i = 0; i < VIEW_POOLS; i++)
			tables += view->tables[class][i].inner != 0;
	}
	assert_int_equal(tables, state.model->n_pools);
	struct model *model = state.model;

	state_free(&state);
	model_free(model);
}

bool view_equal(const struct view *a, const struct view *b)
{
	for (int class = 0; class < SHUNT_NR_TABLE_CLASSES; class ++) {
		for (uint32_t i = 0; i < VIEW_POOLS; i++) {
			if (a->tables[class][i].inner != b->tables[class][i].inner)
				return false;
		}
	}
	return a->snapshot_inner == b->snapshot_inner && !memcmp(a->backends, b->backends, sizeof(a->backends)) &&
	       !memcmp(a->nexthops, b->nexthops, sizeof(a->nexthops)) &&
	       !memcmp(a->ifaces, b->ifaces, sizeof(a->ifaces));
}
