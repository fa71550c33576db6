/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers for pools, backends and services: kept where they were, given where they are new. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"

/* Numbers of one kind.  What was given up by this very change is still in use until the change is in force. */
struct numbers {
	bool *used;
	uint32_t n, next; /* search from here on, so that a number rests as long as possible */
};

static int numbers_init(struct numbers *numbers, uint32_t n)
{
	*numbers = (struct numbers){.used = calloc(n + 1, sizeof(bool)), .n = n};
	return numbers->used ? 0 : -ENOMEM;
}

static void numbers_use(struct numbers *numbers, uint32_t number)
{
	if (number >= numbers->n)
		return;
	numbers->used[number] = true;
	if (number >= numbers->next)
		numbers->next = number + 1;
}

static int numbers_take(struct numbers *numbers, uint32_t *out)
{
	for (uint32_t i = 0; i < numbers->n; i++) {
		uint32_t number = (numbers->next + i) % numbers->n;

		if (numbers->used[number])
			continue;
		numbers->used[number] = true;
		numbers->next = number + 1;
		*out = number;
		return 0;
	}
	return -ENOSPC;
}

/* ---- backends ---- */

/* Whether the id that a backend has can go on naming it. */
static bool id_fits(const struct pinned *pinned, const struct plan_backend *backend, const struct state_backend *ids)
{
	const struct shunt_backend *entry;
	uint32_t before = (ids->generation - 1) & 0xf;

	if (ids->id >= pinned->maps.meta.backends)
		return false;
	entry = &pinned->backends[ids->id];
	if (!(entry->state & SHUNT_BACKEND_PRESENT)) /* not written yet: the id is free, or the maps are new */
		return !entry->state || SHUNT_BACKEND_GENERATION(entry->state) == before;
	return SHUNT_BACKEND_GENERATION(entry->state) == ids->generation && backend->reached &&
	       !memcmp((const char *)entry + sizeof(entry->state), (const char *)&backend->entry + sizeof(entry->state),
		       sizeof(*entry) - sizeof(entry->state));
}

/* A backend that is new in a pool that serves already, where the document says that newcomers wait. */
static bool waits(const struct engine *engine, const struct model_pool *pool)
{
	const struct model *old = engine->state.model;

	return pool->health && pool->health->newcomers == MODEL_NEW_WAIT && old && model_pool(old, pool->name);
}

/* Where it is not known again whether a gateway is in the way, which MAC addresses alone do not pass: only who served
 * goes on. */
static bool may_lack_link(const struct plan_pool *pool, const struct way *way, const struct shunt_backend *old)
{
	return pool->model->encapsulation == MODEL_L2 && way && way->seeded && !old;
}

static void fill_backend(const struct engine *engine, const struct plan_pool *pool, struct plan_backend *backend,
			 const struct state_backend *ids)
{
	const struct pinned *pinned = &engine->pinned;
	const struct shunt_backend *old = NULL;

	if (ids && ids->id < pinned->maps.meta.backends)
		old = &pinned->backends[ids->id];
	if (old && (!(old->state & SHUNT_BACKEND_PRESENT) || SHUNT_BACKEND_GENERATION(old->state) != ids->generation))
		old = NULL;
	backend->way = engine_way(engine, &backend->model->address);
	backend->reached = engine_can_reach(pool->model, backend->way) && !may_lack_link(pool, backend->way, old) &&
			   engine_backend_entry(pool->model, backend->model, backend->way, old, &backend->entry);
	backend->ids->id = SHUNT_BACKEND_NONE;
	backend->ids->down = !ids && waits(engine, pool->model);
	if (ids) {
		backend->ids->draining = ids->draining;
		backend->ids->drain_seen = ids->drain_seen;
		backend->ids->drain_began = ids->drain_began;
		backend->ids->leaving = ids->leaving;
		backend->ids->maintenance = ids->maintenance;
		backend->ids->down = ids->down;
		backend->ids->ramp = ids->ramp;
		backend->ids->at_once = ids->at_once;
	}
	if (ids && id_fits(pinned, backend, ids)) {
		*backend->ids = *ids;
		backend->written = old;
	} else if (old && backend->reached && engine_same_destination(old, &backend->entry)) {
		backend->may_stay = *ids;
	}
}

static const struct model_pool *old_pool(const struct state *state, const struct plan_pool *pool)
{
	return state->model ? model_pool(state->model, pool->model->name) : NULL;
}

