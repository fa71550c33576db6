/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The paths behind us.  By `outer_sources` and `endpoints` packets know an ICMP error about what we sent, and whom it
 * is about.  Both follow from the backend entries alone: whoever is present in the map can be sent to, with the outer
 * source and destination that the entry has, by this daemon or by the one before.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#define XXH_STATIC_LINKING_ONLY /* for the state on the stack */
#include <xxhash.h>

#include "engine_internal.h"
#include "kernel.h"

#define NS_PER_MS 1000000ull
#define ADDRESS_BITS 128u /* of union shunt_address */

/* An element that a map is to have. */
struct element {
	union {
		struct shunt_prefix source;
		union shunt_address endpoint;
	} key;
	union {
		__u8 source;
		struct shunt_endpoint endpoint;
	} value;
	bool found; /* its key is in the map */
};

/* What one of the two maps is to have: sorted by key, each key once. */
struct wanted {
	int fd;
	size_t key_size, value_size;
	struct element *list;
	size_t n;
};

static bool is_outer(const struct shunt_backend *entry)
{
	return __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) & SHUNT_BACKEND_PRESENT &&
	       entry->encap != SHUNT_ENCAP_NONE && entry->encap != SHUNT_ENCAP_L2;
}

static void from_v4(const void *bytes, union shunt_address *out)
{
	*out = (union shunt_address){.byte = {[10] = 0xff, [11] = 0xff}};
	memcpy(out->byte + 12, bytes, 4);
}

void engine_outer_addresses(const struct shunt_backend *entry, union shunt_address *source,
			    union shunt_address *destination)
{
	if (entry->encap == SHUNT_ENCAP_IPIP4 || entry->encap == SHUNT_ENCAP_GUE4) {
		from_v4(entry->outer + offsetof(struct iphdr, saddr), source);
		from_v4(entry->outer + offsetof(struct iphdr, daddr), destination);
	} else {
		memcpy(source, entry->outer + offsetof(struct ipv6hdr, saddr), sizeof(*source));
		memcpy(destination, entry->outer + offsetof(struct ipv6hdr, daddr), sizeof(*destination));
	}
}

static uint64_t fingerprint(const struct pinned *pinned)
{
	XXH64_state_t state;

	XXH64_reset(&state, 0);
	for (uint32_t id = 0; id < pinned->maps.meta.backends; id++) {
		const struct shunt_backend *entry = &pinned->backends[id];

		if (!is_outer(entry))
			continue;
		XXH64_update(&state, &id, sizeof(id));
		XXH64_update(&state, (const char *)entry + sizeof(entry->state), sizeof(*entry) - sizeof(entry->state));
	}
	return XXH64_digest(&state) | 1; /* 0: never compared */
}

/* ---- what is wanted ---- */

static int compare_sources(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct shunt_prefix));
}

static int compare_endpoints(const void *a, const void *b)
{
	const struct element *one = a, *other = b;
	int order = memcmp(&one->key.endpoint, &other->key.endpoint, sizeof(one->key.endpoint));

	return order ? order : (int)one->value.endpoint.id[0] - other->value.endpoint.id[0];
}

/* One element a backend: as many as there are, at most. */
static void collect(const struct pinned *pinned, struct wanted *sources, struct wanted *endpoints)
{
	for (uint32_t id = 0; id < pinned->maps.meta.backends; id++) {
		const struct shunt_backend *entry = &pinned->backends[id];
		struct element *source = &sources->list[sources->n], *endpoint = &endpoints->list[endpoints->n];
		union shunt_address address;

		if (!is_outer(entry))
			continue;
		engine_outer_addresses(entry, &address, &endpoint->key.endpoint);
		endpoint->value.endpoint = (struct shunt_endpoint){.count = 1, .id = {(__u16)id}};
		source->key.source.length = ADDRESS_BITS - entry->source_bits;
		memcpy(source->key.source.address, &address, sizeof(address));
		source->value.source = 1;
		sources->n++;
		endpoints->n++;
	}
}

/* Backends behind one address share an element, those with the lowest ids where there is no room for all. */
static void merge(struct wanted *wanted, int (*compare)(const void *, const void *), bool endpoints)
{
	size_t kept = 0;

	qsort(wanted->list, wanted->n, sizeof(*wanted->list), compare);
	for (size_t i = 0; i < wanted->n; i++) {
		struct element *last = &wanted->list[kept ? kept - 1 : 0];
		struct shunt_endpoint *endpoint = &last->value.endpoint;

		if (!kept || memcmp(&last->key, &wanted->list[i].key, wanted->key_size) != 0)
			wanted->list[kept++] = wanted->list[i];
		else if (endpoints && endpoint->count < SHUNT_ENDPOINT_BACKENDS)
			endpoint->id[endpoint->count++] = wanted->list[i].value.endpoint.id[0];
	}
	wanted->n = kept;
}

/* ---- what is there ---- */

struct sought {
	const void *key;
	size_t size;
};

static int by_key(const void *sought, const void *element)
{
	const struct sought *of = sought;

	return memcmp(of->key, &((const struct element *)element)->key, of->size);
}

