/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "snapshot.h"

/* At a load of at most one half nearly every seed does; a set that needs more than these is not placeable. */
#define SEEDS 64
/* Displacements for one entry before the seed is given up: far beyond what such loads need (a few). */
#define KICKS 500

/* One hash table being filled: which item lies in which way of which bucket. */
struct placing {
	uint64_t *hash; /* of each item, under the seed being tried */
	uint32_t n, buckets, ways;
	uint32_t *place; /* [buckets * ways]: item + 1, or 0 */
};

/* The input in canonical order. */
struct builder {
	struct snapshot_address *addresses;
	struct shunt_service_entry *services;
	struct placing by_address, by_service;
};

size_t snapshot_size(const struct snapshot_capacity *capacity)
{
	return SHUNT_SNAPSHOT_SIZE(capacity->addresses, capacity->services);
}

static bool put(struct placing *placing, uint32_t bucket, uint32_t item)
{
	uint32_t *way = placing->place + (size_t)bucket * placing->ways;

	for (uint32_t i = 0; i < placing->ways; i++) {
		if (way[i])
			continue;
		way[i] = item + 1;
		return true;
	}
	return false;
}

/* Cuckoo displacement: an item that finds both its buckets full takes a place, whose holder moves to its other one. */
static bool insert(struct placing *placing, uint32_t item)
{
	uint32_t from = UINT32_MAX;

	for (uint32_t kick = 0; kick < KICKS; kick++) {
		uint32_t first = shunt_probe_first(placing->hash[item], placing->buckets);
		uint32_t second = shunt_probe_second(placing->hash[item], placing->buckets);
		uint32_t *victim, moved;

		if (put(placing, first, item) || put(placing, second, item))
			return true;
		from = first == from ? second : first;
		victim = placing->place + (size_t)from * placing->ways + kick % placing->ways;
		moved = *victim - 1;
		*victim = item + 1;
		item = moved;
	}
	return false;
}

static bool place_all(struct placing *placing)
{
	memset(placing->place, 0, (size_t)placing->buckets * placing->ways * sizeof(*placing->place));
	for (uint32_t i = 0; i < placing->n; i++) {
		if (!insert(placing, i))
			return false;
	}
	return true;
}

static bool try_seed(struct builder *b, uint64_t seed)
{
	for (uint32_t i = 0; i < b->by_address.n; i++)
		b->by_address.hash[i] = shunt_address_hash(&b->addresses[i].address, seed);
	for (uint32_t i = 0; i < b->by_service.n; i++)
		b->by_service.hash[i] =
			shunt_service_hash(b->by_address.hash[(b->services[i].key >> 32) - 1], b->services[i].key);
	return place_all(&b->by_address) && place_all(&b->by_service);
}

static int find_seed(struct builder *b, uint64_t *seed, struct report *report)
{
	for (uint64_t i = 0; i < SEEDS; i++) {
		*seed = (i + 1) * 0x9e3779b97f4a7c15ull;
		if (try_seed(b, *seed))
			return 0;
	}
	return report_error(report, -ENOSPC,
			    "%u service addresses and %u service entries find no place in %u and %u buckets: grow them "
			    "with `shunt-loader upgrade --services %u`",
			    b->by_address.n, b->by_service.n, b->by_address.buckets, b->by_service.buckets,
			    b->by_service.buckets * 4);
}

static int compare_addresses(const void *a, const void *b)
{
	const struct snapshot_address *const *x = a, *const *y = b;

	return addr_compare(&(*x)->address, &(*y)->address);
}

