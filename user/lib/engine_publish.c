/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables and the snapshot, planned before, come into force; and tables that no pool has any more go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"
#include "kernel.h"

static uint32_t capacity_of(enum shunt_table_class class)
{
	static const uint32_t slots[SHUNT_NR_TABLE_CLASSES] = {SHUNT_SLOTS_S, SHUNT_SLOTS_M, SHUNT_SLOTS_L};

	return slots[class];
}

static int publish_table(struct engine *engine, const struct plan_pool *pool)
{
	const struct maps *maps = &engine->pinned.maps;
	size_t size = maps_inner_size(maps, (enum maps_inner)pool->class);
	uint32_t capacity = capacity_of(pool->class);
	char *value = calloc(1, size);
	uint16_t *owner, *base;
	int ret;

	if (!value)
		return -ENOMEM;
	memcpy(value, &pool->header, sizeof(pool->header));
	owner = (uint16_t *)(value + SHUNT_TABLE_OWNER(capacity));
	base = (uint16_t *)(value + SHUNT_TABLE_BASE(capacity));
	for (uint32_t i = 0; i < capacity; i++)
		owner[i] = base[i] = i < pool->header.slots ? pool->owner[i] : SHUNT_BACKEND_NONE;
	ret = maps_inner_publish(maps, (enum maps_inner)pool->class, pool->ids->index, value);
	free(value);
	return ret;
}

static void count_slots(struct pinned *pinned, const struct plan_pool *pool)
{
	for (size_t i = 0; i < pool->model->n_backends; i++) {
		uint32_t id = pool->backends[i].ids->id;

		pinned->slots[id] = 0;
		pinned->quotas[id] = pool->quotas[i];
	}
	for (uint32_t i = 0; i < pool->header.slots; i++) {
		if (pool->owner[i] != SHUNT_BACKEND_NONE)
			pinned->slots[pool->owner[i]]++;
	}
}

int engine_publish_tables(struct engine *engine, const struct plan *plan, struct report *report)
{
	for (size_t i = 0; i < plan->next.model->n_pools; i++) {
		const struct plan_pool *pool = &plan->pools[i];
		int ret;

		if (!pool->owner)
			continue;
		ret = pool->publish ? publish_table(engine, pool) : 0;
		if (ret)
			return kernel_error(report, ret, "cannot publish the table of pool %s", pool->model->name);
		*pinned_table(&engine->pinned, pool->class, pool->ids->index) = (struct live_table){
			.published = true,
			.header = pool->header,
			.inputs = pool->inputs,
		};
		count_slots(&engine->pinned, pool);
	}
	return 0;
}

int engine_remove_tables(struct engine *engine, const struct plan *plan, struct report *report)
{
	struct pinned *pinned = &engine->pinned;
	uint32_t pools = pinned->maps.meta.pools;
	size_t n = (size_t)SHUNT_NR_TABLE_CLASSES * pools;
	bool *keep = calloc(n, sizeof(*keep));
	int ret = keep ? 0 : -ENOMEM;

	for (size_t i = 0; i < plan->next.model->n_pools && !ret; i++)
		keep[(size_t)plan->pools[i].class * pools + plan->pools[i].ids->index] = true;
	for (size_t i = 0; i < n && !ret; i++) {
		if (keep[i] || !pinned->tables[i].published)
			continue;
		ret = maps_inner_remove(&pinned->maps, (enum maps_inner)(i / pools), (uint32_t)(i % pools));
		if (!ret)
			pinned->tables[i] = (struct live_table){};
	}
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
