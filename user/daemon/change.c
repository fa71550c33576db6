/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One way for all changes: what differs, the policy, tables, epochs, a revision; and the way back. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "addr.h"
#include "daemon.h"
#include "log.h"
#include "model_diff.h"
#include "policy.h"
#include "state.h"

#define UNDO_RETRY_S 10u

int change_check(struct daemon *daemon, const struct model *model, struct report *report)
{
	struct model_local *locals;
	size_t count;
	int ret = model_locals(&locals, &count);

	if (ret)
		return report_error(report, ret, "cannot list this host's addresses: %s", strerror(-ret));
	ret = model_check_change(model, engine_model(daemon->engine), locals, count, report);
	free(locals);
	return ret;
}

/* ---- judging ---- */

struct judging {
	const struct daemon *daemon;
	const struct model *model; /* what is to be in force */
	const struct change *change;
	struct change_result *result;
};

static json_t *digest_text(uint64_t digest)
{
	char text[17];

	if (!digest)
		return json_null();
	snprintf(text, sizeof(text), "%016" PRIx64, digest);
	return json_string(text);
}

static json_t *pool_row(const struct engine_pool_change *pool)
{
	return json_pack(
		"{s:s, s:s, s:b, s:b, s:b, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o, s:o, s:I}",
		"pool", pool->pool, "algorithm", pool->algorithm, "added", pool->added, "removed", pool->removed,
		"resized", pool->resized, "slots", (json_int_t)pool->slots, "moved", (json_int_t)pool->moved, "minimum",
		(json_int_t)pool->minimum, "moved_percent", 100.0 * pool->moved / pool->slots, "backends_before",
		(json_int_t)pool->backends_before, "backends_after", (json_int_t)pool->backends_after, "leaving",
		(json_int_t)pool->leaving, "connections", (json_int_t)pool->connections, "waiting",
		(json_int_t)pool->waiting, "max_mean_before", pool->max_mean_before, "max_mean_after",
		pool->max_mean_after, "digest_before", digest_text(pool->digest_before), "digest",
		digest_text(pool->digest), "epoch", (json_int_t)pool->epoch);
}

/* What an operator of several balancers should know. */
static void warn(const struct engine_pool_change *pool, struct report *report)
{
	if (pool->history && !pool->removed)
		report_add(report, REPORT_WARNING, 0, 0,
			   "pool %s: \"%s\" builds on the table before, so balancers that came another way may compute "
			   "another table: compare them with \"shuntctl verify\"",
			   pool->pool, pool->algorithm);
	if (pool->resized && !pool->added && !pool->removed)
		report_add(report, REPORT_WARNING, 0, 0,
			   "pool %s: in a table of another size nearly all flows get another slot, and their "
			   "connections break, whatever drains",
			   pool->pool);
	if (pool->ramps)
		report_add(report, REPORT_WARNING, 0, 0,
			   "pool %s: a slow start is under way: balancers on which it began at another time have other "
			   "tables until it is over",
			   pool->pool);
	if (pool->down)
		report_add(report, REPORT_WARNING, 0, 0,
			   "pool %s: %u of its backends are taken out by the health checks of this host: balancers "
			   "whose checks say otherwise have other tables",
			   pool->pool, pool->down);
	if (pool->waiting)
		report_add(
			report, REPORT_WARNING, 0, 0,
			"pool %s: the way to %u of its backends is not known here: they get their slots later, which "
			"is another epoch, and other balancers may have other tables until then",
			pool->pool, pool->waiting);
}

/* Flows get other slots, whatever the tables say: nothing keeps their connections. */
static int rehashed(const struct judging *judging, const char *what, struct report *report)
{
	const struct model_policy *policy = &engine_model(judging->daemon->engine)->policy;

	report_add(report, REPORT_WARNING, 0, 0,
		   "%s changes: nearly all of its flows get another slot, and their connections break, whatever drains",
		   what);
	if (judging->change->forced || !policy->given || !policy->has_max_moved || policy->max_moved_percent >= 100)
		return 0;
	return report_error(report, -ECANCELED,
			    "policy: %s changes, which moves all flows, and max-moved is %u%%: use "
			    "--force, when an interruption does no harm",
			    what, policy->max_moved_percent);
}

