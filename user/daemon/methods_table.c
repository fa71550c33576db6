/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* PoolTable: the table in force, as the packet path has it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "methods.h"

#define NOBODY UINT32_MAX

/* From backend ids to rows. */
struct rows {
	uint32_t row[SHUNT_BACKENDS_MAX + 1]; /* NOBODY: no backend of the pool */
	uint32_t *slots;		      /* of each row */
	uint64_t weights;
};

static int fill_rows(const struct engine *engine, const struct model_pool *pool, struct rows *rows)
{
	struct engine_backend_info info;

	memset(rows->row, 0xff, sizeof(rows->row));
	rows->slots = calloc(pool->n_backends + 1, sizeof(*rows->slots));
	if (!rows->slots)
		return -ENOMEM;
	for (size_t i = 0; i < pool->n_backends; i++) {
		rows->weights += pool->backends[i].weight;
		if (!engine_backend_info(engine, pool->name, pool->backends[i].name, &info) &&
		    info.id <= SHUNT_BACKENDS_MAX)
			rows->row[info.id] = (uint32_t)i;
	}
	return 0;
}

/* [[row or -1, run], ...] */
static json_t *run_lengths(const struct shunt_table *table, const uint16_t *owner, const struct rows *rows)
{
	json_t *list = json_array();
	uint32_t from = 0;

	for (uint32_t slot = 1; slot <= table->slots; slot++) {
		uint32_t before = rows->row[owner[slot - 1] & ~SHUNT_SLOT_TRACKED];
		json_t *run;

		if (slot < table->slots && rows->row[owner[slot] & ~SHUNT_SLOT_TRACKED] == before)
			continue;
		run = json_array();
		json_array_append_new(run, json_integer(before == NOBODY ? -1 : (json_int_t)before));
		json_array_append_new(run, json_integer(slot - from));
		json_array_append_new(list, run);
		from = slot;
	}
	return list;
}

static json_t *describe(const struct model_pool *pool, const struct shunt_table *table, const uint16_t *owner,
			struct rows *rows, bool owners)
{
	json_t *list = json_array(), *reply;
	char digest[17];

	for (uint32_t slot = 0; slot < table->slots; slot++) {
		uint32_t row = rows->row[owner[slot] & ~SHUNT_SLOT_TRACKED];

		if (row != NOBODY)
			rows->slots[row]++;
	}
	for (size_t i = 0; i < pool->n_backends; i++) {
		const struct model_backend *backend = &pool->backends[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:I, s:I, s:f, s:f}", "backend", backend->name, "weight",
						(json_int_t)backend->weight, "slots", (json_int_t)rows->slots[i],
						"share", 100.0 * rows->slots[i] / table->slots, "target",
						rows->weights ? 100.0 * backend->weight / (double)rows->weights : 0.0));
	}
	snprintf(digest, sizeof(digest), "%016llx", (unsigned long long)table->digest);
	reply = json_pack("{s:s, s:I, s:s, s:I, s:I, s:o}", "pool", pool->name, "epoch", (json_int_t)table->epoch,
			  "digest", digest, "slots", (json_int_t)table->slots, "activated",
			  (json_int_t)table->activated, "rows", list);
	if (owners)
		json_object_set_new(reply, "owners", run_lengths(table, owner, rows));
	return reply;
}

static enum maps_inner kind_of(uint32_t slots)
{
	return slots <= SHUNT_SLOTS_S ? MAPS_TABLE_S : slots <= SHUNT_SLOTS_M ? MAPS_TABLE_M : MAPS_TABLE_L;
}

json_t *method_pool_table(struct call *call)
{
	const struct engine *engine = call->daemon->engine;
	const struct model *model = engine_model(engine);
	const char *name = call_text(call, "name");
	const struct model_pool *pool = model ? model_pool(model, name) : NULL;
	struct engine_pool_info info;
	struct shunt_table *table;
	enum maps_inner kind;
	struct rows *rows;
	json_t *reply = NULL;

	if (!pool || engine_pool_info(engine, name, &info))
		return call_fail(call, CONTROL_NOT_FOUND, "there is no pool %.63s", name);
	kind = kind_of(pool->slots);
	table = malloc(maps_inner_size(engine_maps(engine), kind));
	rows = calloc(1, sizeof(*rows));
	if (table && rows && !fill_rows(engine, pool, rows)) {
		int ret = maps_inner_read(engine_maps(engine), kind, info.index, table);

		if (ret == -ENOENT)
			call_fail(call, CONTROL_NOT_FOUND, "pool %s has no table yet: none of its backends was reached",
				  name);
		else if (ret)
			call_fail(call, CONTROL_FAILED, "cannot read the table of pool %s: %s", name, strerror(-ret));
		else
			reply = describe(pool, table, (const uint16_t *)(table + 1), rows, call_flag(call, "owners"));
	}
	if (rows)
		free(rows->slots);
	free(rows);
	free(table);
	return reply;
}
