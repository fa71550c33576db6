/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the engine tells people. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine_internal.h"

const struct model *engine_model(const struct engine *engine)
{
	return engine->state.model;
}

const struct maps *engine_maps(const struct engine *engine)
{
	return &engine->pinned.maps;
}

uint64_t engine_revision(const struct engine *engine)
{
	return engine->state.revision;
}

const struct origin *engine_origin(const struct engine *engine)
{
	return &engine->state.origin;
}

const struct state_pending *engine_pending(const struct engine *engine)
{
	return &engine->state.pending;
}

uint64_t engine_document_tag(const struct engine *engine)
{
	return engine->state.document_tag;
}

static const struct model_pool *find_pool(const struct engine *engine, const char *name, struct state_pool **ids)
{
	const struct model *model = engine->state.model;
	const struct model_pool *pool = model ? model_pool(model, name) : NULL;

	if (pool)
		*ids = &engine->state.pools[pool - model->pools];
	return pool;
}

int engine_pool_info(const struct engine *engine, const char *name, struct engine_pool_info *out)
{
	const struct model *model = engine->state.model;
	const struct live_table *live;
	const struct model_pool *pool;
	struct engine_pool_info info = {};
	struct state_pool *ids;

	pool = find_pool(engine, name, &ids);
	if (!pool)
		return -ENOENT;
	info.index = ids->index;
	if (ids->index < engine->pinned.maps.meta.pools) {
		live = pinned_table(&engine->pinned, engine_table_class(pool->slots), ids->index);
		info.published = live->published;
		info.epoch = live->header.epoch;
		info.digest = live->header.digest;
		info.activated = live->header.activated;
		info.phase = live->header.phase;
	}
	for (size_t i = 0; i < model->n_services; i++)
		info.services += !strcmp(model->services[i].pool, name);
	*out = info;
	return 0;
}

int engine_backend_info(const struct engine *engine, const char *pool_name, const char *name,
			struct engine_backend_info *out)
{
	const struct pinned *pinned = &engine->pinned;
	const struct model_backend *backend = NULL;
	const struct state_backend *ids;
	const struct model_pool *pool;
	struct engine_backend_info info = {};
	struct state_pool *pool_ids;
	const struct way *way;
	int ret = 0;

	pool = find_pool(engine, pool_name, &pool_ids);
	if (pool)
		backend = model_backend(pool, name);
	if (!backend)
		return -ENOENT;
	ids = &pool_ids->backends[backend - pool->backends];
	info.id = ids->id;
	info.generation = ids->generation;
	way = engine_way(engine, &backend->address);
	if (way)
		info.nexthop = way->nexthop;
	else
		snprintf(info.nexthop.why, sizeof(info.nexthop.why), "not looked up yet");
	if (ids->id < pinned->maps.meta.backends) {
		uint64_t state = pinned->backends[ids->id].state;

		info.reachable = state & SHUNT_BACKEND_PRESENT && SHUNT_BACKEND_GENERATION(state) == ids->generation;
		info.slots = pinned->slots[ids->id];
		info.quota = pinned->quotas[ids->id];
		if (info.reachable)
			ret = maps_stats_read(&pinned->maps, pinned->maps.backend_stats, ids->id, &info.stats);
	}
	if (!ret)
		*out = info;
	return ret;
}

int engine_service_stats(const struct engine *engine, const char *name, struct shunt_stats *out)
{
	const struct model *model = engine->state.model;
	const struct model_service *service = model ? model_service(model, name) : NULL;

	if (!service)
		return -ENOENT;
	return maps_stats_read(&engine->pinned.maps, engine->pinned.maps.service_stats,
			       engine->state.counters[service - model->services], out);
}
