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

static const char *option_for_instance(const struct maps *maps)
{
	return strcmp(maps->instance, SHUNT_INSTANCE_DEFAULT) ? " --instance " : "";
}

static const char *name_for_instance(const struct maps *maps)
{
	return strcmp(maps->instance, SHUNT_INSTANCE_DEFAULT) ? maps->instance : "";
}

/* The next power of two, within what a program can be loaded for. */
static uint32_t suggestion(size_t wanted, uint32_t maximum)
{
	uint32_t value = 1;

	while (value < wanted && value < maximum)
		value *= 2;
	return value < maximum ? value : maximum;
}

static int check(const struct engine *engine, const char *what, const char *option, size_t wanted, uint32_t capacity,
		 uint32_t maximum, struct report *report)
{
	const struct maps *maps = &engine->pinned.maps;

	if (wanted <= capacity)
		return 0;
	if (wanted > maximum)
		return report_error(report, -ENOSPC,
				    "%zu %s are more than shunt can hold (%u): split them over instances", wanted, what,
				    maximum);
	return report_error(report, -ENOSPC,
			    "%zu %s exceed the capacity of %u: grow it with `shunt-loader upgrade --%s %u%s%s`", wanted,
			    what, capacity, option, suggestion(wanted, maximum), option_for_instance(maps),
			    name_for_instance(maps));
}

static int compare_addresses(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(union shunt_address));
}

static int count_addresses(const struct model *model, size_t *out)
{
	union shunt_address *list = calloc(model->n_services + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < model->n_services; i++)
		list[i] = model->services[i].address;
	qsort(list, model->n_services, sizeof(*list), compare_addresses);
	for (size_t i = 0; i < model->n_services; i++)
		n += !i || compare_addresses(&list[i], &list[i - 1]);
	free(list);
	*out = n;
	return 0;
}

int engine_check_capacities(const struct engine *engine, const struct model *model, struct report *report)
{
	const struct shunt_meta *meta = &engine->pinned.maps.meta;
	size_t backends = 0, entries = 0, addresses;
	int ret;

	for (size_t i = 0; i < model->n_pools; i++)
		backends += model->pools[i].n_backends;
	for (size_t i = 0; i < model->n_services; i++)
		entries += model_service_entries(&model->services[i]);
	ret = count_addresses(model, &addresses);
	if (ret)
		return ret;
	/* All of them are said, not only the first. */
	if (check(engine, "pools", "pools", model->n_pools, meta->pools, SHUNT_POOLS_MAX, report))
		ret = -ENOSPC;
	if (check(engine, "backends", "backends", backends, meta->backends, SHUNT_BACKENDS_MAX, report))
		ret = -ENOSPC;
	if (check(engine, "service entries (one for each port of each service)", "services", entries, meta->services,
		  SHUNT_SERVICES_MAX, report))
		ret = -ENOSPC;
	if (check(engine, "service addresses", "addresses", addresses, meta->addresses, SHUNT_ADDRESSES_MAX, report))
		ret = -ENOSPC;
	return ret;
}

/* Both what leaves and what comes needs a number while the change is under way. */
static int no_number(const struct engine *engine, const char *what, const char *option, uint32_t capacity,
		     struct report *report)
{
	return report_error(report, -ENOSPC,
			    "replacing so many %s at once needs more than the %u there are, because the old ones keep "
			    "theirs until the new ones are in force: make the change in two steps, or grow the "
			    "capacity with `shunt-loader upgrade --%s N%s%s`",
			    what, capacity, option, option_for_instance(&engine->pinned.maps),
			    name_for_instance(&engine->pinned.maps));
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
	backend->reached = backend->way && backend->way->once &&
			   engine_backend_entry(pool->model, backend->model, backend->way, old, &backend->entry);
	if (ids && id_fits(pinned, backend, ids)) {
		*backend->ids = *ids;
		backend->written = old;
	} else {
		backend->ids->id = SHUNT_BACKEND_NONE;
	}
}

static const struct state_backend *old_backend(const struct state *state, const char *pool, const char *name)
{
	const struct model_pool *old_pool = state->model ? model_pool(state->model, pool) : NULL;
	const struct model_backend *old = old_pool ? model_backend(old_pool, name) : NULL;

	if (!old)
		return NULL;
	return &state->pools[old_pool - state->model->pools].backends[old - old_pool->backends];
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

static int plan_backends(const struct engine *engine, struct plan *plan, struct report *report)
{
	struct numbers numbers;
	int ret = backend_numbers(engine, &numbers);

	if (ret)
		return ret;
	for (size_t i = 0; i < plan->next.model->n_pools; i++) {
		struct plan_pool *pool = &plan->pools[i];

		for (size_t j = 0; j < pool->model->n_backends; j++)
			fill_backend(engine, pool, &pool->backends[j],
				     old_backend(&engine->state, pool->model->name, pool->model->backends[j].name));
	}
	for (size_t i = 0; i < plan->n_backends && !ret; i++) {
		struct state_backend *ids = plan->backends[i].ids;

		if (ids->id != SHUNT_BACKEND_NONE)
			continue;
		ret = numbers_take(&numbers, &ids->id);
		if (!ret)
			ids->generation = (SHUNT_BACKEND_GENERATION(engine->pinned.backends[ids->id].state) + 1) & 0xf;
		plan->dirty = true;
	}
	free(numbers.used);
	if (ret == -ENOSPC)
		no_number(engine, "backends", "backends", numbers.n, report);
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
		no_number(engine, "pools", "pools", numbers.n, report);
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
		no_number(engine, "services", "services", numbers.n, report);
	return ret;
}

int engine_plan_ids(const struct engine *engine, struct plan *plan, struct report *report)
{
	int ret = plan_pools(engine, plan, report);

	if (!ret)
		ret = plan_backends(engine, plan, report);
	if (!ret)
		ret = plan_counters(engine, plan, report);
	return ret;
}
