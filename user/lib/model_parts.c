/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Backends and services compared, and all of a model written, without JSON objects: there are many of them.  Whoever
 * gives them a member finds here, by the sizes, what else must know it.
 */
#include <netinet/in.h>
#include <string.h>

#include "addr.h"
#include "duration.h"
#include "model_parts.h"

_Static_assert(sizeof(struct model_backend) == 56, "model_same_backend() and write_backend() know all members");
_Static_assert(sizeof(struct model_service) == 120, "model_same_service() and write_service() know all members");
_Static_assert(sizeof(struct model_pool) == 224, "model_write_pool() knows all members");

bool model_same_backend(const struct model_backend *a, const struct model_backend *b)
{
	return a->weight == b->weight && addr_equal(&a->address, &b->address) && !strcmp(a->name, b->name);
}

static bool same_ports(const struct model_service *a, const struct model_service *b)
{
	if (a->any_port != b->any_port || a->n_ports != b->n_ports)
		return false;
	return !a->n_ports || !memcmp(a->ports, b->ports, a->n_ports * sizeof(*a->ports));
}

bool model_same_service(const struct model_service *a, const struct model_service *b)
{
	return addr_equal(&a->address, &b->address) && a->protocol == b->protocol && same_ports(a, b) &&
	       a->hash == b->hash && a->unknown_port == b->unknown_port && a->echo == b->echo &&
	       !strcmp(a->pool, b->pool) && !strcmp(a->name, b->name);
}

static void write_string(struct text *out, const char *key, const char *value)
{
	text_adds(out, ",\"");
	text_adds(out, key);
	text_adds(out, "\":\"");
	text_adds(out, value);
	text_adds(out, "\"");
}

static void write_key(struct text *out, const char *key)
{
	text_adds(out, ",\"");
	text_adds(out, key);
	text_adds(out, "\":");
}

static void write_number(struct text *out, const char *key, uint64_t number)
{
	write_key(out, key);
	text_number(out, number);
}

static void write_duration(struct text *out, const char *key, uint32_t milliseconds)
{
	char text[DURATION_TEXT_MAX];

	write_string(out, key, duration_format(milliseconds, text));
}

static void write_name(struct text *out, const char *name)
{
	text_adds(out, "{\"name\":\"");
	text_adds(out, name);
	text_adds(out, "\"");
}

static void write_backend(const struct model_backend *backend, struct text *out)
{
	char address[ADDR_TEXT_MAX];

	write_name(out, backend->name);
	write_string(out, "address", addr_format(&backend->address, address));
	write_number(out, "weight", backend->weight);
	text_adds(out, "}");
}

static void write_table(const struct model_pool *pool, struct text *out)
{
	text_adds(out, ",\"table\":{\"algorithm\":\"");
	text_adds(out, pool->algorithm);
	text_adds(out, "\"");
	write_number(out, "size", pool->slots);
	if (pool->balance_percent) {
		write_key(out, "balance");
		text_json(out, json_real(pool->balance_percent / 100.0));
	}
	if (pool->vnodes)
		write_number(out, "vnodes", pool->vnodes);
	text_adds(out, "}");
}

static void write_encapsulation(const struct model_pool *pool, struct text *out)
{
	text_adds(out, ",\"encapsulation\":{\"type\":\"");
	text_adds(out, model_encapsulation_names[pool->encapsulation]);
	text_adds(out, "\"");
	if (pool->gue_port)
		write_number(out, "port", pool->gue_port);
	if (pool->udp6_checksum != MODEL_UDP6_COMPUTED)
		write_string(out, "udp6-checksum", model_udp6_checksum_names[pool->udp6_checksum]);
	if (pool->source4.given || pool->source6.given) {
		write_key(out, "source");
		text_json(out, model_sources_json(pool));
	}
	text_adds(out, "}");
}

void model_write_pool(const struct model_pool *pool, struct text *out)
{
	write_name(out, pool->name);
	write_table(pool, out);
	write_encapsulation(pool, out);
	write_string(out, "connections", model_connections_names[pool->connections]);
	write_duration(out, "settle", pool->settle);
	write_duration(out, "learn", pool->learn);
	write_duration(out, "drain-timeout", pool->drain_timeout);
	if (pool->slow_start)
		write_duration(out, "slow-start", pool->slow_start);
	if (pool->health) {
		write_key(out, "health");
		text_json(out, model_health_json(pool->health));
	}
}

static void write_pool(const struct model_pool *pool, struct text *out)
{
	model_write_pool(pool, out);
	text_adds(out, ",\"backends\":[");
	for (size_t i = 0; i < pool->n_backends; i++) {
		if (i)
			text_adds(out, ",");
		write_backend(&pool->backends[i], out);
	}
	text_adds(out, "]}");
}

static void write_ports(const struct model_service *service, struct text *out)
{
	if (service->any_port) {
		write_string(out, "ports", "any");
		return;
	}
	write_key(out, "ports");
	text_adds(out, "[");
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct model_ports *ports = &service->ports[i];
		bool range = ports->first != ports->last;

		text_adds(out, !i ? (range ? "\"" : "") : (range ? ",\"" : ","));
		text_number(out, ports->first);
		if (!range)
			continue;
		text_adds(out, "-");
		text_number(out, ports->last);
		text_adds(out, "\"");
	}
	text_adds(out, "]");
}

static void write_service(const struct model_service *service, struct text *out)
{
	char address[ADDR_TEXT_MAX];

	write_name(out, service->name);
	write_string(out, "address", addr_format(&service->address, address));
	write_string(out, "protocol", service->protocol == IPPROTO_UDP ? "udp" : "tcp");
	write_ports(service, out);
	write_string(out, "pool", service->pool);
	write_string(out, "hash", model_hash_names[service->hash]);
	write_string(out, "unknown-port", model_unknown_port_names[service->unknown_port]);
	write_string(out, "echo", model_echo_names[service->echo]);
	text_adds(out, "}");
}

void model_write(const struct model *model, struct text *out)
{
	json_t *head = model_head_json(model, MODEL_WITH_KEY);

	if (model->has_key && model->key_file)
		json_object_del(head, "hash-key-file");
	text_open(out, head);
	text_adds(out, ",\"pools\":[");
	for (size_t i = 0; i < model->n_pools; i++) {
		if (i)
			text_adds(out, ",");
		write_pool(&model->pools[i], out);
	}
	text_adds(out, "],\"services\":[");
	for (size_t i = 0; i < model->n_services; i++) {
		if (i)
			text_adds(out, ",");
		write_service(&model->services[i], out);
	}
	text_adds(out, "]}");
}
