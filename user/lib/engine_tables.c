/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables, planned: what each pool should have, whether it has it, and which epoch the next one is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#define XXH_STATIC_LINKING_ONLY /* for the state on the stack */
#include <xxhash.h>

#include "engine_internal.h"
#include "kernel.h"

enum shunt_table_class engine_table_class(uint32_t slots)
{
	if (slots <= SHUNT_SLOTS_S)
		return SHUNT_TABLE_S;
	return slots <= SHUNT_SLOTS_M ? SHUNT_TABLE_M : SHUNT_TABLE_L;
}

/* The members that can have slots, and where in the pool they stand. */
struct members {
	struct table_member *member;
	uint32_t *at;
	size_t n;
};

static int members_of(const struct plan_pool *pool, struct members *out)
{
	const uint32_t units = engine_ramp_units(pool->model, pool->ids);
	size_t n = pool->model->n_backends;
	struct members members = {calloc(n + 1, sizeof(*members.member)), calloc(n + 1, sizeof(*members.at)), 0};

	*out = members;
	if (!members.member || !members.at)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct model_backend *backend = &pool->model->backends[i];

		if (!engine_may_have_slots(&pool->backends[i]))
			continue;
		out->member[out->n] = (struct table_member){
			.name = backend->name,
			.weight = engine_ramp_weight(backend, pool->backends[i].ids, units),
		};
		out->at[out->n++] = (uint32_t)i;
	}
	return 0;
}

static void members_free(struct members *members)
{
	free(members->member);
	free(members->at);
}

/* Ids of those without slots too: while they are base, the table changes when they go. */
static uint64_t inputs_of(const struct plan_pool *pool, const struct members *members)
{
	const struct model_pool *model = pool->model;
	const uint32_t numbers[] = {model->slots,  model->balance_percent,
				    model->vnodes, (uint32_t)model->connections,
				    model->settle, model->learn};
	XXH64_state_t state;

	XXH64_reset(&state, 0);
	XXH64_update(&state, numbers, sizeof(numbers));
	XXH64_update(&state, model->algorithm, strlen(model->algorithm) + 1);
	for (size_t i = 0; i < members->n; i++) {
		const struct table_member *member = &members->member[i];

		XXH64_update(&state, member->name, strlen(member->name) + 1);
		XXH64_update(&state, &member->weight, sizeof(member->weight));
		XXH64_update(&state, &members->at[i], sizeof(members->at[i]));
	}
	for (size_t i = 0; i < model->n_backends; i++) {
		const struct state_backend *ids = pool->backends[i].ids;
		const uint32_t id[] = {ids->id, ids->generation, pool->backends[i].reached};

		XXH64_update(&state, id, sizeof(id));
	}
	return XXH64_digest(&state);
}

/* ---- the table in force ---- */

int engine_previous_table(const struct engine *engine, const struct plan_pool *pool, const struct transit *transit,
			  struct previous_table *out)
{
	const struct model *model = engine->state.model;
	const struct model_pool *old = model ? model_pool(model, pool->model->name) : NULL;
	uint16_t at[SHUNT_BACKENDS_MAX + 1];
	uint32_t units;

	if (!old)
		return 0;
	units = engine_ramp_units(old, &engine->state.pools[old - model->pools]);
	memset(at, 0xff, sizeof(at));
	out->members = calloc(old->n_backends + 1, sizeof(*out->members));
	out->owner = calloc(transit->slots, sizeof(*out->owner));
	if (!out->members || !out->owner)
		return -ENOMEM;
	for (size_t i = 0; i < old->n_backends; i++) {
		const struct state_backend *ids = &engine->state.pools[old - model->pools].backends[i];

		out->members[i] = (struct table_member){.name = old->backends[i].name,
							.weight = engine_ramp_weight(&old->backends[i], ids, units)};
		at[ids->id & SHUNT_BACKEND_NONE] = (uint16_t)i;
	}
	at[SHUNT_BACKEND_NONE] = TABLE_NONE;
	for (uint32_t i = 0; i < transit->slots; i++)
		out->owner[i] = at[transit->owner[i] & SHUNT_BACKEND_NONE];
	out->table = (struct table){out->members, old->n_backends, transit->slots, out->owner};
	return 0;
}

void engine_previous_free(struct previous_table *previous)
{
	free(previous->members);
	free(previous->owner);
}

/* ---- building ---- */

