/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is asked of a backend, from the model. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* for the state on the stack */
#include <xxhash.h>

#include "addr.h"
#include "checks.h"

#define HTTPS_PORT 443u

void checks_target_free(struct target *target)
{
	if (!target)
		return;
	free(target->pool);
	free(target->backend);
	model_health_free(target->health);
	free(target);
}

static bool has_endpoint(const struct target *target, const union shunt_address *address)
{
	for (size_t i = 0; i < target->n_endpoints; i++)
		if (addr_equal(&target->endpoints[i].address, address))
			return true;
	return false;
}

/* A service of the checks' protocol is preferred: a port of its own says otherwise. */
static bool suits(const struct model_service *service, const struct model_pool *pool)
{
	bool stream = model_check_streams(pool->health->type);

	if (strcmp(service->pool, pool->name) != 0)
		return false;
	if (pool->health->port || pool->health->type == MODEL_CHECK_EXEC)
		return true;
	return service->n_ports && (service->protocol == IPPROTO_TCP) == stream;
}

static bool is_local(const struct locals *locals, const union shunt_address *address)
{
	for (size_t i = 0; i < locals->n; i++)
		if (addr_equal(&locals->list[i].address, address))
			return true;
	return false;
}

/* The service's first port; https asks 443 where that is one of several. */
static uint16_t port_of(const struct model_health *health, const struct model_service *service)
{
	for (size_t i = 0; health->type == MODEL_CHECK_HTTPS && i < service->n_ports; i++)
		if (service->ports[i].first <= HTTPS_PORT && service->ports[i].last >= HTTPS_PORT)
			return HTTPS_PORT;
	return service->n_ports ? service->ports[0].first : 0;
}

static void find_endpoints(struct target *target, const struct model *model, const struct model_pool *pool,
			   const struct model_backend *backend, const struct locals *locals)
{
	bool direct = pool->health->via == MODEL_VIA_DIRECT || pool->health->type == MODEL_CHECK_EXEC;

	for (size_t i = 0; i < model->n_services && target->n_endpoints < CHECKS_ADDRESSES_MAX; i++) {
		const struct model_service *service = &model->services[i];
		const union shunt_address *address = direct ? &backend->address : &service->address;
		uint32_t port = pool->health->port ? pool->health->port : port_of(pool->health, service);

		if (!suits(service, pool) || has_endpoint(target, address))
			continue;
		target->endpoints[target->n_endpoints++] =
			(struct endpoint){*address, (uint16_t)port, !direct && is_local(locals, address)};
	}
	if (direct && !target->n_endpoints && (pool->health->port || pool->health->type == MODEL_CHECK_EXEC))
		target->endpoints[target->n_endpoints++] =
			(struct endpoint){backend->address, (uint16_t)pool->health->port, false};
}

static uint64_t identity_of(const struct target *target, const struct model_backend *backend)
{
	json_t *json = model_health_json(target->health);
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	XXH64_state_t state;

	XXH64_reset(&state, 0);
	if (text)
		XXH64_update(&state, text, strlen(text));
	XXH64_update(&state, &backend->address, sizeof(backend->address));
	for (size_t i = 0; i < target->n_endpoints; i++) {
		XXH64_update(&state, &target->endpoints[i].address, sizeof(target->endpoints[i].address));
		XXH64_update(&state, &target->endpoints[i].port, sizeof(target->endpoints[i].port));
	}
	free(text);
	json_decref(json);
	return XXH64_digest(&state);
}

static uint64_t seed_of(const struct target *target)
{
	return XXH64(target->pool, strlen(target->pool), XXH64(target->backend, strlen(target->backend), 0));
}

struct target *checks_target_new(const struct model *model, const struct model_pool *pool,
				 const struct model_backend *backend, const struct locals *locals)
{
	const struct model_health *health = pool->health;
	struct target *target = calloc(1, sizeof(*target));

	if (!target)
		return NULL;
	target->check.fd = -1;
	target->pool = strdup(pool->name);
	target->backend = strdup(backend->name);
	if (!target->pool || !target->backend || model_health_copy(health, &target->health)) {
		checks_target_free(target);
		return NULL;
	}
	target->params = (struct health_params){
		.interval = health->interval,
		.rise = health->rise,
		.fall = health->fall,
		.hold_down = health->hold_down,
		.hold_down_max = health->hold_down_max,
	};
	target->counts = backend->weight;
	find_endpoints(target, model, pool, backend, locals);
	target->identity = identity_of(target, backend);
	target->seed = seed_of(target);
	return target;
}
