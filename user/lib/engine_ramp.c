/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slow start: a backend that joins others, or comes back to them, begins with a part of its weight, which grows in
 * steps.  When it began is an id beside the others of the state; the step follows from the clock.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine_internal.h"

#define SUM_MAX ((1u << 30) - 1) /* of the weights of a table */

uint64_t engine_realtime_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* 1 .. ENGINE_RAMP_STEPS: the first at once, the last when the time is over. */
static uint32_t step_at(const struct model_pool *pool, uint64_t began, uint64_t now)
{
	uint64_t step = now < began ? 1 : 1 + (now - began) * (ENGINE_RAMP_STEPS - 1) / pool->slow_start;

	return step < ENGINE_RAMP_STEPS ? (uint32_t)step : ENGINE_RAMP_STEPS;
}

static uint64_t next_step(const struct model_pool *pool, uint64_t began, uint32_t step)
{
	return began + ((uint64_t)step * pool->slow_start + ENGINE_RAMP_STEPS - 2) / (ENGINE_RAMP_STEPS - 1);
}

/* ---- plan ---- */

bool engine_may_have_slots(const struct plan_backend *backend)
{
	return backend->model->weight && backend->reached && !backend->ids->draining && !backend->ids->down;
}

/* Whether it has slots in the table in force, perhaps by an id that it is about to lose. */
static bool has_slots(const struct pinned *pinned, const struct plan_backend *backend)
{
	uint32_t id = backend->written ? backend->ids->id : backend->may_stay.id;

	return id < pinned->maps.meta.backends && pinned->slots[id];
}

void engine_plan_ramps(const struct engine *engine, struct plan *plan, struct plan_pool *pool)
{
	const uint64_t now = engine_realtime_ms();
	bool others = false;

	for (size_t i = 0; i < pool->model->n_backends; i++)
		others |= engine_may_have_slots(&pool->backends[i]) && has_slots(&engine->pinned, &pool->backends[i]);
	for (size_t i = 0; i < pool->model->n_backends; i++) {
		const struct plan_backend *backend = &pool->backends[i];
		struct state_backend *ids = backend->ids;
		const uint64_t before = ids->ramp;
		bool begins;

		begins = !ids->ramp && others && !ids->at_once && !has_slots(&engine->pinned, backend);
		if (!pool->model->slow_start || !engine_may_have_slots(backend))
			ids->ramp = 0;
		else if (begins || ids->ramp > now) /* or the clock was set back */
			ids->ramp = now;
		ids->step = ids->ramp ? step_at(pool->model, ids->ramp, now) : 0;
		if (ids->step == ENGINE_RAMP_STEPS)
			ids->ramp = ids->step = 0;
		pool->ramps |= ids->step;
		plan->dirty |= ids->ramp != before;
	}
}

/*
 * A ring has points for each unit of weight, so that other units would be another ring; and weights have a limit.  Then
 * the steps are as fine as the weight.
 */
uint32_t engine_ramp_units(const struct model_pool *pool, const struct state_pool *ids)
{
	uint64_t sum = 0, largest = 0;
	bool ramps = false;

	for (size_t i = 0; i < pool->n_backends; i++) {
		sum += pool->backends[i].weight;
		largest = pool->backends[i].weight > largest ? pool->backends[i].weight : largest;
		ramps |= ids->backends[i].step;
	}
	if (!ramps || !strcmp(pool->algorithm, "ring") || largest * ENGINE_RAMP_STEPS > TABLE_WEIGHT_MAX ||
	    sum * ENGINE_RAMP_STEPS > SUM_MAX)
		return 1;
	return ENGINE_RAMP_STEPS;
}

uint32_t engine_ramp_weight(const struct model_backend *backend, const struct state_backend *ids, uint32_t units)
{
	uint64_t weight = (uint64_t)backend->weight * units;

	if (!ids->step || !weight)
		return (uint32_t)weight;
	weight = weight * ids->step / ENGINE_RAMP_STEPS;
	return weight ? (uint32_t)weight : 1;
}

/* ---- when ---- */

bool engine_ramp_due(const struct engine *engine, uint64_t *wait, char why[static ENGINE_RAMP_WHY_MAX])
{
	const struct model *model = engine->state.model;
	const uint64_t now = engine_realtime_ms();
	bool due = false;

	*wait = UINT64_MAX;
	for (size_t i = 0; model && i < model->n_pools; i++) {
		const struct model_pool *pool = &model->pools[i];

		for (size_t j = 0; j < pool->n_backends && pool->slow_start; j++) {
			const struct state_backend *ids = &engine->state.pools[i].backends[j];
			uint32_t step = ids->ramp ? step_at(pool, ids->ramp, now) : 0;
			uint64_t next;

			if (!ids->ramp)
				continue;
			next = next_step(pool, ids->ramp, step);
			if (next > now && next - now < *wait)
				*wait = next - now;
			if (step == ids->step)
				continue;
			due = true;
			snprintf(why, ENGINE_RAMP_WHY_MAX, "slow start: %.60s/%.60s is at %u of %u", pool->name,
				 pool->backends[j].name, step, ENGINE_RAMP_STEPS);
		}
	}
	return due;
}