static int compare_entries(const void *a, const void *b)
{
	const struct shunt_service_entry *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* Sort the addresses into the builder; rank[i]: where content->addresses[i] went. */
static int sort_addresses(struct builder *b, const struct snapshot_content *content, uint32_t *rank,
			  struct report *report)
{
	const struct snapshot_address **order = calloc(content->n_addresses + 1, sizeof(const void *));
	char text[ADDR_TEXT_MAX];
	int ret = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < content->n_addresses; i++)
		order[i] = &content->addresses[i];
	qsort(order, content->n_addresses, sizeof(const void *), compare_addresses);
	for (size_t i = 0; i < content->n_addresses && !ret; i++) {
		if (i && addr_equal(&order[i - 1]->address, &order[i]->address))
			ret = report_error(report, -EINVAL, "service address %s is listed twice: list it once",
					   addr_format(&order[i]->address, text));
		b->addresses[i] = *order[i];
		b->addresses[i].flags &= ~SNAPSHOT_DERIVED;
		rank[order[i] - content->addresses] = (uint32_t)i;
	}
	free(order);
	return ret;
}

static uint32_t any_flag(uint8_t protocol)
{
	return protocol == IPPROTO_TCP ? SHUNT_ADDRESS_ANY_TCP : SHUNT_ADDRESS_ANY_UDP;
}

static int sort_services(struct builder *b, const struct snapshot_content *content, const uint32_t *rank,
			 struct report *report)
{
	for (size_t i = 0; i < content->n_services; i++) {
		const struct snapshot_service *service = &content->services[i];

		if (service->address >= content->n_addresses ||
		    (service->protocol != IPPROTO_TCP && service->protocol != IPPROTO_UDP))
			return report_error(report, -EINVAL,
					    "service entry %zu (port %u) has address index %u of %zu and protocol %u: "
					    "give it a listed address and TCP or UDP",
					    i, service->port, service->address, content->n_addresses,
					    service->protocol);
		if (!service->port)
			b->addresses[rank[service->address]].flags |= any_flag(service->protocol);
		b->services[i] = (struct shunt_service_entry){
			.key = shunt_service_key(rank[service->address] + 1, (SHUNT_FORCE __be16)htons(service->port),
						 service->protocol),
			.counter = service->counter,
			.pool = service->pool,
			.table_class = service->table_class,
			.hash_mode = service->hash_mode,
		};
	}
	qsort(b->services, content->n_services, sizeof(*b->services), compare_entries);
	for (size_t i = 1; i < content->n_services; i++) {
		const union shunt_address *address;
		char text[ADDR_TEXT_MAX];

		if (b->services[i].key != b->services[i - 1].key)
			continue;
		address = &b->addresses[(b->services[i].key >> 32) - 1].address;
		return report_error(report, -EINVAL, "%s, IP protocol %u, has two services: leave one",
				    addr_port_format(address, ntohs((uint16_t)(b->services[i].key >> 8)), text),
				    (unsigned int)(b->services[i].key & 0xff));
	}
	return 0;
}

static int check_capacity(const struct snapshot_content *content, const struct snapshot_capacity *capacity,
			  struct report *report)
{
	if (content->n_services > capacity->services)
		return report_error(report, -ENOSPC,
				    "%zu service entries (one for each port of each service) exceed the capacity of "
				    "%u: grow it with `shunt-loader upgrade --services %zu`",
				    content->n_services, capacity->services, content->n_services);
	if (content->n_addresses > capacity->addresses)
		return report_error(report, -ENOSPC,
				    "%zu service addresses exceed the capacity of %u: grow it with "
				    "`shunt-loader upgrade --addresses %zu`",
				    content->n_addresses, capacity->addresses, content->n_addresses);
	return 0;
}

static bool placing_init(struct placing *placing, size_t n, uint32_t buckets, uint32_t ways)
{
	placing->n = (uint32_t)n;
	placing->buckets = buckets;
	placing->ways = ways;
	placing->hash = calloc(n + 1, sizeof(*placing->hash));
	placing->place = calloc((size_t)buckets * ways + 1, sizeof(*placing->place));
	return placing->hash && placing->place;
}

static void builder_free(struct builder *b)
{
	free(b->addresses);
	free(b->services);
	free(b->by_address.hash);
	free(b->by_address.place);
	free(b->by_service.hash);
	free(b->by_service.place);
}

