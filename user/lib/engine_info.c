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

bool engine_state_saved(const struct engine *engine)
{
	return engine->state_saved;
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

static void count_transition(const struct transit *transit, struct engine_pool_info *info)
{
	info->range_buckets = transit_own_buckets(transit);
	for (uint32_t i = 0; i < transit->slots; i++) {
		uint32_t owner = transit->owner[i] & SHUNT_BACKEND_NONE, base = transit->base[i] & SHUNT_BACKEND_NONE;

		if (!(transit->owner[i] & SHUNT_SLOT_TRACKED))
			continue;
		info->tracked++;
		info->unsettled += owner != base;
		if (transit->range[i])
			info->range_buckets += 1u << SHUNT_RANGE_LOG2(transit->range[i]);
		else
			info->without++;
	}
}

static int transition_info(const struct engine *engine, const struct model_pool *pool, uint32_t index,
			   struct engine_pool_info *info)
{
	const struct watch *watch = &engine->pinned.watches[index];
	struct transit_times times;
	struct published published;
	uint32_t due;
	int ret = published_read(&engine->pinned.maps, engine_table_class(pool->slots), index, &published);

	if (ret)
		return ret;
	count_transition(&published.transit, info);
	times = engine_times(pool, &info->stats, published.header.limits, engine_clock_ms());
	times.learn = times.settle; /* a window that ends is not asked for */
	due = info->unsettled ? transit_due(&published.transit, &times) : UINT32_MAX;
	info->settles_in = due == UINT32_MAX ? UINT64_MAX : due * (uint64_t)ENGINE_T0_MS;
	info->blocked = times.blocked;
	info->forced = watch->forced;
	info->base_rate = watch->base_rate;
	memcpy(info->entries, watch->entries, sizeof(info->entries));
	transit_free(&published.transit);
	return 0;
}

void engine_flow_use(const struct engine *engine, struct engine_flow_use *out)
{
	const struct pinned *pinned = &engine->pinned;
	const struct model *model = engine->state.model;

	*out = (struct engine_flow_use){.buckets = pinned->n_buckets,
					.bytes = (uint64_t)pinned->n_buckets * sizeof(struct shunt_flow_bucket)};
	for (size_t i = 0; model && i < model->n_pools; i++) {
		const uint32_t index = engine->state.pools[i].index;

		if (index >= pinned->maps.meta.pools)
			continue;
		out->used_buckets += pinned->watches[index].range_buckets;
		for (int status = 0; status < 4; status++)
			out->entries += pinned->watches[index].entries[status];
	}
}

int engine_pool_lacks(const struct engine *engine, const char *name, struct engine_pool_lacks *out)
{
	struct state_pool *ids;

	if (!find_pool(engine, name, &ids) || ids->index >= engine->pinned.maps.meta.pools)
		return -ENOENT;
	*out = (struct engine_pool_lacks){engine->pinned.watches[ids->index].without,
					  engine->pinned.watches[ids->index].forced};
	return 0;
}

static bool is_reachable(const struct pinned *pinned, const struct state_backend *ids)
{
	uint64_t state;

	if (ids->id >= pinned->maps.meta.backends)
		return false;
	state = pinned->backends[ids->id].state;
	return state & SHUNT_BACKEND_PRESENT && SHUNT_BACKEND_GENERATION(state) == ids->generation;
}

static void count_backends(const struct engine *engine, const struct model_pool *pool, const struct state_pool *ids,
			   struct engine_pool_info *info)
{
	const struct pinned *pinned = &engine->pinned;

	for (size_t i = 0; i < pool->n_backends; i++) {
		uint32_t id = ids->backends[i].id;

		info->reachable += is_reachable(pinned, &ids->backends[i]);
		info->with_slots += id < pinned->maps.meta.backends && pinned->slots[id];
	}
}

int engine_pool_info(const struct engine *engine, const char *name, struct engine_pool_info *out)
{
	const struct live_table *live = NULL;
	const struct model_pool *pool;
	struct engine_pool_info info = {};
	struct state_pool *ids;
	int ret = 0;

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
	count_backends(engine, pool, ids, &info);
	if (live)
		ret = engine_pool_stats(&engine->pinned.maps, ids->index, &info.stats);
	if (!ret && live && engine_in_transition(live))
		ret = transition_info(engine, pool, ids->index, &info);
	if (!ret)
		*out = info;
	return ret;
}

bool engine_pool_serves(const struct engine *engine, const char *name)
{
	const struct pinned *pinned = &engine->pinned;
	const struct model_pool *pool;
	struct state_pool *ids;

	pool = find_pool(engine, name, &ids);
	if (!pool || ids->index >= pinned->maps.meta.pools ||
	    !pinned_table(pinned, engine_table_class(pool->slots), ids->index)->published)
		return false;
	for (size_t i = 0; i < pool->n_backends; i++)
		if (ids->backends[i].id < pinned->maps.meta.backends && pinned->slots[ids->backends[i].id])
			return true;
	return false;
}

static void path_info(const struct pinned *pinned, uint32_t id, struct engine_backend_info *info)
{
	const struct shunt_path *path = &pinned->paths[id];

	info->mtu = SHUNT_BACKEND_MTU(pinned->backends[id].state);
	info->mtu_lowered = __atomic_load_n(&path->lowered, __ATOMIC_ACQUIRE) != 0;
	info->path_errors = __atomic_load_n(&path->errors, __ATOMIC_RELAXED);
}

int engine_backend_standing(const struct engine *engine, const char *pool_name, const char *name,
			    struct engine_backend_info *out)
{
	const struct pinned *pinned = &engine->pinned;
	const struct model_backend *backend = NULL;
	const struct state_backend *ids;
	const struct model_pool *pool;
	struct engine_backend_info info = {};
	struct state_pool *pool_ids;
	const struct way *way;

	pool = find_pool(engine, pool_name, &pool_ids);
	if (pool)
		backend = model_backend(pool, name);
	if (!backend)
		return -ENOENT;
	ids = &pool_ids->backends[backend - pool->backends];
	info.id = ids->id;
	info.draining = ids->draining;
	info.leaving = ids->leaving;
	info.maintenance = ids->maintenance;
	info.ramp_percent = ids->step ? 100 * ids->step / ENGINE_RAMP_STEPS : 100;
	info.down = ids->down;
	info.generation = ids->generation;
	way = engine_way(engine, &backend->address);
	if (way)
		info.nexthop = way->nexthop;
	else
		snprintf(info.nexthop.why, sizeof(info.nexthop.why), "not looked up yet");
	if (way && way->once && !engine_can_reach(pool, way)) {
		info.nexthop.known = false;
		snprintf(info.nexthop.why, sizeof(info.nexthop.why),
			 "it is behind a gateway, and l2 needs it on the link");
	}
	info.mtu = info.nexthop.mtu;
	if (ids->id < pinned->maps.meta.backends) {
		info.reachable = is_reachable(pinned, ids);
		info.slots = pinned->slots[ids->id];
		info.quota = pinned->quotas[ids->id];
		info.bases = pinned->bases[ids->id];
		info.entries = pinned->entries[ids->id];
		if (info.reachable)
			path_info(pinned, ids->id, &info);
	}
	*out = info;
	return 0;
}

int engine_backend_info(const struct engine *engine, const char *pool, const char *backend,
			struct engine_backend_info *out)
{
	const struct maps *maps = &engine->pinned.maps;
	struct engine_backend_info info;
	int ret = engine_backend_standing(engine, pool, backend, &info);

	if (!ret && info.reachable)
		ret = maps_stats_read(maps, maps->backend_stats, info.id, &info.stats);
	if (!ret)
		*out = info;
	return ret;
}

bool engine_backend_way(const struct engine *engine, const char *pool_name, const char *name, struct engine_way *out)
{
	const struct model_backend *backend;
	const struct state_backend *ids;
	const struct model_pool *pool;
	struct state_pool *pool_ids;
	const struct way *way;

	pool = find_pool(engine, pool_name, &pool_ids);
	backend = pool ? model_backend(pool, name) : NULL;
	if (!backend)
		return false;
	ids = &pool_ids->backends[backend - pool->backends];
	way = engine_way(engine, &backend->address);
	*out = (struct engine_way){.id = ids->id, .down = ids->down, .draining = ids->draining};
	if (!way || ids->id >= engine->pinned.maps.meta.backends)
		return false;
	out->source = way->nexthop.source;
	return is_reachable(&engine->pinned, ids);
}

int engine_service_index(const struct engine *engine, const char *name, uint32_t *out)
{
	const struct model *model = engine->state.model;
	const struct model_service *service = model ? model_service(model, name) : NULL;

	if (!service)
		return -ENOENT;
	*out = engine->state.counters[service - model->services];
	return 0;
}

int engine_service_stats(const struct engine *engine, const char *name, struct shunt_stats *out)
{
	uint32_t index;
	int ret = engine_service_index(engine, name, &index);

	if (ret)
		return ret;
	return maps_stats_read(&engine->pinned.maps, engine->pinned.maps.service_stats, index, out);
}
