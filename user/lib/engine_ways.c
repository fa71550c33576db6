/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known of the ways to backend addresses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "engine_internal.h"

/* Index of the address, or of where it belongs. */
static size_t find(const struct engine *engine, const union shunt_address *address, bool *found)
{
	size_t low = 0, high = engine->n_ways;

	*found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = addr_compare(address, &engine->ways[middle]->address);

		if (!order) {
			*found = true;
			return middle;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

struct way *engine_way(const struct engine *engine, const union shunt_address *address)
{
	bool found;
	size_t at = find(engine, address, &found);

	return found ? engine->ways[at] : NULL;
}

static struct way *add_way(struct engine *engine, const union shunt_address *address)
{
	struct way **grown, *way;
	bool found;
	size_t at = find(engine, address, &found);

	if (found)
		return engine->ways[at];
	grown = reallocarray(engine->ways, engine->n_ways + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	engine->ways = grown;
	way = calloc(1, sizeof(*way));
	if (!way)
		return NULL;
	way->address = *address;
	memmove(grown + at + 1, grown + at, (engine->n_ways - at) * sizeof(*grown));
	grown[at] = way;
	engine->n_ways++;
	return way;
}

int engine_set_nexthop(struct engine *engine, const union shunt_address *backend, const struct engine_nexthop *nexthop)
{
	static const uint8_t none[sizeof(nexthop->mac)];
	struct way *way;

	if (nexthop->known && (!nexthop->ifindex || !memcmp(nexthop->mac, none, sizeof(none))))
		return -EINVAL;
	way = add_way(engine, backend);
	if (!way)
		return -ENOMEM;
	if (nexthop->known) {
		way->nexthop = *nexthop;
		way->once = true;
		way->seeded = false;
	} else {
		way->nexthop.known = false;
		memcpy(way->nexthop.why, nexthop->why, sizeof(way->nexthop.why));
	}
	return 0;
}

static int seed(struct engine *engine, const union shunt_address *address, uint64_t state)
{
	uint32_t index = SHUNT_BACKEND_NEXTHOP(state);
	const struct shunt_iface *iface;
	struct way *way;
	uint64_t word;

	if (index >= engine->pinned.n_nexthops)
		return 0;
	word = engine->pinned.nexthops[index];
	if (!word || SHUNT_NEXTHOP_IFACE(word) >= SHUNT_IFACES)
		return 0;
	way = add_way(engine, address);
	if (!way)
		return -ENOMEM;
	if (way->once)
		return 0;
	iface = &engine->pinned.ifaces[SHUNT_NEXTHOP_IFACE(word)];
	way->once = true;
	way->seeded = true;
	way->nexthop = (struct engine_nexthop){.ifindex = iface->ifindex, .mtu = SHUNT_BACKEND_MTU(state)};
	memcpy(way->nexthop.mac, &word, sizeof(way->nexthop.mac));
	memcpy(way->nexthop.source_mac, iface->mac, sizeof(way->nexthop.source_mac));
	snprintf(way->nexthop.why, sizeof(way->nexthop.why), "not looked up since the start");
	return 0;
}

int engine_seed_ways(struct engine *engine)
{
	const struct model *model = engine->state.model;
	int ret = 0;

	for (size_t i = 0; model && i < model->n_pools; i++) {
		const struct model_pool *pool = &model->pools[i];

		for (size_t j = 0; j < pool->n_backends && !ret; j++) {
			const struct state_backend *ids = &engine->state.pools[i].backends[j];
			uint64_t state;

			if (ids->id >= engine->pinned.maps.meta.backends)
				continue;
			state = engine->pinned.backends[ids->id].state;
			if (state & SHUNT_BACKEND_PRESENT && SHUNT_BACKEND_GENERATION(state) == ids->generation)
				ret = seed(engine, &pool->backends[j].address, state);
		}
	}
	return ret;
}

struct addresses {
	const union shunt_address **list;
	size_t n;
};

static int compare(const void *a, const void *b)
{
	return addr_compare(*(const union shunt_address *const *)a, *(const union shunt_address *const *)b);
}

static int addresses_of(const struct model *model, struct addresses *out)
{
	const union shunt_address **list;
	size_t n = 0, unique = 0;

	for (size_t i = 0; model && i < model->n_pools; i++)
		n += model->pools[i].n_backends;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; model && i < model->n_pools; i++) {
		for (size_t j = 0; j < model->pools[i].n_backends; j++)
			list[n++] = &model->pools[i].backends[j].address;
	}
	qsort(list, n, sizeof(*list), compare);
	for (size_t i = 0; i < n; i++) {
		if (!i || !addr_equal(list[i], list[i - 1]))
			list[unique++] = list[i];
	}
	*out = (struct addresses){list, unique};
	return 0;
}

/* Out of memory, it keeps them all: they are dropped next time. */
void engine_drop_ways(struct engine *engine)
{
	struct addresses addresses;
	size_t kept = 0, at = 0;

	if (addresses_of(engine->state.model, &addresses))
		return;
	for (size_t i = 0; i < engine->n_ways; i++) {
		struct way *way = engine->ways[i];

		while (at < addresses.n && addr_compare(addresses.list[at], &way->address) < 0)
			at++;
		if (at < addresses.n && addr_equal(addresses.list[at], &way->address))
			engine->ways[kept++] = way;
		else
			free(way);
	}
	engine->n_ways = kept;
	free(addresses.list);
}

void engine_addresses(const struct engine *engine, engine_address_fn *fn, void *arg)
{
	struct addresses addresses;

	if (addresses_of(engine->state.model, &addresses))
		return;
	for (size_t i = 0; i < addresses.n; i++)
		fn(addresses.list[i], arg);
	free(addresses.list);
}
