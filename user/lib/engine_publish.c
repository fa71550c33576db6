/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables and the snapshot, planned before, come into force; and tables that no pool has any more go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"
#include "kernel.h"

void engine_count_slots(struct pinned *pinned, const struct state_pool *ids, size_t n_backends,
			const struct transit *transit)
{
	struct watch *watch = &pinned->watches[ids->index];

	watch->without = transit_without(transit);
	watch->range_buckets = transit_own_buckets(transit);
	for (uint32_t i = 0; i < transit->slots; i++)
		watch->range_buckets += transit->range[i] ? 1u << SHUNT_RANGE_LOG2(transit->range[i]) : 0;
	for (size_t i = 0; i < n_backends; i++)
		pinned->slots[ids->backends[i].id] = pinned->bases[ids->backends[i].id] = 0;
	for (uint32_t i = 0; i < transit->slots; i++) {
		uint32_t owner = transit->owner[i] & SHUNT_BACKEND_NONE, base = transit->base[i] & SHUNT_BACKEND_NONE;

		if (owner < pinned->maps.meta.backends)
			pinned->slots[owner]++;
		if (base != owner && base < pinned->maps.meta.backends)
			pinned->bases[base]++;
	}
}

static void count(struct pinned *pinned, const struct plan_pool *pool)
{
	for (size_t i = 0; i < pool->model->n_backends; i++)
		pinned->quotas[pool->backends[i].ids->id] = pool->quotas[i];
	engine_count_slots(pinned, pool->ids, pool->model->n_backends, &pool->transit);
}

/* ---- ranges, before the tables ---- */

static int prepare_step(void *arg, size_t i)
{
	const struct preparing *preparing = arg;
	struct plan_pool *pool = &preparing->plan->pools[i];

	if (!pool->publish)
		return 0;
	return engine_prepare_transit(preparing->pinned, pool->class, &pool->header, &pool->transit, &pool->fresh);
}

static size_t count_published(const struct plan *plan)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->next.model->n_pools; i++)
		n += plan->pools[i].publish;
	return n;
}

int engine_prepare_begin(const struct engine *engine, const struct plan *plan, struct preparing *out)
{
	size_t wanted = count_published(plan);

	*out = (struct preparing){&engine->pinned, plan, NULL};
	if (wanted)
		out->work = engine_work_begin(plan->next.model->n_pools, wanted, prepare_step, out);
	return wanted && !out->work ? -ENOMEM : 0;
}

int engine_prepare_end(struct preparing *preparing, struct report *report)
{
	size_t failed = 0;
	int ret = preparing->work ? engine_work_end(preparing->work, &failed) : 0;

	return ret ? kernel_error(report, ret, "cannot publish the ranges of pool %s",
				  preparing->plan->next.model->pools[failed].name)
		   : 0;
}

void engine_prepare_undo(const struct preparing *preparing)
{
	for (size_t i = 0; i < preparing->plan->next.model->n_pools; i++) {
		const struct plan_pool *pool = &preparing->plan->pools[i];

		if (pool->publish && pool->header.ranges &&
		    !engine_in_transition(pinned_table(preparing->pinned, pool->class, pool->ids->index)))
			engine_remove_ranges(preparing->pinned, pool->class, pool->ids->index);
	}
}

/* ---- tables ---- */

struct publishing {
	struct pinned *pinned;
	const struct plan *plan;
	bool *done; /* beside plan->pools */
};

static int publish_step(void *arg, size_t i)
{
	struct publishing *publishing = arg;
	struct plan_pool *pool = &publishing->plan->pools[i];
	struct pinned *pinned = publishing->pinned;
	int ret = 0;

	if (pool->publish && !pinned_table(pinned, pool->class, pool->ids->index)->published)
		ret = engine_forget_stats(pinned, pool->ids->index, transit_tracked(&pool->transit));
	if (pool->publish && !ret)
		ret = engine_publish_transit(pinned, pool->class, &pool->header, &pool->transit);
	publishing->done[i] = pool->publish && !ret;
	return ret;
}

