/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Slots in transition: read back from the maps, planned, published. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <bpf/bpf.h>

#include "engine_internal.h"

uint64_t engine_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

bool engine_in_transition(const struct live_table *live)
{
	return live->published && live->header.flags & SHUNT_TABLE_IN_TRANSITION;
}

/* ---- plan ---- */

struct ranges {
	uint32_t *list;
	size_t n, room;
	size_t own; /* of them: no slot's range, but own words */
};

static int append_ranges(struct ranges *ranges, const struct transit *transit)
{
	const size_t most = (size_t)transit->slots + TRANSIT_OWN_RANGES;
	uint32_t *grown;
	size_t own;

	if (!ranges->list || ranges->room - ranges->n < most) {
		ranges->room = 2 * ranges->room + most;
		grown = reallocarray(ranges->list, ranges->room, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		ranges->list = grown;
	}
	for (uint32_t i = 0; i < transit->slots; i++)
		if (transit->range[i])
			ranges->list[ranges->n++] = transit->range[i];
	own = transit_own_ranges(transit, &ranges->list[ranges->n]);
	ranges->n += own;
	ranges->own += own;
	return 0;
}

/* What the tables in force use: it stays used until the plan is in force. */
static int find_room(const struct engine *engine, struct plan *plan)
{
	const struct pinned *pinned = &engine->pinned;
	struct ranges ranges = {};
	int ret = 0;

	if (plan->room.gaps)
		return 0;
	for (size_t i = 0; i < (size_t)SHUNT_NR_TABLE_CLASSES * pinned->maps.meta.pools && !ret; i++) {
		struct published published;

		if (!engine_in_transition(&pinned->tables[i]))
			continue;
		ret = published_read(&pinned->maps, (enum shunt_table_class)(i / pinned->maps.meta.pools),
				     (uint32_t)(i % pinned->maps.meta.pools), &published);
		if (ret)
			break;
		ret = append_ranges(&ranges, &published.transit);
		transit_free(&published.transit);
	}
	if (!ret)
		ret = transit_room_init(&plan->room, SHUNT_FLOW_BUCKETS(pinned->maps.meta.flows), ranges.list,
					ranges.n);
	if (!ret)
		plan->room.used -= ranges.own;
	free(ranges.list);
	return ret;
}

/* Slots of all pools that may yet be tracked, beside `tracked`. */
static uint64_t untracked(const struct plan *plan, uint64_t tracked)
{
	const struct model *model = plan->next.model;
	uint64_t slots = 0;

	for (size_t i = 0; i < model->n_pools; i++)
		if (model->pools[i].connections == MODEL_TRACKED)
			slots += model->pools[i].slots;
	return slots > tracked ? slots - tracked : 0;
}

static bool is_tracked(const struct transit *transit, uint32_t slot)
{
	return transit && transit->owner[slot] & SHUNT_SLOT_TRACKED;
}

/* before: of the table in force, or NULL. */
static void list_fresh(const struct transit *before, const struct transit *transit, struct engine_fresh *fresh)
{
	for (uint32_t i = 0; i < transit->slots; i++)
		if (is_tracked(transit, i) && (!is_tracked(before, i) || (transit->range[i] && !before->range[i])))
			fresh->slots[fresh->n++] = i;
	fresh->own = transit->own && !(before && before->own);
}

static int allot(const struct engine *engine, struct plan *plan, struct plan_pool *pool, const struct transit *before)
{
	struct transit *transit = &pool->transit;
	uint32_t lacking = transit_without(transit);
	uint64_t others;
	int ret;

	if (!lacking)
		return 0;
	pool->fresh.slots = calloc(transit->slots, sizeof(*pool->fresh.slots));
	ret = pool->fresh.slots ? find_room(engine, plan) : -ENOMEM;
	if (ret)
		return ret;
	others = untracked(plan, plan->room.used + lacking);
	transit_allot(transit, &plan->room, others);
	transit_allot_own(transit, &plan->room, others);
	list_fresh(before, transit, &pool->fresh);
	return 0;
}

static int start_from(const struct engine *engine, struct plan_pool *pool, const struct published *in_force)
{
	const uint32_t slots = pool->model->slots;
	int ret = transit_init(&pool->transit, slots);

	if (ret)
		return ret;
	if (in_force) {
		memcpy(pool->transit.owner, in_force->transit.owner, slots * sizeof(*pool->transit.owner));
		memcpy(pool->transit.base, in_force->transit.base, slots * sizeof(*pool->transit.base));
		memcpy(pool->transit.range, in_force->transit.range, slots * sizeof(*pool->transit.range));
		memcpy(pool->transit.t0, in_force->transit.t0, slots * sizeof(*pool->transit.t0));
		pool->transit.own = in_force->transit.own;
	} else if (engine->copy && pool->model->connections == MODEL_TRACKED) {
		transit_copy_take(engine->copy, pool->ids->index, engine_clock_ms(), &pool->transit);
	}
	return 0;
}

static uint64_t limits_of(const struct plan_pool *pool, const struct published *in_force)
{
	bool running = in_force && in_force->header.flags & SHUNT_TABLE_IN_TRANSITION;

	return transit_limits(pool->model->settle, pool->model->learn, running ? in_force->header.limits : 0);
}

/* in_force: of the same number of slots, or NULL.  Sets what of the header speaks of the transition. */
int engine_plan_transit(const struct engine *engine, struct plan *plan, struct plan_pool *pool,
			const struct published *in_force)
{
	struct shunt_table *header = &pool->header;
	int ret = start_from(engine, pool, in_force);
	uint32_t earlier;

	if (ret)
		return ret;
	if (pool->model->connections == MODEL_STATELESS)
		transit_set(&pool->transit, pool->owner);
	else if (in_force)
		transit_change(&pool->transit, pool->owner, plan->called, (uint32_t)(engine_clock_ms() / ENGINE_T0_MS));
	else
		transit_restart(&pool->transit, pool->owner, plan->called);
	ret = allot(engine, plan, pool, in_force ? &in_force->transit : NULL);
	if (ret)
		return ret;
	earlier = in_force ? transit_without(&in_force->transit) : 0;
	pool->without = transit_without(&pool->transit);
	pool->without -= pool->without < earlier ? pool->without : earlier;
	header->ranges = in_force ? in_force->header.ranges : 0;
	if (transit_tracked(&pool->transit)) {
		header->flags = SHUNT_TABLE_IN_TRANSITION;
		header->limits = limits_of(pool, in_force);
	}
	pool->publish = !in_force || in_force->header.flags != header->flags ||
			(header->flags && in_force->header.limits != header->limits) ||
			!transit_same(&in_force->transit, &pool->transit);
	return 0;
}

/* ---- publish ---- */

int engine_forget_stats(struct pinned *pinned, uint32_t index, bool lost)
{
	struct shunt_pool_stats *cpu = calloc((size_t)pinned->maps.n_cpus, sizeof(*cpu));
	int ret = cpu ? 0 : -ENOMEM;

	if (!ret && lost)
		cpu->lost_at = engine_clock_ms() * 1000000;
	if (!ret && bpf_map_update_elem(pinned->maps.pool_stats, &index, cpu, BPF_ANY))
		ret = -errno;
	free(cpu);
	pinned->watches[index] = (struct watch){};
	return ret;
}

static void set_own(const struct pinned *pinned, const struct transit *transit, uint32_t slot, uint64_t word)
{
	__atomic_store_n(shunt_flow_place(pinned->flows, transit->own + slot), word, __ATOMIC_RELAXED);
}

/* An own word says whether its slot's range may hold entries; and where there is no range, it holds none either. */
static void wipe(const struct pinned *pinned, const struct transit *transit, const struct engine_fresh *fresh)
{
	for (uint32_t i = 0; fresh->own && i < transit->slots; i++)
		set_own(pinned, transit, i, SHUNT_FLOW_USED);
	for (size_t i = 0; i < fresh->n; i++) {
		uint32_t slot = fresh->slots[i], range = transit->range[slot];

		if (range)
			memset(&pinned->flows[SHUNT_RANGE_START(range)], 0,
			       sizeof(*pinned->flows) << SHUNT_RANGE_LOG2(range));
		if (transit->own)
			set_own(pinned, transit, slot, range ? 0 : SHUNT_FLOW_USED);
	}
}

static int publish_ranges(const struct pinned *pinned, enum shunt_table_class class, uint32_t index,
			  const struct transit *transit)
{
	char *value = calloc(1, maps_inner_size(&pinned->maps, published_ranges(class)));
	int ret;

	if (!value)
		return -ENOMEM;
	memcpy(value, transit->range, transit->slots * sizeof(*transit->range));
	transit_pack_t0(transit, value + SHUNT_RANGES_T0(published_capacity(class)));
	ret = maps_inner_publish(&pinned->maps, published_ranges(class), index, value);
	free(value);
	return ret;
}

static int publish_slots(const struct pinned *pinned, enum shunt_table_class class, const struct shunt_table *header,
			 const struct transit *transit)
{
	uint32_t capacity = published_capacity(class);
	char *value = calloc(1, maps_inner_size(&pinned->maps, (enum maps_inner) class));
	uint16_t *owner, *base;
	int ret;

	if (!value)
		return -ENOMEM;
	memcpy(value, header, sizeof(*header));
	owner = (uint16_t *)(value + SHUNT_TABLE_OWNER(capacity));
	base = (uint16_t *)(value + SHUNT_TABLE_BASE(capacity));
	for (uint32_t i = 0; i < capacity; i++) {
		owner[i] = i < transit->slots ? transit->owner[i] : SHUNT_BACKEND_NONE;
		base[i] = i < transit->slots ? transit->base[i] : SHUNT_BACKEND_NONE;
	}
	ret = published_densify(value, class);
	if (!ret)
		ret = maps_inner_publish(&pinned->maps, (enum maps_inner) class, header->pool, value);
	free(value);
	return ret;
}

int engine_remove_ranges(const struct pinned *pinned, enum shunt_table_class class, uint32_t pool)
{
	int ret = 0;

	for (int turn = 0; turn < 2 && !ret; turn++)
		ret = maps_inner_remove(&pinned->maps, published_ranges(class),
					(uint32_t)SHUNT_RANGES_INDEX(pool, turn));
	return ret;
}

/*
 * Each publication waits for a grace period: a range in no table of force is nobody's when it is given again.  Pools
 * may be published side by side.  The ranges of the turn before are taken away when no change has come for a while
 * (engine_tick()): that is another grace period, a quarter of what an operator waits for.
 */
int engine_prepare_transit(const struct pinned *pinned, enum shunt_table_class class, struct shunt_table *header,
			   const struct transit *transit, const struct engine_fresh *fresh)
{
	int turn = (header->ranges & 1) ^ 1;
	bool tracked = header->flags & SHUNT_TABLE_IN_TRANSITION;

	if (fresh)
		wipe(pinned, transit, fresh);
	header->own = tracked ? transit->own : 0;
	header->ranges = tracked ? (uint32_t)SHUNT_RANGES_INDEX(header->pool, turn) : 0;
	return tracked ? publish_ranges(pinned, class, header->ranges, transit) : 0;
}

int engine_publish_transit(const struct pinned *pinned, enum shunt_table_class class, const struct shunt_table *header,
			   const struct transit *transit)
{
	int ret = publish_slots(pinned, class, header, transit);

	return ret || header->flags & SHUNT_TABLE_IN_TRANSITION ? ret
								: engine_remove_ranges(pinned, class, header->pool);
}
