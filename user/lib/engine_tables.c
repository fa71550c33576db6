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
	size_t n = pool->model->n_backends;
	struct members members = {calloc(n + 1, sizeof(*members.member)), calloc(n + 1, sizeof(*members.at)), 0};

	*out = members;
	if (!members.member || !members.at)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct model_backend *backend = &pool->model->backends[i];

		if (!backend->weight || !pool->backends[i].reached)
			continue;
		out->member[out->n] = (struct table_member){.name = backend->name, .weight = backend->weight};
		out->at[out->n++] = (uint32_t)i;
	}
	return 0;
}

static void members_free(struct members *members)
{
	free(members->member);
	free(members->at);
}

static uint64_t inputs_of(const struct plan_pool *pool, const struct members *members)
{
	XXH64_state_t state;

	XXH64_reset(&state, 0);
	XXH64_update(&state, &pool->model->slots, sizeof(pool->model->slots));
	XXH64_update(&state, pool->model->algorithm, strlen(pool->model->algorithm) + 1);
	XXH64_update(&state, &pool->model->balance_percent, sizeof(pool->model->balance_percent));
	XXH64_update(&state, &pool->model->vnodes, sizeof(pool->model->vnodes));
	for (size_t i = 0; i < members->n; i++) {
		const struct state_backend *ids = pool->backends[members->at[i]].ids;
		const struct table_member *member = &members->member[i];

		XXH64_update(&state, member->name, strlen(member->name) + 1);
		XXH64_update(&state, &member->weight, sizeof(member->weight));
		XXH64_update(&state, ids, sizeof(*ids));
	}
	return XXH64_digest(&state);
}

/* ---- the table in force ---- */

/* *out stays as it is where there is none. */
static int read_table(const struct engine *engine, const struct plan_pool *pool, struct shunt_table **out)
{
	struct shunt_table *value = malloc(maps_inner_size(&engine->pinned.maps, (enum maps_inner)pool->class));
	int ret;

	if (!value)
		return -ENOMEM;
	ret = maps_inner_read(&engine->pinned.maps, (enum maps_inner)pool->class, pool->ids->index, value);
	if (ret)
		free(value);
	else
		*out = value;
	return ret == -ENOENT ? 0 : ret;
}

static const uint16_t *owners_in(const struct shunt_table *value)
{
	return (const uint16_t *)(value + 1);
}

int engine_previous_table(const struct engine *engine, const struct plan_pool *pool, const struct shunt_table *value,
			  struct previous_table *out)
{
	const struct model *model = engine->state.model;
	const struct model_pool *old = model ? model_pool(model, pool->model->name) : NULL;
	uint16_t at[SHUNT_BACKENDS_MAX + 1];

	if (!old)
		return 0;
	memset(at, 0xff, sizeof(at));
	out->members = calloc(old->n_backends + 1, sizeof(*out->members));
	out->owner = calloc(value->slots, sizeof(*out->owner));
	if (!out->members || !out->owner)
		return -ENOMEM;
	for (size_t i = 0; i < old->n_backends; i++) {
		const struct state_backend *ids = &engine->state.pools[old - model->pools].backends[i];

		out->members[i] =
			(struct table_member){.name = old->backends[i].name, .weight = old->backends[i].weight};
		at[ids->id & SHUNT_BACKEND_NONE] = (uint16_t)i;
	}
	at[SHUNT_BACKEND_NONE] = TABLE_NONE;
	for (uint32_t i = 0; i < value->slots; i++)
		out->owner[i] = at[owners_in(value)[i] & SHUNT_BACKEND_NONE];
	out->table = (struct table){out->members, old->n_backends, value->slots, out->owner};
	return 0;
}

void engine_previous_free(struct previous_table *previous)
{
	free(previous->members);
	free(previous->owner);
}

/* ---- building ---- */

static int build(const struct engine *engine, const struct plan_pool *pool, const struct members *members,
		 const struct shunt_table *in_force, uint16_t *owner, struct report *report)
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
		ret = engine_previous_table(engine, pool, in_force, &previous);
	if (!ret)
		ret = algorithm->build(members->member, members->n, &params, previous.owner ? &previous.table : NULL,
				       owner, &said);
	snprintf(pool_name, sizeof(pool_name), "pool \"%s\"", pool->model->name);
	report_prefix(&said, pool_name);
	report_move(report, &said);
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

/* Whether the table in force is the one that was just built, ids and all. */
static bool same_table(const struct shunt_table *value, const struct shunt_table *header, const uint16_t *owner)
{
	return value && value->abi == header->abi && value->slots == header->slots && value->pool == header->pool &&
	       value->flags == header->flags && value->algorithm == header->algorithm &&
	       value->digest == header->digest && !memcmp(owners_in(value), owner, header->slots * sizeof(*owner));
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

/* From members to ids, what to call it, and what it changes. */
static int decide(const struct engine *engine, struct plan *plan, struct plan_pool *pool, const struct members *members,
		  const struct shunt_table *in_force)
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
	pool->new_epoch = !in_force || in_force->digest != header->digest;
	if (pool->new_epoch)
		ret = engine_plan_movement(engine, pool, &table, in_force);
	name_ids(pool, members);
	pool->publish = !same_table(in_force, header, pool->owner);
	if (pool->publish)
		number(pool, in_force, plan->next.epoch_floor, header);
	else
		*header = *in_force;
	pool->change.epoch = header->epoch;
	record(plan, pool, header);
	return ret;
}

static int plan_table(const struct engine *engine, struct plan *plan, struct plan_pool *pool, struct report *report)
{
	struct shunt_table *in_force = NULL;
	const struct live_table *live;
	struct members members;
	int ret = members_of(pool, &members);

	if (ret)
		goto out;
	pool->class = engine_table_class(pool->model->slots);
	pool->inputs = inputs_of(pool, &members);
	live = pinned_table(&engine->pinned, pool->class, pool->ids->index);
	if (live->published && live->inputs == pool->inputs)
		goto out;
	pool->owner = calloc(pool->model->slots, sizeof(*pool->owner));
	ret = pool->owner ? plan_quotas(pool, &members) : -ENOMEM;
	if (!ret && live->published)
		ret = read_table(engine, pool, &in_force);
	if (!ret)
		ret = build(engine, pool, &members, in_force, pool->owner, report);
	if (!ret)
		ret = decide(engine, plan, pool, &members, in_force);
out:
	free(in_force);
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
