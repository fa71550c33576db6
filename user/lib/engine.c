/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Plan everything in memory, write down what is about to be, bring it into force, acknowledge.  A crash anywhere leaves
 * maps that forward, and a state file from which the next start makes the same plan.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine_internal.h"
#include "kernel.h"

#define LOCK_TIMEOUT_MS 10000

/* Why a plan is made. */
struct intent {
	const struct engine_change *change; /* what comes with a new model, or NULL */
	bool strict;			    /* an operator's change: refused where connections could not be recorded */
	bool decision;			    /* on a backend: a revision of its own, though the model is the same */
};

/* ---- plan ---- */

static void plan_free(struct plan *plan)
{
	for (size_t i = 0; plan->pools && i < plan->next.model->n_pools; i++) {
		free(plan->pools[i].owner);
		free(plan->pools[i].quotas);
		free(plan->pools[i].fresh.slots);
		transit_free(&plan->pools[i].transit);
		engine_movement_free(&plan->pools[i]);
	}
	free(plan->pools);
	free(plan->backends);
	free(plan->snapshot);
	free(plan->called);
	transit_room_free(&plan->room);
	state_free(&plan->next);
}

static int plan_init(struct plan *plan, struct model *model)
{
	size_t n = 0;
	int ret;

	*plan = (struct plan){};
	ret = state_init(&plan->next, model);
	if (ret)
		return ret;
	for (size_t i = 0; i < model->n_pools; i++)
		n += model->pools[i].n_backends;
	plan->n_backends = n;
	plan->pools = calloc(model->n_pools + 1, sizeof(*plan->pools));
	plan->backends = calloc(n + 1, sizeof(*plan->backends));
	if (!plan->pools || !plan->backends)
		return -ENOMEM;
	n = 0;
	for (size_t i = 0; i < model->n_pools; i++) {
		struct plan_pool *pool = &plan->pools[i];

		pool->model = &model->pools[i];
		pool->ids = &plan->next.pools[i];
		pool->backends = plan->backends + n;
		for (size_t j = 0; j < pool->model->n_backends; j++, n++) {
			plan->backends[n].model = &pool->model->backends[j];
			plan->backends[n].ids = &pool->ids->backends[j];
		}
	}
	return 0;
}

static int make_plan(const struct engine *engine, struct model *model, const struct intent *intent, struct plan *plan,
		     struct report *report)
{
	bool same = model == engine->state.model;
	int ret = plan_init(plan, model);

	if (ret)
		return ret;
	plan->strict = intent->strict;
	plan->asked = intent->strict || model != engine->state.model;
	plan->document = intent->change && intent->change->document;
	plan->next.revision = engine->state.revision + (!same || intent->decision);
	plan->next.document_tag = engine->state.document_tag;
	plan->next.origin = engine->state.origin;
	plan->next.pending = engine->state.pending;
	plan->dirty = !same || !engine->state_saved;
	ret = engine_check_capacities(engine, model, report);
	if (!ret)
		ret = engine_plan_ids(engine, plan, report);
	if (!ret)
		ret = engine_plan_tables(engine, plan, report);
	if (!ret && !(same && engine->snapshot_agrees))
		ret = engine_plan_snapshot(engine, plan, report);
	return ret;
}

/* ---- bring it into force ---- */

static int save(struct engine *engine, const struct state *state, struct report *report)
{
	uint64_t before = engine->state.revision;
	int ret = 0;

	if (!engine->state_dir)
		return 0;
	if (before && before == engine->on_disk && before != state->revision)
		ret = state_keep_revision(engine->state_dir, before, report);
	if (ret)
		return ret; /* and the file is as it was */
	ret = state_save(engine->state_dir, state, report);
	engine->state_saved = !ret;
	if (!ret)
		engine->on_disk = state->revision;
	return ret;
}

/* Connections that entries name go on by the new id of their server, before the old one is given up. */
static int rename_entries(struct engine *engine, const struct plan *plan)
{
	const struct scan_options options = {.now = engine_clock_ms(), .called = plan->called};

	return engine_scan_all(engine, &options);
}

