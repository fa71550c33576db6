/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "addr.h"
#include "duration.h"
#include "model_parts.h"

/*
 * jansson's *_new functions take the value even where they fail, and fail on NULL, so a chain of them needs one check
 * at the end.
 */
static int set_address(json_t *object, const char *key, const union shunt_address *addr)
{
	char text[ADDR_TEXT_MAX];

	return json_object_set_new(object, key, json_string(addr_format(addr, text)));
}

static json_t *or_nothing(json_t *value, int failed)
{
	if (!failed)
		return value;
	json_decref(value);
	return NULL;
}

json_t *model_backend_json(const struct model_backend *backend)
{
	json_t *object = json_object();
	int failed = json_object_set_new(object, "name", json_string(backend->name));

	failed |= set_address(object, "address", &backend->address);
	failed |= json_object_set_new(object, "weight", json_integer(backend->weight));
	return or_nothing(object, failed);
}

json_t *model_sources_json(const struct model_pool *pool)
{
	const struct model_source *sources[] = {&pool->source4, &pool->source6};
	json_t *array = json_array();
	char text[ADDR_TEXT_MAX];
	int failed = 0;

	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
		if (sources[i]->given)
			failed |= json_array_append_new(array, json_string(model_source_text(sources[i], text)));
	}
	return or_nothing(array, failed);
}

static json_t *encapsulation_json(const struct model_pool *pool)
{
	json_t *object = json_object();
	int failed = json_object_set_new(object, "type", json_string(model_encapsulation_names[pool->encapsulation]));

	if (pool->gue_port)
		failed |= json_object_set_new(object, "port", json_integer(pool->gue_port));
	if (pool->udp6_checksum != MODEL_UDP6_COMPUTED)
		failed |= json_object_set_new(object, "udp6-checksum",
					      json_string(model_udp6_checksum_names[pool->udp6_checksum]));
	if (pool->source4.given || pool->source6.given)
		failed |= json_object_set_new(object, "source", model_sources_json(pool));
	return or_nothing(object, failed);
}

static int set_duration(json_t *object, const char *key, uint32_t milliseconds)
{
	char text[DURATION_TEXT_MAX];

	return json_object_set_new(object, key, json_string(duration_format(milliseconds, text)));
}

json_t *model_pool_json(const struct model_pool *pool)
{
	json_t *object = json_object(), *table = json_object();
	int failed = json_object_set_new(object, "name", json_string(pool->name));

	failed |= json_object_set_new(table, "algorithm", json_string(pool->algorithm));
	failed |= json_object_set_new(table, "size", json_integer(pool->slots));
	if (pool->balance_percent)
		failed |= json_object_set_new(table, "balance", json_real(pool->balance_percent / 100.0));
	if (pool->vnodes)
		failed |= json_object_set_new(table, "vnodes", json_integer(pool->vnodes));
	failed |= json_object_set_new(object, "table", table);
	failed |= json_object_set_new(object, "encapsulation", encapsulation_json(pool));
	failed |= json_object_set_new(object, "connections", json_string(model_connections_names[pool->connections]));
	failed |= set_duration(object, "settle", pool->settle);
	failed |= set_duration(object, "learn", pool->learn);
	failed |= set_duration(object, "drain-timeout", pool->drain_timeout);
	if (pool->slow_start)
		failed |= set_duration(object, "slow-start", pool->slow_start);
	if (pool->health)
		failed |= json_object_set_new(object, "health", model_health_json(pool->health));
	return or_nothing(object, failed);
}

static json_t *whole_pool_json(const struct model_pool *pool)
{
	json_t *object = model_pool_json(pool), *backends = json_array();
	int failed = 0;

	for (size_t i = 0; i < pool->n_backends; i++)
		failed |= json_array_append_new(backends, model_backend_json(&pool->backends[i]));
	failed |= json_object_set_new(object, "backends", backends);
	return or_nothing(object, failed);
}

static json_t *ports_json(const struct model_service *service)
{
	json_t *array;
	char text[16];
	int failed = 0;

	if (service->any_port)
		return json_string("any");
	array = json_array();
	for (size_t i = 0; i < service->n_ports; i++) {
		const struct model_ports *ports = &service->ports[i];

		snprintf(text, sizeof(text), "%u-%u", ports->first, ports->last);
		failed |= json_array_append_new(array, ports->first == ports->last ? json_integer(ports->first)
										   : json_string(text));
	}
	return or_nothing(array, failed);
}

