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

static bool has_endpoint(const struct asked *asked, const union shunt_address *address)
{
	for (size_t i = 0; i < asked->n; i++)
		if (addr_equal(&asked->endpoints[i].address, address))
			return true;
	return false;
}

/* A service of the checks' protocol is preferred: a port of its own says otherwise. */
static bool suits(const struct model_service *service, const struct model_health *health)
{
	bool stream = model_check_streams(health->type);

	if (health->port || health->type == MODEL_CHECK_EXEC)
		return true;
	return service->n_ports && (service->protocol == IPPROTO_TCP) == stream;
}

/* The service's first port; https asks 443 where that is one of several. */
static uint16_t port_of(const struct model_health *health, const struct model_service *service)
{
	for (size_t i = 0; health->type == MODEL_CHECK_HTTPS && i < service->n_ports; i++)
		if (service->ports[i].first <= HTTPS_PORT && service->ports[i].last >= HTTPS_PORT)
			return HTTPS_PORT;
	return service->n_ports ? service->ports[0].first : 0;
}

/* Where the backend's own address is asked, the first service says which port. */
static void ask_service(struct asked *asked, const struct model_service *service, const struct model_health *health)
{
	uint32_t port = health->port;

	if (asked->n == (asked->direct ? 1 : CHECKS_ADDRESSES_MAX) || !suits(service, health) ||
	    has_endpoint(asked, &service->address))
		return;
	if (!port)
		port = port_of(health, service);
	asked->endpoints[asked->n++] = (struct endpoint){service->address, (uint16_t)port};
}

static uint64_t tag_of(const struct model_health *health)
{
	json_t *json = model_health_json(health);
	char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	uint64_t tag = text ? XXH64(text, strlen(text), 0) : 0;

	free(text);
	json_decref(json);
	return tag;
}

struct asked *checks_asked(const struct model *model)
{
	struct asked *asked = calloc(model->n_pools + 1, sizeof(*asked));

	for (size_t i = 0; asked && i < model->n_pools; i++) {
		const struct model_health *health = model->pools[i].health;

		if (!health)
			continue;
		asked[i].tag = tag_of(health);
		asked[i].direct = health->via == MODEL_VIA_DIRECT || health->type == MODEL_CHECK_EXEC;
	}
	for (size_t i = 0; asked && i < model->n_services; i++) {
		const struct model_pool *pool = model_pool(model, model->services[i].pool);

		if (pool && pool->health)
			ask_service(&asked[pool - model->pools], &model->services[i], pool->health);
	}
	for (size_t i = 0; asked && i < model->n_pools; i++) {
		const struct model_health *health = model->pools[i].health;

		if (health && asked[i].direct && !asked[i].n && (health->port || health->type == MODEL_CHECK_EXEC))
			asked[i].endpoints[asked[i].n++].port = (uint16_t)health->port;
	}
	return asked;
}

uint64_t checks_identity(const struct asked *asked, const struct model_backend *backend)
{
	XXH64_state_t state;

	XXH64_reset(&state, asked->tag);
	XXH64_update(&state, &backend->address, sizeof(backend->address));
	for (size_t i = 0; i < asked->n; i++) {
		if (!asked->direct)
			XXH64_update(&state, &asked->endpoints[i].address, sizeof(asked->endpoints[i].address));
		XXH64_update(&state, &asked->endpoints[i].port, sizeof(asked->endpoints[i].port));
	}
	return XXH64_digest(&state);
}

static uint64_t seed_of(const struct target *target)
{
	return XXH64(target->pool, strlen(target->pool), XXH64(target->backend, strlen(target->backend), 0));
}

struct target *checks_target_new(const struct model_pool *pool, const struct model_backend *backend,
				 const struct asked *asked)
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
	target->n_endpoints = asked->n;
	memcpy(target->endpoints, asked->endpoints, sizeof(target->endpoints));
	if (asked->direct)
		target->endpoints[0].address = backend->address;
	target->identity = checks_identity(asked, backend);
	target->seed = seed_of(target);
	return target;
}