/* -ECANCELED where the policy has something against it. */
static int judge_hashing(const struct judging *judging, struct report *report)
{
	const struct model *before = engine_model(judging->daemon->engine), *after = judging->model;
	char what[MODEL_NAME_MAX + 32];
	int ret = 0;

	if (!before || before == after)
		return 0;
	if (memcmp(before->key, after->key, sizeof(before->key)) != 0)
		return rehashed(judging, "the hash key", report);
	for (size_t i = 0; i < before->n_services; i++) {
		const struct model_service *old = &before->services[i], *now = model_service(after, old->name);

		if (!now || now->hash == old->hash)
			continue;
		snprintf(what, sizeof(what), "the hash of service %s", old->name);
		ret = rehashed(judging, what, report) ?: ret;
	}
	return ret;
}

static int judge(const struct engine_pool_change *pools, size_t n, void *arg, struct report *report)
{
	struct judging *judging = arg;
	const struct model *in_force = engine_model(judging->daemon->engine);
	json_t *rows = json_array();
	int ret = 0;

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(rows, pool_row(&pools[i]));
		warn(&pools[i], report);
	}
	judging->result->pools = rows;
	/* The policy that was agreed on, not the one that the change brings with it. */
	if (in_force && !judging->change->forced)
		ret = policy_judge(&in_force->policy, pools, n, report);
	ret = judge_hashing(judging, report) ?: ret;
	judging->result->refused = ret == -ECANCELED;
	return ret;
}

/* ---- making ---- */

void change_result_free(struct change_result *result)
{
	json_decref(result->changes);
	json_decref(result->pools);
	*result = (struct change_result){};
}

static int refuse_while_pending(const struct daemon *daemon, struct report *report)
{
	const struct state_pending *pending = engine_pending(daemon->engine);
	uint64_t now = (uint64_t)time(NULL);

	return report_error(report, -EALREADY,
			    "a change waits to be confirmed (%" PRIu64 " seconds are left): \"shuntctl confirm\" or "
			    "\"shuntctl undo\" comes first",
			    pending->deadline > now ? pending->deadline - now : 0);
}

static int check_confirm(const struct daemon *daemon, const struct change *change, struct report *report)
{
	if (!change->confirm || engine_revision(daemon->engine))
		return 0;
	return report_error(report, -EINVAL,
			    "nothing is applied yet, so there is nothing to go back to: apply it without "
			    "--confirm-within");
}

static void arm_undo(struct daemon *daemon, uint64_t seconds)
{
	sd_event_source_set_time_relative(daemon->undo_timer, seconds * 1000000);
	sd_event_source_set_enabled(daemon->undo_timer, SD_EVENT_ONESHOT);
}

static void record(struct daemon *daemon, const struct change_result *result)
{
	const struct origin *origin = engine_origin(daemon->engine);

	record_revision(daemon, json_array_size(result->changes), json_array_size(result->pools));
	record_flush(daemon);
	log_info("revision %" PRIu64 " by %s (uid %" PRId64 ", pid %" PRId64 "): %s%s", engine_revision(daemon->engine),
		 origin->user, origin->uid, origin->pid, origin->why, origin->forced ? ", forced" : "");
}

static void made(struct daemon *daemon, const struct change *change, const struct change_result *result)
{
	ways_published(daemon);
	daemon_set_problem(&daemon->undo_problem, NULL);
	record(daemon, result);
	if (change->confirm)
		arm_undo(daemon, change->confirm);
	else
		sd_event_source_set_enabled(daemon->undo_timer, SD_EVENT_OFF);
}

