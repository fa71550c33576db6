/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

const char *const model_encapsulation_names[MODEL_NR_ENCAPSULATIONS] = {
	[MODEL_IPIP] = "ipip",
	[MODEL_GUE] = "gue",
	[MODEL_L2] = "l2",
};
const char *const model_udp6_checksum_names[MODEL_NR_UDP6_CHECKSUMS] = {
	[MODEL_UDP6_COMPUTED] = "computed",
	[MODEL_UDP6_ZERO] = "zero",
};
const char *const model_hash_names[SHUNT_NR_HASH_MODES] = {
	[SHUNT_HASH_5TUPLE] = "5-tuple",
	[SHUNT_HASH_SOURCE] = "source",
	[SHUNT_HASH_SOURCE_PORT] = "source-port",
};
const char *const model_unknown_port_names[MODEL_NR_UNKNOWN_PORTS] = {
	[MODEL_UNKNOWN_DROP] = "drop",
	[MODEL_UNKNOWN_REFUSE] = "refuse",
	[MODEL_UNKNOWN_PASS] = "pass",
};
const char *const model_echo_names[MODEL_NR_ECHOS] = {
	[MODEL_ECHO_ANSWER] = "answer",
	[MODEL_ECHO_FORWARD] = "forward",
	[MODEL_ECHO_DROP] = "drop",
};
const char *const model_ttl_exceeded_names[MODEL_NR_TTL_EXCEEDED] = {
	[MODEL_TTL_DROP] = "drop",
	[MODEL_TTL_ANSWER] = "answer",
};
const char *const model_too_big_names[MODEL_NR_TOO_BIG] = {
	[MODEL_TOO_BIG_DROP] = "drop",
	[MODEL_TOO_BIG_SEND] = "send",
};

const char *const model_connections_names[MODEL_NR_CONNECTIONS] = {
	[MODEL_TRACKED] = "tracked",
	[MODEL_STATELESS] = "stateless",
};
const char *const model_when_names[MODEL_NR_WHENS] = {
	[MODEL_WHEN_ANY] = "any",
	[MODEL_WHEN_ALL] = "all",
};

void model_backend_clear(struct model_backend *backend)
{
	free(backend->name);
	*backend = (struct model_backend){};
}

void model_pool_clear(struct model_pool *pool)
{
	for (size_t i = 0; i < pool->n_backends; i++)
		model_backend_clear(&pool->backends[i]);
	free(pool->backends);
	model_health_free(pool->health);
	free(pool->algorithm);
	free(pool->name);
	*pool = (struct model_pool){};
}

void model_service_clear(struct model_service *service)
{
	free(service->name);
	free(service->pool);
	free(service->ports);
	*service = (struct model_service){};
}

void model_free(struct model *model)
{
	if (!model)
		return;
	for (size_t i = 0; i < model->n_pools; i++)
		model_pool_clear(&model->pools[i]);
	for (size_t i = 0; i < model->n_services; i++)
		model_service_clear(&model->services[i]);
	free(model->pools);
	free(model->services);
	free(model->key_file);
	explicit_bzero(model->key, sizeof(model->key));
	free(model);
}

static int copy_backend(const struct model_backend *from, struct model_backend *to)
{
	*to = (struct model_backend){.address = from->address, .weight = from->weight};
	to->name = strdup(from->name);
	return to->name ? 0 : -ENOMEM;
}

/* On failure *to holds what model_pool_clear() can free; the same goes for copy_service(). */
static int copy_pool(const struct model_pool *from, struct model_pool *to)
{
	*to = (struct model_pool){
		.slots = from->slots,
		.balance_percent = from->balance_percent,
		.vnodes = from->vnodes,
		.encapsulation = from->encapsulation,
		.gue_port = from->gue_port,
		.udp6_checksum = from->udp6_checksum,
		.source4 = from->source4,
		.source6 = from->source6,
		.connections = from->connections,
		.settle = from->settle,
		.learn = from->learn,
		.drain_timeout = from->drain_timeout,
		.slow_start = from->slow_start,
	};
	to->source4.place = to->source6.place = (struct model_place){};
	to->name = strdup(from->name);
	to->algorithm = strdup(from->algorithm);
	to->backends = calloc(from->n_backends + 1, sizeof(*to->backends));
	if (!to->name || !to->algorithm || !to->backends)
		return -ENOMEM;
	if (from->health && model_health_copy(from->health, &to->health))
		return -ENOMEM;
	while (to->n_backends < from->n_backends) {
		size_t i = to->n_backends;

		if (copy_backend(&from->backends[i], &to->backends[i]))
			return -ENOMEM;
		to->n_backends++;
	}
	return 0;
}

static int copy_service(const struct model_service *from, struct model_service *to)
{
	*to = (struct model_service){
		.address = from->address,
		.protocol = from->protocol,
		.any_port = from->any_port,
		.n_ports = from->n_ports,
		.hash = from->hash,
		.unknown_port = from->unknown_port,
		.echo = from->echo,
	};
	to->name = strdup(from->name);
	to->pool = strdup(from->pool);
	to->ports = calloc(from->n_ports + 1, sizeof(*to->ports));
	if (!to->name || !to->pool || !to->ports)
		return -ENOMEM;
	if (from->n_ports)
		memcpy(to->ports, from->ports, from->n_ports * sizeof(*to->ports));
	return 0;
}