/* What the i-th backend of `pool` was in `old`, which may be NULL: mostly the i-th too. */
static const struct state_backend *old_backend(const struct state *state, const struct model_pool *old,
					       const struct plan_pool *pool, size_t i)
{
	const char *name = pool->model->backends[i].name;
	const struct model_backend *backend = NULL;

	if (old && i < old->n_backends && !strcmp(old->backends[i].name, name))
		backend = &old->backends[i];
	else if (old)
		backend = model_backend(old, name);
	return backend ? &state->pools[old - state->model->pools].backends[backend - old->backends] : NULL;
}

static int backend_numbers(const struct engine *engine, struct numbers *out)
{
	const struct state *state = &engine->state;
	int ret = numbers_init(out, engine->pinned.maps.meta.backends);

	if (ret)
		return ret;
	for (size_t i = 0; state->model && i < state->model->n_pools; i++) {
		for (size_t j = 0; j < state->model->pools[i].n_backends; j++)
			numbers_use(out, state->pools[i].backends[j].id);
	}
	for (uint32_t id = 0; id < out->n; id++) {
		if (engine->pinned.backends[id].state & SHUNT_BACKEND_PRESENT)
			numbers_use(out, id);
	}
	return 0;
}

static int number_backend(const struct engine *engine, struct numbers *numbers, struct state_backend *ids)
{
	int ret = numbers_take(numbers, &ids->id);

	if (!ret)
		ids->generation = (SHUNT_BACKEND_GENERATION(engine->pinned.backends[ids->id].state) + 1) & 0xf;
	return ret;
}

/*
 * New ones first.  Where another outer source is all that changes and no id is left, the backend stays as it is until
 * ids are free: else a route that moves would find no way into an instance that is more than half full.
 */
static int number_backends(const struct engine *engine, struct plan *plan, struct numbers *numbers)
{
	int ret = 0;

	for (size_t i = 0; i < plan->n_backends && !ret; i++) {
		struct plan_backend *backend = &plan->backends[i];

		if (backend->ids->id == SHUNT_BACKEND_NONE && backend->may_stay.id == SHUNT_BACKEND_NONE) {
			ret = number_backend(engine, numbers, backend->ids);
			plan->dirty = true;
		}
	}
	for (size_t i = 0; i < plan->n_backends && !ret; i++) {
		struct plan_backend *backend = &plan->backends[i];

		if (backend->ids->id != SHUNT_BACKEND_NONE)
			continue;
		if (!number_backend(engine, numbers, backend->ids)) {
			plan->dirty = true;
			continue;
		}
		backend->ids->id = backend->may_stay.id;
		backend->ids->generation = backend->may_stay.generation;
		backend->entry = engine->pinned.backends[backend->ids->id];
		backend->written = true;
		plan->n_waiting++;
	}
	return ret;
}

static int plan_backends(const struct engine *engine, struct plan *plan, struct report *report)
{
	struct numbers numbers;
	int ret = backend_numbers(engine, &numbers);

	if (ret)
		return ret;
	for (size_t i = 0; i < plan->next.model->n_pools; i++) {
		struct plan_pool *pool = &plan->pools[i];
		const struct model_pool *old = old_pool(&engine->state, pool);

		for (size_t j = 0; j < pool->model->n_backends; j++) {
			pool->backends[j].may_stay.id = SHUNT_BACKEND_NONE;
			fill_backend(engine, pool, &pool->backends[j], old_backend(&engine->state, old, pool, j));
		}
	}
	ret = number_backends(engine, plan, &numbers);
	free(numbers.used);
	if (ret == -ENOSPC)
		engine_no_number(engine, "backends", "backends", numbers.n, report);
	return ret;
}

/* ---- pools and services ---- */

static int pool_numbers(const struct engine *engine, struct numbers *out)
{
	const struct state *state = &engine->state;
	int ret = numbers_init(out, engine->pinned.maps.meta.pools);

	if (ret)
		return ret;
	for (size_t i = 0; state->model && i < state->model->n_pools; i++)
		numbers_use(out, state->pools[i].index);
	for (uint32_t index = 0; index < out->n; index++) {
		for (int class = 0; class < SHUNT_NR_TABLE_CLASSES; class ++) {
			if (pinned_table(&engine->pinned, class, index)->published)
				numbers_use(out, index);
		}
	}
	return 0;
}