static bool builder_init(struct builder *b, const struct snapshot_content *content,
			 const struct snapshot_capacity *capacity)
{
	b->addresses = calloc(content->n_addresses + 1, sizeof(*b->addresses));
	b->services = calloc(content->n_services + 1, sizeof(*b->services));
	return b->addresses && b->services &&
	       placing_init(&b->by_address, content->n_addresses, SHUNT_ADDRESS_BUCKETS(capacity->addresses),
			    SHUNT_ADDRESS_WAYS) &&
	       placing_init(&b->by_service, content->n_services, SHUNT_SERVICE_BUCKETS(capacity->services),
			    SHUNT_SERVICE_WAYS);
}

/* For packets to look at their slot before they know their service. */
static uint32_t single_pool(const struct snapshot_content *content, bool ipv6)
{
	uint32_t pool = SHUNT_POOLS_MAX;

	for (size_t i = 0; i < content->n_services; i++) {
		const struct snapshot_service *service = &content->services[i];

		if (addr_is_v4(&content->addresses[service->address].address) == ipv6)
			continue;
		if (service->table_class != SHUNT_TABLE_M || (pool != SHUNT_POOLS_MAX && pool != service->pool))
			return SHUNT_POOLS_MAX;
		pool = service->pool;
	}
	return pool;
}

static void write_value(const struct builder *b, const struct snapshot_content *content, uint64_t seed, void *value)
{
	struct shunt_snapshot *header = value;
	struct shunt_address_entry *address = (void *)(header + 1);
	struct shunt_service_entry *service;
	size_t n_address = (size_t)b->by_address.buckets * SHUNT_ADDRESS_WAYS;
	size_t n_service = (size_t)b->by_service.buckets * SHUNT_SERVICE_WAYS;

	service = (void *)(address + n_address);
	memset(value, 0, (size_t)((char *)(service + n_service) - (char *)value));
	header->settings = content->settings;
	header->error_interval = content->error_interval;
	header->error_burst = content->error_burst;
	header->abi = SHUNT_ABI;
	header->addresses = b->by_address.n;
	header->services = b->by_service.n;
	header->revision = content->revision;
	header->seed = seed;
	header->key = content->key;
	header->single_pool[0] = single_pool(content, false);
	header->single_pool[1] = single_pool(content, true);
	for (size_t i = 0; i < n_address; i++) {
		uint32_t id = b->by_address.place[i];
		const struct snapshot_address *from = &b->addresses[id - !!id];

		if (!id)
			continue;
		address[i] = (struct shunt_address_entry){.address = from->address, .id = id, .flags = from->flags};
		if (!(from->flags & SHUNT_ADDRESS_BY_SOURCE))
			continue;
		address[i].counter = from->counter;
		address[i].pool = from->pool;
		address[i].table_class = from->table_class;
	}
	for (size_t i = 0; i < n_service; i++) {
		if (b->by_service.place[i])
			service[i] = b->services[b->by_service.place[i] - 1];
	}
}

int snapshot_build(const struct snapshot_content *content, const struct snapshot_capacity *capacity, void *value,
		   struct report *report)
{
	struct builder b = {};
	uint32_t *rank = NULL;
	uint64_t seed;
	int ret;

	ret = check_capacity(content, capacity, report);
	if (ret)
		return ret;
	ret = -ENOMEM;
	rank = calloc(content->n_addresses + 1, sizeof(*rank));
	if (!rank || !builder_init(&b, content, capacity))
		goto out;
	ret = sort_addresses(&b, content, rank, report);
	if (!ret)
		ret = sort_services(&b, content, rank, report);
	if (!ret)
		ret = find_seed(&b, &seed, report);
	if (!ret)
		write_value(&b, content, seed, value);
out:
	builder_free(&b);
	free(rank);
	return ret;
}