/* Deleting under way would begin the walk anew: what is not wanted is collected first.  room: elements of the map. */
static int delete_others(const struct wanted *wanted, uint32_t room)
{
	char *others = calloc(room, wanted->key_size), *key = NULL;
	char keys[2][sizeof(wanted->list->key)];
	size_t n = 0;
	int ret = others ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < room && !ret; i++) {
		struct sought sought = {keys[i & 1], wanted->key_size};
		struct element *element;

		if (bpf_map_get_next_key(wanted->fd, key, keys[i & 1])) {
			ret = errno == ENOENT ? 0 : -errno;
			break;
		}
		key = keys[i & 1];
		element = bsearch(&sought, wanted->list, wanted->n, sizeof(*wanted->list), by_key);
		if (element)
			element->found = true;
		else
			memcpy(others + n++ * wanted->key_size, key, wanted->key_size);
	}
	for (size_t i = 0; i < n && !ret; i++) {
		if (bpf_map_delete_elem(wanted->fd, others + i * wanted->key_size) && errno != ENOENT)
			ret = -errno;
	}
	free(others);
	return ret;
}

/* What is not wanted any more goes first, so that there is always room. */
static int bring(const struct wanted *wanted, uint32_t room)
{
	int ret = delete_others(wanted, room);

	for (size_t i = 0; i < wanted->n && !ret; i++) {
		const struct element *element = &wanted->list[i];
		char value[sizeof(element->value)];

		if (element->found && !bpf_map_lookup_elem(wanted->fd, &element->key, value) &&
		    !memcmp(value, &element->value, wanted->value_size))
			continue;
		if (bpf_map_update_elem(wanted->fd, &element->key, &element->value, BPF_ANY))
			ret = -errno;
	}
	return ret;
}

static int bring_both(const struct pinned *pinned, struct report *report)
{
	const uint32_t room = pinned->maps.meta.backends;
	struct wanted sources = {
		.fd = pinned->maps.outer_sources, .key_size = sizeof(struct shunt_prefix), .value_size = sizeof(__u8)};
	struct wanted endpoints = {.fd = pinned->maps.endpoints,
				   .key_size = sizeof(union shunt_address),
				   .value_size = sizeof(struct shunt_endpoint)};
	const char *map = SHUNT_MAP_ENDPOINTS;
	int ret = -ENOMEM;

	/* collect() looks at one more element than there are backends. */
	sources.list = calloc((size_t)room + 1, sizeof(*sources.list));
	endpoints.list = calloc((size_t)room + 1, sizeof(*endpoints.list));
	if (sources.list && endpoints.list) {
		collect(pinned, &sources, &endpoints);
		merge(&sources, compare_sources, false);
		merge(&endpoints, compare_endpoints, true);
		ret = bring(&endpoints, room);
		if (!ret) {
			map = SHUNT_MAP_OUTER_SOURCES;
			ret = bring(&sources, room);
		}
	}
	free(sources.list);
	free(endpoints.list);
	return ret && ret != -ENOMEM ? kernel_error(report, ret, "cannot write the map '%s'", map) : ret;
}

int engine_bring_paths(struct engine *engine, struct report *report)
{
	struct pinned *pinned = &engine->pinned;
	uint64_t now = fingerprint(pinned);
	int ret = now == pinned->outer_now ? 0 : bring_both(pinned, report);

	pinned->outer_now = ret ? 0 : now;
	return ret;
}

/* ---- path MTUs that errors lowered ---- */

uint32_t engine_path_mtu(struct pinned *pinned, uint32_t id, uint32_t mtu)
{
	struct shunt_path *path = &pinned->paths[id];
	uint32_t now = SHUNT_BACKEND_MTU(__atomic_load_n(&pinned->backends[id].state, __ATOMIC_ACQUIRE));

	if (mtu > UINT16_MAX)
		mtu = UINT16_MAX;
	if (now > mtu) /* the way itself has less than any error told */
		__atomic_store_n(&path->lowered, 0, __ATOMIC_RELEASE);
	return now < mtu && __atomic_load_n(&path->lowered, __ATOMIC_ACQUIRE) ? now : mtu;
}

/* Packets may lower it meanwhile: then that is the newer word, and the time begins anew. */
static void restore(struct pinned *pinned, uint32_t id, uint32_t mtu, uint64_t now)
{
	struct shunt_path *path = &pinned->paths[id];
	__u64 *state = &pinned->backends[id].state, word = __atomic_load_n(state, __ATOMIC_ACQUIRE);
	__u64 restored = SHUNT_BACKEND_WITH_MTU(word, mtu < UINT16_MAX ? mtu : UINT16_MAX);

	__atomic_store_n(&path->lowered, 0, __ATOMIC_RELEASE);
	if (!__atomic_compare_exchange_n(state, &word, restored, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		__atomic_store_n(&path->lowered, now * NS_PER_MS, __ATOMIC_RELEASE);
}

uint64_t engine_restore_paths(struct engine *engine, uint64_t now)
{
	const struct model *model = engine->state.model;
	struct pinned *pinned = &engine->pinned;
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < model->n_pools; i++) {
		for (size_t j = 0; j < model->pools[i].n_backends; j++) {
			uint32_t id = engine->state.pools[i].backends[j].id;
			const struct way *way;
			uint64_t lowered, due;

			if (id >= pinned->maps.meta.backends)
				continue;
			lowered = __atomic_load_n(&pinned->paths[id].lowered, __ATOMIC_ACQUIRE);
			way = lowered ? engine_way(engine, &model->pools[i].backends[j].address) : NULL;
			if (!way || !way->once)
				continue;
			due = lowered / NS_PER_MS + ENGINE_PATH_RESTORE_MS;
			if (due <= now)
				restore(pinned, id, way->nexthop.mtu, now);
			else if (due < next)
				next = due;
		}
	}
	return next;
}