json_t *model_service_json(const struct model_service *service)
{
	const char *protocol = service->protocol == IPPROTO_UDP ? "udp" : "tcp";
	const char *unknown_port = model_unknown_port_names[service->unknown_port];
	json_t *object = json_object();
	int failed = json_object_set_new(object, "name", json_string(service->name));

	failed |= set_address(object, "address", &service->address);
	failed |= json_object_set_new(object, "protocol", json_string(protocol));
	failed |= json_object_set_new(object, "ports", ports_json(service));
	failed |= json_object_set_new(object, "pool", json_string(service->pool));
	failed |= json_object_set_new(object, "hash", json_string(model_hash_names[service->hash]));
	failed |= json_object_set_new(object, "unknown-port", json_string(unknown_port));
	failed |= json_object_set_new(object, "echo", json_string(model_echo_names[service->echo]));
	return or_nothing(object, failed);
}

static json_t *settings_json(const struct model_settings *settings)
{
	return json_pack("{s:s, s:s, s:i}", "ttl-exceeded", model_ttl_exceeded_names[settings->ttl_exceeded],
			 "too-big-without-df", model_too_big_names[settings->too_big_without_df], "error-rate",
			 (int)settings->error_rate);
}

static int set_key(json_t *object, const struct model *model)
{
	char text[2 * MODEL_KEY_BYTES + 1];
	int failed;

	for (size_t i = 0; i < MODEL_KEY_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", model->key[i]);
	failed = json_object_set_new(object, "hash-key", json_string(text));
	explicit_bzero(text, sizeof(text));
	return failed;
}

static json_t *policy_json(const struct model_policy *policy)
{
	json_t *object = json_object();
	char text[16];
	int failed = json_object_set_new(object, "allow-empty", json_boolean(policy->allow_empty));

	if (policy->has_max_moved) {
		snprintf(text, sizeof(text), "%u%%", policy->max_moved_percent);
		failed |= json_object_set_new(object, "max-moved", json_string(text));
	}
	if (policy->has_max_leaving)
		failed |= json_object_set_new(object, "max-leaving", json_integer(policy->max_leaving));
	return or_nothing(object, failed);
}

static json_t *announce_json(const struct model_announce *announce)
{
	json_t *object = json_object();
	int failed = json_object_set_new(object, "when", json_string(model_when_names[announce->when]));

	if (announce->table)
		failed |= json_object_set_new(object, "table", json_integer(announce->table));
	if (*announce->hook)
		failed |= json_object_set_new(object, "hook", json_string(announce->hook));
	return or_nothing(object, failed);
}

json_t *model_head_json(const struct model *model, enum model_json_flags flags)
{
	json_t *object = json_object();
	int failed = json_object_set_new(object, "version", json_integer(1));

	if (model->key_file)
		failed |= json_object_set_new(object, "hash-key-file", json_string(model->key_file));
	if (model->has_key && flags == MODEL_WITH_KEY)
		failed |= set_key(object, model);
	if (model->has_key && !model->key_file && flags == MODEL_KEEP_KEY)
		failed |= json_object_set_new(object, "hash-key", json_string(MODEL_KEY_KEEP));
	if (model->policy.given)
		failed |= json_object_set_new(object, "policy", policy_json(&model->policy));
	failed |= json_object_set_new(object, "settings", settings_json(&model->settings));
	if (model->announce.given)
		failed |= json_object_set_new(object, "announce", announce_json(&model->announce));
	return or_nothing(object, failed);
}

json_t *model_json(const struct model *model, enum model_json_flags flags)
{
	json_t *object = model_head_json(model, flags), *pools = json_array(), *services = json_array();
	int failed = 0;

	for (size_t i = 0; i < model->n_pools; i++)
		failed |= json_array_append_new(pools, whole_pool_json(&model->pools[i]));
	failed |= json_object_set_new(object, "pools", pools);
	for (size_t i = 0; i < model->n_services; i++)
		failed |= json_array_append_new(services, model_service_json(&model->services[i]));
	failed |= json_object_set_new(object, "services", services);
	return or_nothing(object, failed);
}
