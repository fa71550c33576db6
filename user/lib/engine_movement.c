/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a table that is to be published changes, against the one in force: for plans, policy and history. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"

/* Slots of each member: malloc'd. */
static uint32_t *count(const struct table *table)
{
	uint32_t *slots = calloc(table->n_members + 1, sizeof(*slots));

	for (uint32_t i = 0; slots && i < table->slots; i++)
		if (table->owner[i] < table->n_members)
			slots[table->owner[i]]++;
	return slots;
}

/* The largest share against what the weights of those that have slots say. */
static double max_mean(const struct table *table, const uint32_t *slots, uint32_t *n)
{
	uint64_t weights = 0;
	double largest = 0;

	*n = 0;
	for (size_t i = 0; i < table->n_members; i++) {
		if (!slots[i] || !table->members[i].weight)
			continue;
		weights += table->members[i].weight;
		++*n;
	}
	for (size_t i = 0; i < table->n_members; i++) {
		double share = (double)slots[i] * (double)weights / table->slots;

		if (slots[i] && table->members[i].weight && share / table->members[i].weight > largest)
			largest = share / table->members[i].weight;
	}
	return largest;
}

static int by_name(const void *name, const void *member)
{
	return strcmp(name, ((const struct table_member *)member)->name);
}

static bool has_slots(const struct plan_pool *pool, const char *name)
{
	const struct engine_pool_change *change = &pool->change;
	const struct table_member *found =
		change->n_members ? bsearch(name, change->members, change->n_members, sizeof(*found), by_name) : NULL;

	return found && change->member_slots[found - change->members];
}

static int compare(struct plan_pool *pool, const struct table *before, const struct table *after)
{
	struct engine_pool_change *change = &pool->change;
	uint32_t *slots = count(before);
	struct table_diff diff;
	int ret = slots ? 0 : -ENOMEM;

	if (ret)
		return ret;
	change->max_mean_before = max_mean(before, slots, &change->backends_before);
	for (size_t i = 0; i < before->n_members; i++)
		change->leaving += slots[i] && !has_slots(pool, before->members[i].name);
	free(slots);
	if (change->resized)
		return 0;
	ret = table_diff(before, after, &diff);
	if (ret)
		return ret;
	change->moved = diff.moved;
	change->minimum = diff.minimum;
	table_diff_free(&diff);
	return 0;
}

static bool is_entry(const struct pinned *pinned, uint64_t number, uint32_t id)
{
	uint64_t word = __atomic_load_n(shunt_flow_place(pinned->flows, number), __ATOMIC_RELAXED);

	return SHUNT_FLOW_BACKEND(word) == id && transit_valid(word, pinned->backends, pinned->maps.meta.backends);
}

/* Of one slot that has a range. */
static uint64_t count_entries(const struct pinned *pinned, const struct transit *transit, uint32_t slot)
{
	const uint64_t end_of_all = (uint64_t)pinned->n_buckets * SHUNT_FLOW_WAYS;
	uint32_t range = transit->range[slot], id = transit->owner[slot] & SHUNT_BACKEND_NONE;
	uint64_t from = (uint64_t)SHUNT_RANGE_START(range) * SHUNT_FLOW_WAYS, own = (uint64_t)transit->own + slot;
	uint64_t to = from + ((uint64_t)SHUNT_FLOW_WAYS << SHUNT_RANGE_LOG2(range)), n = 0;

	for (uint64_t i = from; i < to && to <= end_of_all; i++)
		n += is_entry(pinned, i, id);
	return n + (transit->own && own < end_of_all && is_entry(pinned, own, id));
}

static bool same_owner(const struct table *before, const struct table *after, uint32_t slot)
{
	uint16_t was = before->owner[slot], is = after->owner[slot];

	return was < before->n_members && is < after->n_members &&
	       !strcmp(before->members[was].name, after->members[is].name);
}

/* Of slots at rest nothing is recorded: only those that are in transition already know their connections. */
static uint64_t count_connections(const struct engine *engine, const struct engine_pool_change *change,
				  const struct transit *transit, const struct table *before, const struct table *after)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < transit->slots; i++)
		if (transit->range[i] && (change->resized || !same_owner(before, after, i)))
			n += count_entries(&engine->pinned, transit, i);
	return n;
}