/* Backend by backend: then the addresses of both are followed already. */
static bool same_addresses(const struct model *a, const struct model *b)
{
	if (!a || a->n_pools != b->n_pools)
		return false;
	for (size_t i = 0; i < a->n_pools; i++) {
		const struct model_pool *x = &a->pools[i], *y = &b->pools[i];

		if (x->n_backends != y->n_backends)
			return false;
		for (size_t j = 0; j < x->n_backends; j++)
			if (!addr_equal(&x->backends[j].address, &y->backends[j].address))
				return false;
	}
	return true;
}

/* A change was refused because it could not be written: that goes on to be tried, and is a problem until it succeeds.
 */
static void write_again(struct daemon *daemon)
{
	if (engine_state_saved(daemon->engine))
		return;
	daemon->origin = origin_self("the state is written again");
	ways_publish(daemon);
}

static int bring(struct daemon *daemon, struct model *model, const struct change *change, struct change_result *result,
		 struct report *report)
{
	struct judging judging = {daemon, model, change, result};
	const struct engine_change engine_change = {
		.document_tag = change->tag,
		.document = change->document,
		.origin = change->origin,
		.confirm = change->confirm,
		.dry_run = change->dry_run,
		.judge = judge,
		.judge_arg = &judging,
	};
	bool followed = same_addresses(engine_model(daemon->engine), model);
	struct trusts *trusts = NULL;
	int ret = trusts_read(daemon, model, change->files, &trusts, report);

	ret = ret || followed ? ret : ways_watch(daemon, model);
	daemon->origin = change->origin;
	if (!ret) {
		ways_settle(daemon, change->settle_ms);
		ret = engine_apply(daemon->engine, model, &engine_change, report);
	}
	if (ret || change->dry_run)
		model_free(model);
	else
		made(daemon, change, result);
	if (!followed && ways_watch(daemon, NULL))
		log_error("out of memory: addresses that are gone are still followed");
	if (ret)
		write_again(daemon);
	ticks_kick(daemon);
	if (ret || change->dry_run) {
		trusts_free(trusts);
		return ret;
	}
	trusts_take(daemon, trusts);
	checks_update(daemon);
	return 0;
}

/* It says what is in force already; what it names may have changed all the same, and what was not written is due. */
static int stay(struct daemon *daemon, const struct model *model, const struct change *change, struct report *report)
{
	struct trusts *trusts;
	int ret = change->files ? trusts_read(daemon, model, true, &trusts, report) : 0;

	if (ret)
		return ret;
	if (change->files && change->dry_run) {
		trusts_free(trusts);
	} else if (change->files) {
		trusts_take(daemon, trusts);
		checks_update(daemon);
	}
	if (!change->dry_run)
		write_again(daemon);
	return 0;
}

int change_make(struct daemon *daemon, struct model *model, const struct change *change, struct change_result *result,
		struct report *report)
{
	const struct model *in_force = engine_model(daemon->engine);
	bool same_tag = !change->tag || change->tag == engine_document_tag(daemon->engine), unchanged;
	int ret = 0;

	*result = (struct change_result){};
	if (engine_pending(daemon->engine)->revision && !change->undo && !change->dry_run)
		ret = refuse_while_pending(daemon, report);
	if (!ret)
		ret = check_confirm(daemon, change, report);
	if (!ret) {
		result->changes = model_diff(in_force, model);
		ret = result->changes ? 0 : report_error(report, -ENOMEM, "out of memory");
	}
	unchanged = !ret && in_force && !json_array_size(result->changes) && same_tag && !change->always &&
		    !(change->document && engine_has_leaving(daemon->engine));
	if (unchanged)
		ret = stay(daemon, model, change, report);
	if (ret || unchanged)
		model_free(model);
	else
		ret = bring(daemon, model, change, result, report);
	/* The daemon's own file, by whatever way it came. */
	if (!ret && change->tag && !change->dry_run)
		daemon_set_problem(&daemon->document_problem, NULL);
	return ret;
}

