/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What comes into force is remembered: who, why, what moved, and of whom a table was built. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon.h"
#include "log.h"

static json_t *members_of(const struct engine_pool_change *change)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < change->n_members; i++) {
		json_t *member = json_pack("[s, I, I]", change->members[i].name, (json_int_t)change->members[i].weight,
					   (json_int_t)change->member_slots[i]);

		if (!member || json_array_append_new(list, member)) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *epoch_entry(const struct daemon *daemon, const struct engine_pool_change *change)
{
	char digest[17];
	json_t *entry;

	snprintf(digest, sizeof(digest), "%016" PRIx64, change->digest);
	entry = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o}", "digest", digest, "algorithm", change->algorithm,
			  "balance_percent", (json_int_t)change->balance_percent, "vnodes", (json_int_t)change->vnodes,
			  "slots", (json_int_t)change->slots, "moved", (json_int_t)change->moved, "minimum",
			  (json_int_t)change->minimum, "members", members_of(change));
	if (entry && origin_set_json(entry, &daemon->origin)) {
		json_decref(entry);
		return NULL;
	}
	return entry;
}

void record_epoch(const struct engine_pool_change *change, void *arg)
{
	struct daemon *daemon = arg;

	if (history_add(daemon->history, change->pool, change->epoch, epoch_entry(daemon, change)))
		log_error("out of memory: epoch %" PRIu64 " of pool %s is not in the history", change->epoch,
			  change->pool);
	else
		log_info("pool %s: epoch %" PRIu64 ", %u of %u slots moved (at least %u had to): %s", change->pool,
			 change->epoch, change->moved, change->slots, change->minimum, daemon->origin.why);
}

void record_revision(struct daemon *daemon, size_t changes, size_t pools)
{
	json_t *entry = json_object();

	if (origin_set_json(entry, engine_origin(daemon->engine)) ||
	    json_object_set_new(entry, "changes", json_integer((json_int_t)changes)) ||
	    json_object_set_new(entry, "pools", json_integer((json_int_t)pools)) ||
	    history_add(daemon->history, NULL, engine_revision(daemon->engine), json_incref(entry)))
		log_error("out of memory: the revision is not in the history");
	json_decref(entry);
}

/* Those that have slots, as the maps say. */
static size_t found_members(const struct engine *engine, const struct model_pool *pool, struct table_member *members,
			    uint32_t *slots)
{
	struct engine_backend_info info;
	size_t n = 0;

	for (size_t i = 0; i < pool->n_backends; i++) {
		const struct model_backend *backend = &pool->backends[i];

		if (engine_backend_info(engine, pool->name, backend->name, &info) || !info.slots)
			continue;
		members[n] = (struct table_member){.name = backend->name, .weight = backend->weight};
		slots[n++] = info.slots;
	}
	return n;
}

static void record_pool_found(struct daemon *daemon, const struct model_pool *pool, const struct engine_pool_info *info)
{
	struct table_member *members = calloc(pool->n_backends + 1, sizeof(*members));
	uint32_t *slots = calloc(pool->n_backends + 1, sizeof(*slots));
	struct engine_pool_change change = {
		.pool = pool->name,
		.algorithm = pool->algorithm,
		.balance_percent = pool->balance_percent,
		.vnodes = pool->vnodes,
		.slots = pool->slots,
		.epoch = info->epoch,
		.digest = info->digest,
		.members = members,
		.member_slots = slots,
	};

	if (members && slots)
		change.n_members = found_members(daemon->engine, pool, members, slots);
	record_epoch(&change, daemon);
	free(members);
	free(slots);
}

static void found_pool(struct daemon *daemon, const struct model_pool *pool)
{
	struct engine_pool_info info;
	json_t *known;

	if (engine_pool_info(daemon->engine, pool->name, &info) || !info.published)
		return;
	known = history_find(daemon->history, pool->name, info.epoch);
	if (!known)
		record_pool_found(daemon, pool, &info);
	json_decref(known);
}

void record_found(struct daemon *daemon)
{
	const struct model *model = engine_model(daemon->engine);
	json_t *known;

	if (!model)
		return;
	daemon->origin = origin_self("found in force at start");
	for (size_t i = 0; i < model->n_pools; i++)
		found_pool(daemon, &model->pools[i]);
	known = history_find(daemon->history, NULL, engine_revision(daemon->engine));
	if (!known)
		record_revision(daemon, 0, 0);
	json_decref(known);
	record_flush(daemon);
}

void record_flush(struct daemon *daemon)
{
	struct report report = {};

	if (history_flush(daemon->history, &report)) {
		if (!daemon->history_problem)
			log_report(&report);
		daemon_set_problem(&daemon->history_problem, "%s", report_first(&report, "out of memory"));
	} else {
		daemon_set_problem(&daemon->history_problem, NULL);
	}
	report_free(&report);
}