static int plan_pools(const struct engine *engine, struct plan *plan, struct report *report)
{
	const struct model *old_model = engine->state.model, *model = plan->next.model;
	struct numbers numbers;
	int ret = pool_numbers(engine, &numbers);

	for (size_t i = 0; i < model->n_pools && !ret; i++) {
		struct state_pool *ids = plan->pools[i].ids;
		const struct model_pool *old = old_model ? model_pool(old_model, model->pools[i].name) : NULL;
		const struct state_pool *had = old ? &engine->state.pools[old - old_model->pools] : NULL;

		if (had) {
			ids->epoch = had->epoch;
			ids->phase = had->phase;
			ids->digest = had->digest;
		}
		if (had && had->index < numbers.n) {
			ids->index = had->index;
			continue;
		}
		ret = numbers_take(&numbers, &ids->index);
		plan->dirty = true;
	}
	free(numbers.used);
	if (ret == -ENOSPC)
		engine_no_number(engine, "pools", "pools", numbers.n, report);
	return ret;
}

static int plan_counters(const struct engine *engine, struct plan *plan, struct report *report)
{
	const struct model *old_model = engine->state.model, *model = plan->next.model;
	struct numbers numbers;
	int ret = numbers_init(&numbers, engine->pinned.maps.meta.services);

	if (ret)
		return ret;
	for (size_t i = 0; old_model && i < old_model->n_services; i++)
		numbers_use(&numbers, engine->state.counters[i]);
	for (uint32_t i = 0; i < numbers.n; i++) {
		if (engine->pinned.counter_live[i])
			numbers_use(&numbers, i);
	}
	for (size_t i = 0; i < model->n_services && !ret; i++) {
		const struct model_service *old = old_model ? model_service(old_model, model->services[i].name) : NULL;

		plan->next.counters[i] = old ? engine->state.counters[old - old_model->services] : UINT32_MAX;
		if (plan->next.counters[i] < numbers.n)
			continue;
		ret = numbers_take(&numbers, &plan->next.counters[i]);
		plan->dirty = true;
	}
	free(numbers.used);
	if (ret == -ENOSPC)
		engine_no_number(engine, "services", "services", numbers.n, report);
	return ret;
}

/* ---- what becomes of ids ---- */

/* The backend has another id now; packets that follow the old one may follow the new one if it is the same server. */
static void plan_name(const struct engine *engine, struct plan *plan, const struct plan_backend *backend,
		      const struct state_backend *old)
{
	const struct pinned *pinned = &engine->pinned;

	if (!old || old->id == backend->ids->id || old->id >= pinned->maps.meta.backends || !backend->reached)
		return;
	if (!(pinned->backends[old->id].state & SHUNT_BACKEND_PRESENT) ||
	    !engine_same_destination(&pinned->backends[old->id], &backend->entry))
		return;
	plan->called[old->id] = (uint16_t)backend->ids->id;
	plan->renames = true;
}

static int plan_names(const struct engine *engine, struct plan *plan)
{
	plan->called = malloc(TRANSIT_IDS * sizeof(*plan->called));
	if (!plan->called)
		return -ENOMEM;
	for (uint32_t id = 0; id < TRANSIT_IDS; id++)
		plan->called[id] = SHUNT_BACKEND_NONE;
	for (size_t i = 0; i < plan->n_backends; i++)
		plan->called[plan->backends[i].ids->id] = (uint16_t)plan->backends[i].ids->id;
	for (size_t i = 0; i < plan->next.model->n_pools; i++) {
		struct plan_pool *pool = &plan->pools[i];
		const struct model_pool *old = old_pool(&engine->state, pool);

		for (size_t j = 0; j < pool->model->n_backends; j++)
			plan_name(engine, plan, &pool->backends[j], old_backend(&engine->state, old, pool, j));
	}
	return 0;
}

/* A document that names a backend takes its deletion back. */
static void take_deletions_back(struct plan *plan)
{
	for (size_t i = 0; i < plan->n_backends; i++) {
		struct state_backend *ids = plan->backends[i].ids;

		if (plan->document && ids->leaving) {
			ids->leaving = false;
			ids->draining = 0;
		}
	}
}

int engine_plan_ids(const struct engine *engine, struct plan *plan, struct report *report)
{
	int ret = plan_pools(engine, plan, report);

	if (!ret)
		ret = plan_backends(engine, plan, report);
	if (!ret)
		ret = plan_names(engine, plan);
	if (!ret)
		take_deletions_back(plan);
	if (!ret)
		ret = plan_counters(engine, plan, report);
	return ret;
}