static int copy_members(const struct model *from, struct model *to)
{
	if (from->key_file) {
		to->key_file = strdup(from->key_file);
		if (!to->key_file)
			return -ENOMEM;
	}
	to->pools = calloc(from->n_pools + 1, sizeof(*to->pools));
	to->services = calloc(from->n_services + 1, sizeof(*to->services));
	if (!to->pools || !to->services)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_pools; i++) {
		to->n_pools++;
		if (copy_pool(&from->pools[i], &to->pools[i]))
			return -ENOMEM;
	}
	for (size_t i = 0; i < from->n_services; i++) {
		to->n_services++;
		if (copy_service(&from->services[i], &to->services[i]))
			return -ENOMEM;
	}
	return 0;
}

int model_copy(const struct model *from, struct model **out)
{
	struct model *model = calloc(1, sizeof(*model));
	int ret;

	if (!model)
		return -ENOMEM;
	ret = copy_members(from, model);
	if (ret) {
		model_free(model);
		return ret;
	}
	model->settings = from->settings;
	model->has_key = from->has_key;
	model->policy = from->policy;
	model->announce = from->announce;
	memcpy(model->key, from->key, sizeof(model->key));
	*out = model;
	return 0;
}

/*
 * Pools, backends and services all begin with their name, so that the sorted arrays share the code below.
 * find() gives the index of the first element whose name is not less than `name`.
 */
_Static_assert(offsetof(struct model_pool, name) == 0, "find() reads the name there");
_Static_assert(offsetof(struct model_backend, name) == 0, "find() reads the name there");
_Static_assert(offsetof(struct model_service, name) == 0, "find() reads the name there");

static const char *name_at(const void *array, size_t index, size_t size)
{
	return *(char *const *)((const char *)array + index * size);
}

static size_t find(const void *array, size_t count, size_t size, const char *name, bool *found)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(name_at(array, middle, size), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = low < count && strcmp(name_at(array, low, size), name) == 0;
	return low;
}

static int insert(void **array, size_t *count, size_t size, const void *element)
{
	bool found;
	size_t at = find(*array, *count, size, *(char *const *)element, &found);
	char *grown;

	if (found)
		return -EEXIST;
	grown = reallocarray(*array, *count + 1, size);
	if (!grown)
		return -ENOMEM;
	memmove(grown + (at + 1) * size, grown + at * size, (*count - at) * size);
	memcpy(grown + at * size, element, size);
	*array = grown;
	(*count)++;
	return 0;
}

static void *lookup(const void *array, size_t count, size_t size, const char *name)
{
	bool found;
	size_t at = find(array, count, size, name, &found);

	return found ? (char *)array + at * size : NULL;
}

/* Closes the gap of a cleared element. */
static void close_gap(void *array, size_t *count, size_t size, void *element)
{
	char *next = (char *)element + size;

	memmove(element, next, (size_t)((char *)array + *count * size - next));
	(*count)--;
}

struct model_pool *model_pool(const struct model *model, const char *name)
{
	return lookup(model->pools, model->n_pools, sizeof(*model->pools), name);
}

struct model_service *model_service(const struct model *model, const char *name)
{
	return lookup(model->services, model->n_services, sizeof(*model->services), name);
}

struct model_backend *model_backend(const struct model_pool *pool, const char *name)
{
	return lookup(pool->backends, pool->n_backends, sizeof(*pool->backends), name);
}

int model_add_pool(struct model *model, struct model_pool *pool)
{
	return insert((void **)&model->pools, &model->n_pools, sizeof(*pool), pool);
}

int model_add_backend(struct model_pool *pool, struct model_backend *backend)
{
	return insert((void **)&pool->backends, &pool->n_backends, sizeof(*backend), backend);
}

int model_add_service(struct model *model, struct model_service *service)
{
	return insert((void **)&model->services, &model->n_services, sizeof(*service), service);
}

int model_del_pool(struct model *model, const char *name)
{
	struct model_pool *pool = model_pool(model, name);

	if (!pool)
		return -ENOENT;
	model_pool_clear(pool);
	close_gap(model->pools, &model->n_pools, sizeof(*pool), pool);
	return 0;
}

int model_del_backend(struct model_pool *pool, const char *name)
{
	struct model_backend *backend = model_backend(pool, name);

	if (!backend)
		return -ENOENT;
	model_backend_clear(backend);
	close_gap(pool->backends, &pool->n_backends, sizeof(*backend), backend);
	return 0;
}

int model_del_service(struct model *model, const char *name)
{
	struct model_service *service = model_service(model, name);

	if (!service)
		return -ENOENT;
	model_service_clear(service);
	close_gap(model->services, &model->n_services, sizeof(*service), service);
	return 0;
}