int engine_publish_tables(struct engine *engine, const struct plan *plan, struct report *report)
{
	size_t n = plan->next.model->n_pools, failed;
	struct publishing publishing = {&engine->pinned, plan, calloc(n + 1, sizeof(bool))};
	int ret;

	if (!publishing.done)
		return -ENOMEM;
	ret = engine_side_by_side(n, count_published(plan), publish_step, &publishing, &failed);
	/* Also after a failure: what is in force is remembered as such. */
	for (size_t i = 0; i < n; i++) {
		const struct plan_pool *pool = &plan->pools[i];
		struct live_table *live = pinned_table(&engine->pinned, pool->class, pool->ids->index);

		if (!pool->owner)
			continue;
		if (pool->publish && !publishing.done[i]) {
			/* Perhaps it is in force all the same: to be looked at again. */
			if (!live->published)
				*live = (struct live_table){.published = true, .header = pool->header};
			live->inputs = 0;
			continue;
		}
		*live = (struct live_table){.published = true, .header = pool->header, .inputs = pool->inputs};
		count(&engine->pinned, pool);
		engine->copy_stale |= pool->publish;
		engine->scan_owed |= pool->publish;
		if (pool->publish && pool->new_epoch && engine->epoch)
			engine->epoch(&pool->change, engine->epoch_arg);
	}
	free(publishing.done);
	return ret ? kernel_error(report, ret, "cannot publish the table of pool %s", plan->pools[failed].model->name)
		   : 0;
}

struct removing {
	struct pinned *pinned;
	const bool *keep; /* beside pinned->tables */
};

static int remove_step(void *arg, size_t i)
{
	const struct removing *removing = arg;
	struct pinned *pinned = removing->pinned;
	uint32_t pools = pinned->maps.meta.pools;
	int ret;

	if (removing->keep[i] || !pinned->tables[i].published)
		return 0;
	ret = maps_inner_remove(&pinned->maps, (enum maps_inner)(i / pools), (uint32_t)(i % pools));
	if (!ret)
		ret = engine_remove_ranges(pinned, (enum shunt_table_class)(i / pools), (uint32_t)(i % pools));
	if (!ret)
		pinned->tables[i] = (struct live_table){};
	return ret;
}

int engine_remove_tables(struct engine *engine, const struct plan *plan, struct report *report)
{
	struct pinned *pinned = &engine->pinned;
	size_t n = (size_t)SHUNT_NR_TABLE_CLASSES * pinned->maps.meta.pools, unwanted = 0, failed;
	bool *keep = calloc(n, sizeof(*keep));
	struct removing removing = {pinned, keep};
	int ret;

	if (!keep)
		return -ENOMEM;
	for (size_t i = 0; i < plan->next.model->n_pools; i++)
		keep[(size_t)plan->pools[i].class * pinned->maps.meta.pools + plan->pools[i].ids->index] = true;
	for (size_t i = 0; i < n; i++)
		unwanted += !keep[i] && pinned->tables[i].published;
	ret = unwanted ? engine_side_by_side(n, unwanted, remove_step, &removing, &failed) : 0;
	free(keep);
	return ret ? kernel_error(report, ret, "cannot remove the table of a pool that is no more") : 0;
}

int engine_publish_snapshot(struct engine *engine, struct plan *plan, struct report *report)
{
	struct pinned *pinned = &engine->pinned;
	int ret = 0;

	if (!plan->snapshot)
		return 0;
	for (size_t i = 0; i < plan->next.model->n_services && !ret; i++) {
		uint32_t counter = plan->next.counters[i];

		if (!pinned->counter_live[counter])
			ret = maps_stats_clear(&pinned->maps, pinned->maps.service_stats, counter);
	}
	if (!ret)
		ret = maps_inner_publish(&pinned->maps, MAPS_SNAPSHOT, 0, plan->snapshot);
	if (!ret)
		ret = pinned_take_snapshot(pinned, plan->snapshot);
	if (ret)
		return kernel_error(report, ret, "cannot publish the services");
	plan->snapshot = NULL;
	return 0;
}