/* New things first, each table before what names its pool; what leaves goes last, when nothing names it. */
static int execute(struct engine *engine, struct plan *plan, struct report *report)
{
	int ret = engine_write_backends(engine, plan, report);

	if (!ret)
		ret = engine_bring_paths(engine, report);
	if (!ret)
		ret = engine_publish_tables(engine, plan, report);
	if (!ret)
		ret = engine_publish_snapshot(engine, plan, report);
	if (!ret)
		ret = engine_remove_tables(engine, plan, report);
	if (ret)
		return ret;
	engine_take_bits(engine, plan);
	return plan->renames ? rename_entries(engine, plan) : 0;
}

/* The numbers of a change that failed under way may have been seen: they are used up. */
static void use_up(struct state *state, const struct state *failed)
{
	for (size_t i = 0; i < failed->model->n_pools; i++) {
		const struct state_pool *pool = &failed->pools[i];
		const struct model_pool *mine =
			state->model ? model_pool(state->model, failed->model->pools[i].name) : NULL;
		struct state_pool *ids = mine ? &state->pools[mine - state->model->pools] : NULL;

		if (ids && pool->epoch >= ids->epoch) {
			ids->epoch = pool->epoch;
			ids->phase = pool->phase;
			ids->digest = pool->digest;
		} else if (!ids && pool->epoch > state->epoch_floor) {
			state->epoch_floor = pool->epoch;
		}
	}
}

static int commit(struct engine *engine, struct plan *plan, struct report *report)
{
	struct preparing preparing;
	int ret = engine_prepare_begin(engine, plan, &preparing), prepared;

	if (ret)
		return ret;
	/* What no packet sees yet is made ready meanwhile. */
	ret = plan->dirty ? save(engine, &plan->next, report) : 0;
	prepared = engine_prepare_end(&preparing, report);
	/* What nobody asked for, such as health, happens all the same; the next publication writes it down. */
	if (ret && plan->asked) {
		engine_prepare_undo(&preparing);
		return ret;
	}
	ret = prepared ? prepared : execute(engine, plan, report);
	if (ret) {
		use_up(&engine->state, &plan->next);
		engine->state_saved = false;
		engine->snapshot_agrees = false;
		return ret;
	}
	state_free(&engine->state);
	engine->state = plan->next;
	plan->next = (struct state){.model = engine->state.model};
	engine->snapshot_agrees = true;
	engine_clear_backends(engine);
	transit_copy_free(engine->copy);
	engine->copy = NULL;
	/* What fails here is tried again before the next change. */
	engine_bring_paths(engine, NULL);
	engine_pay_scan(engine);
	/* Where nobody waits for it the next engine_tick() does, so that requests come in between. */
	if (plan->asked)
		engine_save_copy(engine);
	return 0;
}

/* ---- the maps' lock ---- */

int engine_lock(struct engine *engine, struct report *report)
{
	const char *instance = engine->pinned.maps.instance;

	for (int attempt = 0; attempt < 3; attempt++) {
		int ret, lock = maps_lock(instance, LOCK_TIMEOUT_MS);

		if (lock < 0)
			return kernel_error(report, lock, "cannot lock instance '%s'", instance);
		if (maps_current(&engine->pinned.maps))
			return lock;
		close(lock);
		ret = engine_reopen(engine, report);
		if (ret)
			return ret;
	}
	return report_error(report, -EAGAIN, "the maps of instance '%s' are being rebuilt all the time: try again",
			    instance);
}

/* What is written down with a new revision. */
static void take_change(const struct engine *engine, struct plan *plan, const struct engine_change *change)
{
	struct state *next = &plan->next;

	next->origin = change->origin;
	if (!change->by_itself)
		next->pending = (struct state_pending){};
	if (change->confirm)
		next->pending = (struct state_pending){engine->state.revision, (uint64_t)time(NULL) + change->confirm,
						       change->confirm};
	if (change->document_tag)
		next->document_tag = change->document_tag;
	plan->dirty = true;
}