static int build(const struct engine *engine, const struct plan_pool *pool, const struct members *members,
		 const struct published *in_force, uint16_t *owner, struct report *report)
{
	const struct table_algorithm *algorithm = table_algorithm(pool->model->algorithm);
	const struct table_params params = {.slots = pool->model->slots,
					    .balance_percent = pool->model->balance_percent,
					    .vnodes = pool->model->vnodes};
	struct previous_table previous = {};
	struct report said = {};
	char pool_name[MODEL_NAME_MAX + sizeof("pool \"\"")];
	int ret = 0;

	if (!algorithm)
		return report_error(report, -EINVAL, "pool %s: there is no table algorithm '%s'", pool->model->name,
				    pool->model->algorithm);
	if (!members->n) {
		memset(owner, 0xff, params.slots * sizeof(*owner));
		return 0;
	}
	if (algorithm->history && in_force)
		ret = engine_previous_table(engine, pool, &in_force->transit, &previous);
	if (!ret)
		ret = algorithm->build(members->member, members->n, &params, previous.owner ? &previous.table : NULL,
				       owner, &said);
	snprintf(pool_name, sizeof(pool_name), "pool \"%s\"", pool->model->name);
	report_prefix(&said, pool_name);
	if (ret || !pool->ramps) /* shares of a step are what they are, and not for long */
		report_move(report, &said);
	report_free(&said);
	engine_previous_free(&previous);
	return ret;
}

static int plan_quotas(struct plan_pool *pool, const struct members *members)
{
	uint32_t *quota = calloc(members->n + 1, sizeof(*quota));
	int ret = quota ? 0 : -ENOMEM;

	pool->quotas = calloc(pool->model->n_backends + 1, sizeof(*pool->quotas));
	if (!pool->quotas)
		ret = -ENOMEM;
	if (!ret && members->n)
		ret = table_quotas(members->member, members->n, pool->model->slots, quota, NULL);
	for (size_t i = 0; i < members->n && !ret; i++)
		pool->quotas[members->at[i]] = quota[i];
	free(quota);
	return ret;
}

/*
 * Epoch and phase of a table with this digest.  now: the one in force, or NULL.  The numbers were perhaps in force once
 * the state file has them, so an epoch that was allotted to other owners is not used again, in force or not.
 */
static void number(const struct plan_pool *pool, const struct shunt_table *now, uint64_t floor,
		   struct shunt_table *header)
{
	const struct state_pool *ids = pool->ids;

	header->activated = (uint64_t)time(NULL);
	if (now && now->digest == header->digest) {
		header->epoch = now->epoch;
		header->phase = now->phase + 1;
		header->activated = now->activated;
	} else if (ids->epoch && ids->digest == header->digest) {
		header->epoch = ids->epoch;
		header->phase = ids->phase + 1;
	} else {
		uint64_t last = ids->epoch ? ids->epoch : floor;

		header->epoch = (now && now->epoch > last ? now->epoch : last) + 1;
		header->phase = 0;
	}
}

static void record(struct plan *plan, struct plan_pool *pool, const struct shunt_table *header)
{
	struct state_pool *ids = pool->ids;

	if (header->epoch < ids->epoch)
		return; /* allotted to a table that never came into force; its number is used up all the same */
	if (header->epoch == ids->epoch && header->phase == ids->phase && header->digest == ids->digest)
		return;
	ids->epoch = header->epoch;
	ids->phase = header->phase;
	ids->digest = header->digest;
	plan->dirty = true;
}

/* From members to ids. */
static void name_ids(struct plan_pool *pool, const struct members *members)
{
	for (uint32_t i = 0; i < pool->header.slots; i++) {
		uint16_t member = pool->owner[i];

		pool->owner[i] = member == TABLE_NONE ? SHUNT_BACKEND_NONE
						      : (uint16_t)pool->backends[members->at[member]].ids->id;
	}
}

/* Whether anything but the slots differs from what is in force. */
static bool other_header(const struct shunt_table *now, const struct shunt_table *next)
{
	return now->abi != next->abi || now->algorithm != next->algorithm || now->digest != next->digest;
}