static int copy_members(struct engine_pool_change *change, const struct table *after)
{
	struct table_member *members = calloc(after->n_members + 1, sizeof(*members));

	change->members = members;
	change->member_slots = count(after);
	change->n_members = after->n_members;
	if (!members || !change->member_slots)
		return -ENOMEM;
	if (after->n_members)
		memcpy(members, after->members, after->n_members * sizeof(*members));
	return 0;
}

static uint32_t count_waiting(const struct plan_pool *pool)
{
	uint32_t n = 0;

	for (size_t i = 0; i < pool->model->n_backends; i++)
		n += pool->model->backends[i].weight && !pool->backends[i].reached;
	return n;
}

static uint32_t count_down(const struct plan_pool *pool)
{
	uint32_t n = 0;

	for (size_t i = 0; i < pool->model->n_backends; i++)
		n += pool->model->backends[i].weight && pool->backends[i].ids->down;
	return n;
}

int engine_plan_movement(const struct engine *engine, const struct plan *plan, struct plan_pool *pool,
			 const struct table *after, const struct published *in_force)
{
	const struct model *model = engine->state.model;
	const struct model_pool *old = model ? model_pool(model, pool->model->name) : NULL;
	struct engine_pool_change *change = &pool->change;
	struct previous_table previous = {};
	int ret;

	*change = (struct engine_pool_change){
		.pool = pool->model->name,
		.algorithm = pool->model->algorithm,
		.added = !old,
		/* After a crash the table in force may be older than the model. */
		.resized = in_force ? in_force->transit.slots != after->slots : old && old->slots != after->slots,
		.history = table_algorithm(pool->model->algorithm)->history,
		.balance_percent = pool->model->balance_percent,
		.vnodes = pool->model->vnodes,
		.ramps = pool->ramps,
		.slots = after->slots,
		.digest = pool->header.digest,
		.digest_before = in_force ? in_force->header.digest : 0,
		.moved = after->slots,
		.minimum = after->slots,
		.waiting = count_waiting(pool),
		.down = count_down(pool),
	};
	ret = copy_members(change, after);
	if (!ret)
		change->max_mean_after = max_mean(after, change->member_slots, &change->backends_after);
	if (!ret && in_force)
		ret = engine_previous_table(engine, pool, &in_force->transit, &previous);
	if (!ret && previous.owner)
		ret = compare(pool, &previous.table, after);
	if (!ret && previous.owner && plan->asked) /* nobody else reads it, and it reads much of the flow table */
		change->connections = count_connections(engine, change, &in_force->transit, &previous.table, after);
	engine_previous_free(&previous);
	return ret;
}

void engine_movement_free(struct plan_pool *pool)
{
	free((void *)pool->change.members);
	free((void *)pool->change.member_slots);
	pool->change = (struct engine_pool_change){};
}

static struct engine_pool_change removed(const struct engine *engine, const struct model_pool *pool)
{
	struct engine_pool_change change = {
		.pool = pool->name,
		.algorithm = pool->algorithm,
		.removed = true,
		.slots = pool->slots,
		.moved = pool->slots,
		.minimum = pool->slots,
	};
	struct engine_backend_info info;

	for (size_t i = 0; i < pool->n_backends; i++)
		change.backends_before +=
			!engine_backend_info(engine, pool->name, pool->backends[i].name, &info) && info.slots;
	change.leaving = change.backends_before;
	return change;
}

int engine_plan_changes(const struct engine *engine, const struct plan *plan, struct engine_pool_change **out,
			size_t *n)
{
	const struct model *old = engine->state.model, *model = plan->next.model;
	struct engine_pool_change *list = calloc(model->n_pools + (old ? old->n_pools : 0) + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	*n = 0;
	for (size_t i = 0; i < model->n_pools; i++)
		if (plan->pools[i].publish && plan->pools[i].new_epoch)
			list[(*n)++] = plan->pools[i].change;
	for (size_t i = 0; old && i < old->n_pools; i++)
		if (!model_pool(model, old->pools[i].name))
			list[(*n)++] = removed(engine, &old->pools[i]);
	*out = list;
	return 0;
}