static int judge(const struct engine *engine, const struct plan *plan, const struct engine_change *change,
		 struct report *report)
{
	struct engine_pool_change *pools;
	size_t n;
	int ret = engine_plan_changes(engine, plan, &pools, &n);

	if (ret)
		return ret;
	ret = change->judge(pools, n, change->judge_arg, report);
	free(pools);
	return ret;
}

static int plan_and_commit(struct engine *engine, struct model *model, const struct intent *intent, size_t *n_waiting,
			   struct report *report)
{
	const struct engine_change *change = intent->change;
	struct plan plan;
	int ret = make_plan(engine, model, intent, &plan, report);

	if (!ret && change && (model != engine->state.model || intent->decision))
		take_change(engine, &plan, change);
	if (!ret && change && change->judge)
		ret = judge(engine, &plan, change, report);
	if (!ret && !(change && change->dry_run))
		ret = commit(engine, &plan, report);
	*n_waiting = plan.n_waiting;
	plan_free(&plan);
	return ret;
}

static const struct intent no_intent;

/* model: what is to be in force; the one of the state, or a new one. */
static int bring(struct engine *engine, struct model *model, const struct intent *intent, struct report *report)
{
	bool dry_run = intent->change && intent->change->dry_run;
	size_t n_waiting = 0, before;
	int ret, lock = engine_lock(engine, report);

	if (lock < 0)
		return lock;
	ret = engine_pay_scan(engine);
	if (!ret)
		ret = plan_and_commit(engine, model, intent, &n_waiting, report);
	/* What waits for ids gets those that the round before gave up.  The model is in force already. */
	for (before = SIZE_MAX; !ret && !dry_run && n_waiting && n_waiting < before;) {
		before = n_waiting;
		if (plan_and_commit(engine, model, &no_intent, &n_waiting, NULL))
			break;
	}
	close(lock);
	if (!ret)
		engine_warn_waiting(engine, n_waiting, report);
	if (ret == -ENOMEM)
		report_error(report, ret, "out of memory");
	return ret;
}

int engine_apply(struct engine *engine, struct model *model, const struct engine_change *change, struct report *report)
{
	const struct intent intent = {.change = change, .strict = change && !change->by_itself};
	struct model *old = engine->state.model;
	int ret = bring(engine, model, &intent, report);

	if (change && change->dry_run)
		return ret;
	if (ret) {
		/* Undo what is in force and on disk of it; what cannot be undone now is left to the next publication.
		 */
		if (!engine->state_saved && old)
			bring(engine, old, &no_intent, NULL);
		else if (!engine->state_saved && engine->state_dir)
			engine->on_disk = state_remove(engine->state_dir) ? engine->on_disk : 0;
		return ret;
	}
	if (old != model)
		model_free(old);
	engine_drop_ways(engine);
	return 0;
}

int engine_confirm(struct engine *engine, struct report *report)
{
	struct state next = engine->state;
	int ret;

	next.pending = (struct state_pending){};
	ret = save(engine, &next, report);
	if (!ret)
		engine->state.pending = next.pending;
	return ret;
}

int engine_publish(struct engine *engine, struct report *report)
{
	return engine->state.model ? bring(engine, engine->state.model, &no_intent, report) : 0;
}