/* From members to ids, what becomes of connections, what to call it, and what it changes. */
static int decide(const struct engine *engine, struct plan *plan, struct plan_pool *pool, const struct members *members,
		  const struct published *in_force)
{
	const struct table table = {members->member, members->n, pool->model->slots, pool->owner};
	struct shunt_table *header = &pool->header;
	int ret = 0;

	*header = (struct shunt_table){
		.abi = SHUNT_ABI,
		.slots = pool->model->slots,
		.pool = pool->ids->index,
		.algorithm = (uint16_t)(table_algorithm(pool->model->algorithm) - table_algorithms),
		.digest = table_digest(&table),
	};
	pool->new_epoch = !in_force || in_force->header.digest != header->digest;
	if (pool->new_epoch)
		ret = engine_plan_movement(engine, plan, pool, &table, in_force);
	if (ret)
		return ret;
	name_ids(pool, members);
	if (in_force && (in_force->header.slots != header->slots || in_force->header.pool != header->pool))
		in_force = NULL; /* other slots: no connection is where it was */
	ret = engine_plan_transit(engine, plan, pool, in_force);
	if (ret)
		return ret;
	pool->publish |= !in_force || other_header(&in_force->header, header);
	if (pool->publish)
		number(pool, in_force ? &in_force->header : NULL, plan->next.epoch_floor, header);
	else
		*header = in_force->header;
	pool->change.epoch = header->epoch;
	pool->change.without = pool->without;
	record(plan, pool, header);
	return 0;
}

static int refuse_without(const struct engine *engine, const struct plan_pool *pool, struct report *report)
{
	const struct maps *maps = &engine->pinned.maps;

	return report_error(report, -ENOSPC,
			    "pool %s: the flow table has no room left for %u of the slots that would be in transition, "
			    "so that connections might break: wait until earlier changes have settled (shuntctl pool "
			    "show %s), or grow it: `shunt-loader upgrade --flows N%s%s` with more than %u",
			    pool->model->name, pool->without, pool->model->name, maps_instance_option(maps->instance),
			    maps_instance_name(maps->instance), maps->meta.flows);
}

static int plan_table(const struct engine *engine, struct plan *plan, struct plan_pool *pool, struct report *report)
{
	struct published read = {}, *in_force = NULL;
	const struct live_table *live;
	struct members members;
	int ret;

	engine_plan_ramps(engine, plan, pool);
	ret = members_of(pool, &members);
	if (ret)
		goto out;
	pool->class = engine_table_class(pool->model->slots);
	pool->inputs = inputs_of(pool, &members);
	live = pinned_table(&engine->pinned, pool->class, pool->ids->index);
	if (live->published && live->inputs == pool->inputs)
		goto out;
	pool->owner = calloc(pool->model->slots, sizeof(*pool->owner));
	ret = pool->owner ? plan_quotas(pool, &members) : -ENOMEM;
	if (!ret && live->published) {
		ret = published_read(&engine->pinned.maps, pool->class, pool->ids->index, &read);
		in_force = ret ? NULL : &read;
		ret = ret == -ENOENT ? 0 : ret;
	}
	if (!ret)
		ret = build(engine, pool, &members, in_force, pool->owner, report);
	if (!ret)
		ret = decide(engine, plan, pool, &members, in_force);
	if (!ret && plan->strict && pool->without)
		ret = refuse_without(engine, pool, report);
out:
	transit_free(&read.transit);
	members_free(&members);
	return ret;
}

/* The highest epoch of pools that are no more: one that begins, perhaps under an old name, goes on above it. */
static uint64_t epoch_floor(const struct engine *engine, const struct plan *plan)
{
	const struct pinned *pinned = &engine->pinned;
	const struct model *old = engine->state.model;
	bool *known = calloc(pinned->maps.meta.pools, sizeof(*known));
	uint64_t floor = engine->state.epoch_floor;

	for (size_t i = 0; old && i < old->n_pools; i++) {
		const struct state_pool *ids = &engine->state.pools[i];

		if (known && ids->index < pinned->maps.meta.pools)
			known[ids->index] = true;
		if (ids->epoch > floor && !model_pool(plan->next.model, old->pools[i].name))
			floor = ids->epoch;
	}
	/* Tables that the state does not know, because it was lost or is older than they. */
	for (size_t i = 0; i < (size_t)SHUNT_NR_TABLE_CLASSES * pinned->maps.meta.pools; i++) {
		const struct live_table *live = &pinned->tables[i];

		if (live->published && live->header.epoch > floor && !(known && known[i % pinned->maps.meta.pools]))
			floor = live->header.epoch;
	}
	free(known);
	return floor;
}

int engine_plan_tables(const struct engine *engine, struct plan *plan, struct report *report)
{
	int ret = 0;

	plan->next.epoch_floor = epoch_floor(engine, plan);
	plan->dirty |= plan->next.epoch_floor != engine->state.epoch_floor;
	for (size_t i = 0; i < plan->next.model->n_pools && !ret; i++)
		ret = plan_table(engine, plan, &plan->pools[i], report);
	return ret;
}
