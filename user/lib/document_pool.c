/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "document_fields.h"

static struct model_place place_or(struct model_place place, struct model_place fallback)
{
	return place.line ? place : fallback;
}

static bool read_backend_name(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_backend *backend = object;

	backend->place = node_place(value);
	return read_text(reader, value, "name", &backend->name);
}

static bool read_backend_address(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_backend *backend = object;

	backend->address_place = node_place(value);
	return read_address(reader, value, "address", &backend->address);
}

static bool read_weight(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_backend *backend = object;

	backend->weight_place = node_place(value);
	return read_number(reader, value, "weight", MODEL_WEIGHT_MAX, "a whole number from 0 to 65535",
			   &backend->weight);
}

static const struct field backend_fields[] = {
	{"name", read_backend_name, "give it a name of its own in the pool"},
	{"address", read_backend_address, "give the address that packets are encapsulated to"},
	{"weight", read_weight, NULL},
	{"port", NULL, "encapsulation keeps the client's port, so the backend listens on the service's; remove it"},
	{"ports", NULL, "encapsulation keeps the client's port, so the backend listens on the service's; remove it"},
};

/* A pool while it is read. */
struct pool_reading {
	struct model_pool pool;
	bool lost_backends; /* some were wrong, so that nothing can be said about families */
};

static void read_backend(struct reader *reader, const struct yaml_node *item, void *object)
{
	struct pool_reading *reading = object;
	struct model_pool *pool = &reading->pool;
	struct model_backend backend = {.weight = MODEL_DEFAULT_WEIGHT}, *slot = NULL;

	if (read_fields(reader, item, "backend", backend_fields, sizeof(backend_fields) / sizeof(*backend_fields),
			&backend))
		slot = reader_append(reader, (void **)&pool->backends, pool->n_backends, sizeof(backend));
	if (!slot) {
		model_backend_clear(&backend);
		reading->lost_backends = true;
		return;
	}
	backend.weight_place = place_or(backend.weight_place, backend.place);
	*slot = backend;
	pool->n_backends++;
}

static bool read_backends(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct pool_reading *reading = object;

	if (read_list(reader, value, "backends", read_backend, reading))
		return true;
	reading->lost_backends = true;
	return false;
}

static bool read_pool_name(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = &((struct pool_reading *)object)->pool;

	pool->place = node_place(value);
	return read_text(reader, value, "name", &pool->name);
}

static bool read_algorithm(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = &((struct pool_reading *)object)->pool;

	pool->algorithm_place = node_place(value);
	return read_text(reader, value, "algorithm", &pool->algorithm);
}

static bool read_slots(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = &((struct pool_reading *)object)->pool;

	pool->slots_place = node_place(value);
	return read_number(reader, value, "size", UINT32_MAX, "a prime from 2 to 1048573", &pool->slots);
}

static bool read_balance(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = &((struct pool_reading *)object)->pool;

	pool->balance_place = node_place(value);
	return read_percent(reader, value, "balance", 100, 100 * MODEL_BALANCE_MAX,
			    "a number from 1 to 100 with at most two decimals, such as 1.05", &pool->balance_percent);
}

static bool read_vnodes(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = &((struct pool_reading *)object)->pool;

	pool->vnodes_place = node_place(value);
	if (!read_number(reader, value, "vnodes", MODEL_VNODES_MAX, "a whole number from 1 to 100000", &pool->vnodes))
		return false;
	if (!pool->vnodes)
		complain_at(reader->report, value, "vnodes is 0: write a whole number from 1 to 100000, in decimal");
	return pool->vnodes > 0;
}

static const struct field table_fields[] = {
	{"algorithm", read_algorithm, NULL},
	{"size", read_slots, NULL},
	{"balance", read_balance, NULL},
	{"vnodes", read_vnodes, NULL},
};

static bool read_table(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_fields(reader, value, "table", table_fields, sizeof(table_fields) / sizeof(*table_fields), object);
}

static bool read_pool_encapsulation(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_encapsulation(reader, value, &((struct pool_reading *)object)->pool);
}

static bool read_connections(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = &((struct pool_reading *)object)->pool;
	unsigned int connections;

	if (!read_choice(reader, value, "connections", model_connections_names, MODEL_NR_CONNECTIONS, &connections))
		return false;
	pool->connections = connections;
	return true;
}

static bool read_settle(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = &((struct pool_reading *)object)->pool;

	pool->settle_place = node_place(value);
	return read_duration(reader, value, "settle", &pool->settle);
}

static bool read_learn(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = &((struct pool_reading *)object)->pool;

	pool->learn_place = node_place(value);
	return read_duration(reader, value, "learn", &pool->learn);
}

static bool read_drain_timeout(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = &((struct pool_reading *)object)->pool;

	return read_duration(reader, value, "drain-timeout", &pool->drain_timeout);
}

static bool read_slow_start(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = &((struct pool_reading *)object)->pool;

	return read_duration(reader, value, "slow-start", &pool->slow_start);
}

static bool read_pool_health(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_health(reader, value, &((struct pool_reading *)object)->pool.health);
}

static const struct field pool_fields[] = {
	{"name", read_pool_name, "give it a name of its own, for services to point at"},
	{"table", read_table, NULL},
	{"encapsulation", read_pool_encapsulation, NULL},
	{"connections", read_connections, NULL},
	{"settle", read_settle, NULL},
	{"learn", read_learn, NULL},
	{"drain-timeout", read_drain_timeout, NULL},
	{"slow-start", read_slow_start, NULL},
	{"health", read_pool_health, NULL},
	{"backends", read_backends, "list its backends, or write \"backends: []\""},
};

static void read_pool(struct reader *reader, const struct yaml_node *item, void *object)
{
	struct model *model = reader->model;
	struct pool_reading reading = {.pool = {.slots = MODEL_DEFAULT_SLOTS,
						.settle = MODEL_DEFAULT_SETTLE,
						.learn = MODEL_DEFAULT_LEARN,
						.drain_timeout = MODEL_DEFAULT_DRAIN_TIMEOUT}};
	struct model_pool *pool = &reading.pool, *slot = NULL;

	(void)object;
	read_fields(reader, item, "pool", pool_fields, sizeof(pool_fields) / sizeof(*pool_fields), &reading);
	if (!pool->algorithm)
		pool->algorithm = strdup(MODEL_DEFAULT_ALGORITHM);
	if (!pool->algorithm)
		reader_no_memory(reader);
	else if (pool->name)
		slot = reader_append(reader, (void **)&model->pools, model->n_pools, sizeof(*pool));
	if (!slot) {
		model_pool_clear(pool);
		return;
	}
	pool->algorithm_place = place_or(pool->algorithm_place, pool->place);
	pool->slots_place = place_or(pool->slots_place, pool->place);
	pool->settle_place = place_or(pool->settle_place, pool->place);
	if (!pool->learn_place.line && pool->learn > pool->settle)
		pool->learn = pool->settle;
	pool->learn_place = place_or(pool->learn_place, pool->settle_place);
	if (reading.lost_backends)
		pool->source4.given = pool->source6.given = false;
	*slot = *pool;
	model->n_pools++;
}

bool read_pools(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_list(reader, value, "pools", read_pool, object);
}