int change_drain(struct daemon *daemon, const char *pool, const char *name, enum engine_drain how,
		 const struct change *change, struct change_result *result, struct report *report)
{
	struct judging judging = {daemon, engine_model(daemon->engine), change, result};
	const struct engine_change engine_change = {
		.origin = change->origin, .dry_run = change->dry_run, .judge = judge, .judge_arg = &judging};
	uint64_t before = engine_revision(daemon->engine);
	int ret;

	*result = (struct change_result){};
	if (engine_pending(daemon->engine)->revision && !change->dry_run)
		return refuse_while_pending(daemon, report);
	daemon->origin = change->origin;
	ret = engine_drain(daemon->engine, pool, name, how, &engine_change, report);
	if (engine_revision(daemon->engine) != before)
		record(daemon, result);
	if (ret)
		write_again(daemon);
	ticks_kick(daemon);
	if (!ret && !change->dry_run)
		checks_judge(daemon);
	return ret;
}

/* ---- the way back ---- */

int change_load_revision(struct daemon *daemon, uint64_t revision, struct model **out, struct report *report)
{
	struct state state;
	int ret = state_load_revision(daemon->options->state_dir, revision, &state, report);

	if (ret)
		return ret;
	*out = state.model;
	state_free(&state);
	return 0;
}

int change_undo(struct daemon *daemon, const struct origin *origin, struct report *report)
{
	uint64_t revision = engine_pending(daemon->engine)->revision;
	const struct change change = {
		.origin = *origin, .settle_ms = VERB_SETTLE_MS, .forced = true, .undo = true, .always = true};
	struct change_result result;
	struct model *model;
	int ret = change_load_revision(daemon, revision, &model, report);

	if (ret == -ENOENT)
		report_error(report, ret, "revision %" PRIu64 ", which is to be gone back to, is not kept", revision);
	if (ret)
		return ret;
	ret = change_make(daemon, model, &change, &result, report);
	change_result_free(&result);
	return ret;
}

int change_confirm(struct daemon *daemon, struct report *report)
{
	int ret = engine_confirm(daemon->engine, report);

	if (ret)
		return ret;
	sd_event_source_set_enabled(daemon->undo_timer, SD_EVENT_OFF);
	daemon_set_problem(&daemon->undo_problem, NULL);
	log_info("revision %" PRIu64 " is confirmed", engine_revision(daemon->engine));
	return 0;
}

static int on_undo(sd_event_source *source, uint64_t usec, void *arg)
{
	struct daemon *daemon = arg;
	const struct state_pending *pending = engine_pending(daemon->engine);
	struct origin origin = origin_self("revision %" PRIu64 " was not confirmed within %u s: back to %" PRIu64,
					   engine_revision(daemon->engine), pending->window, pending->revision);
	struct report report = {};

	(void)source;
	(void)usec;
	if (!pending->revision)
		return 0;
	origin.forced = true;
	log_warning("%s", origin.why);
	if (change_undo(daemon, &origin, &report)) {
		daemon_set_problem(&daemon->undo_problem, "a change that was not confirmed cannot be taken back: %s",
				   report_first(&report, "out of memory"));
		arm_undo(daemon, UNDO_RETRY_S);
	}
	log_report(&report);
	report_free(&report);
	return 0;
}

void change_resume(struct daemon *daemon)
{
	const struct state_pending *pending = engine_pending(daemon->engine);
	uint64_t now = (uint64_t)time(NULL), left = 0;

	if (!pending->revision)
		return;
	/* A clock that was set back gives no more time than there was at first. */
	if (pending->deadline > now)
		left = pending->deadline - now < pending->window ? pending->deadline - now : pending->window;
	log_info("revision %" PRIu64 " waits to be confirmed: %" PRIu64 " s are left", engine_revision(daemon->engine),
		 left);
	if (left)
		arm_undo(daemon, left);
	else
		on_undo(NULL, 0, daemon);
}

int change_open(struct daemon *daemon)
{
	int ret = sd_event_add_time(daemon->event, &daemon->undo_timer, CLOCK_BOOTTIME, 0, 1000, on_undo, daemon);

	return ret < 0 ? ret : sd_event_source_set_enabled(daemon->undo_timer, SD_EVENT_OFF);
}