int engine_drain(struct engine *engine, const char *pool_name, const char *name, enum engine_drain drain,
		 const struct engine_change *change, struct report *report)
{
	const struct intent intent = {.change = change, .strict = true, .decision = true};
	const bool saved = engine->state_saved;
	struct model *model = engine->state.model;
	const struct model_pool *pool = model ? model_pool(model, pool_name) : NULL;
	const struct model_backend *backend = pool ? model_backend(pool, name) : NULL;
	struct state_backend *ids, before;
	int ret;

	if (!backend)
		return report_error(report, -ENOENT, "there is no backend %s/%s", pool_name, name);
	ids = &engine->state.pools[pool - model->pools].backends[backend - pool->backends];
	before = *ids;
	if (drain == ENGINE_UNDRAIN && ids->maintenance)
		return report_error(
			report, -EBUSY,
			"backend %s/%s is in maintenance: end that with \"shuntctl backend activate %s/%s\"", pool_name,
			name, pool_name, name);
	if (drain == ENGINE_UNDRAIN || drain == ENGINE_ACTIVATE)
		ids->draining = 0;
	else if (!ids->draining || (drain == ENGINE_LEAVE && ids->maintenance))
		ids->draining = (uint64_t)time(NULL);
	ids->leaving = drain == ENGINE_LEAVE || (drain == ENGINE_DRAIN && ids->leaving);
	ids->maintenance = drain == ENGINE_MAINTAIN || (drain == ENGINE_DRAIN && ids->maintenance);
	if (ids->draining == before.draining && ids->leaving == before.leaving &&
	    ids->maintenance == before.maintenance)
		return 0;
	engine->state_saved = false;
	ret = bring(engine, model, &intent, report);
	if (!ret && !(change && change->dry_run))
		return 0;
	/* The array is still the old one: a plan that fails takes nothing. */
	*ids = before;
	if (ret == -ECANCELED || (change && change->dry_run)) { /* nothing was begun */
		engine->state_saved = saved;
		return ret;
	}
	engine->state_saved = false;
	bring(engine, model, &no_intent, NULL);
	return ret;
}

/* ---- open and close ---- */

int engine_reopen(struct engine *engine, struct report *report)
{
	const struct shunt_meta *meta = &engine->pinned.maps.meta;
	const struct maps_capacities former = {meta->services, meta->addresses, meta->pools, meta->backends,
					       meta->flows};
	struct pinned pinned;
	int ret;

	/* Where the pins are gone altogether they are made again as they were, else taken as they are now. */
	ret = pinned_open(engine->pinned.maps.instance, &former, &pinned, NULL);
	if (ret)
		ret = pinned_open(engine->pinned.maps.instance, NULL, &pinned, report);
	if (ret)
		return ret;
	pinned_close(&engine->pinned);
	engine->pinned = pinned;
	engine->snapshot_agrees = false;
	engine->scan_owed = true;
	return engine_seed_ways(engine);
}

/* Damaged or unreadable, it is worth no more than none. */
static int load_copy(struct engine *engine)
{
	int ret = engine->state_dir ? transit_copy_load(engine->state_dir, &engine->copy) : 0;

	return ret == -ENOMEM ? ret : 0;
}

int engine_open(const struct engine_options *options, struct engine **out, struct report *report)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	int ret;

	if (!engine)
		return -ENOMEM;
	engine->epoch = options->epoch;
	engine->epoch_arg = options->epoch_arg;
	ret = pinned_open(options->instance, &options->capacities, &engine->pinned, report);
	if (ret) {
		free(engine);
		return ret;
	}
	if (options->state_dir) {
		engine->state_dir = strdup(options->state_dir);
		ret = engine->state_dir ? state_load(options->state_dir, &engine->state, report) : -ENOMEM;
	}
	engine->state_saved = !ret;
	engine->scan_owed = true; /* one that was in progress is not kept */
	engine->on_disk = ret ? 0 : engine->state.revision;
	if (ret == -ENOENT)
		ret = 0;
	else if (!ret)
		ret = load_copy(engine);
	if (!ret)
		ret = engine_seed_ways(engine);
	if (!ret)
		engine_seed_down(engine);
	if (ret) {
		engine_close(engine);
		return ret;
	}
	*out = engine;
	return 0;
}

void engine_close(struct engine *engine)
{
	struct model *model = engine->state.model;

	pinned_close(&engine->pinned);
	state_free(&engine->state);
	model_free(model);
	transit_copy_free(engine->copy);
	for (size_t i = 0; i < engine->n_ways; i++)
		free(engine->ways[i]);
	free(engine->ways);
	free(engine->state_dir);
	free(engine);
}
