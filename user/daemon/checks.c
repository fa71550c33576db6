/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which backends are checked, and what becomes of what the checks say. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "checks.h"
#include "log.h"

#define AT_ONCE_MAX 2048u  /* rounds side by side */
#define OTHER_FILES 256u   /* descriptors that the rest of the daemon may need */
#define PUBLISH_DELAY 100u /* ms without another verdict: backends that fail together are one epoch */
#define PUBLISH_MAX 300u   /* ms since the first of them, however many more come */
#define PROBE_RETRY 30000u /* ms */

/* ---- results ---- */

/* Who serves, told to the engine.  Whether anything is new. */
static bool judge_pool(struct checks *checks, struct checked_pool *pool)
{
	struct engine *engine = checks->daemon->engine;
	struct health_member *members = calloc(pool->n + 1, sizeof(*members));
	struct engine_way *ways = calloc(pool->n + 1, sizeof(*ways));
	bool *out = calloc(pool->n + 1, sizeof(*out)), frozen = pool->state.frozen, changed = false;
	const size_t end = members && ways && out ? pool->first + pool->n : 0;
	size_t n = 0;

	for (size_t i = pool->first; i < end; i++) {
		struct target *target = checks->targets[i];
		struct engine_way *way = &ways[i - pool->first];

		engine_backend_way(engine, target->pool, target->backend, way);
		target->judged = target->counts && !way->draining;
		if (target->judged)
			members[n++] = (struct health_member){target->state.state, target->state.since, target->waits};
	}
	if (end)
		health_judge(&pool->state, &pool->policy, members, n, checks_now(), out);
	n = 0;
	for (size_t i = pool->first; i < end; i++) {
		const struct target *target = checks->targets[i];
		bool down = target->judged ? out[n++] : target->state.state == HEALTH_DOWN;

		if (ways[i - pool->first].down == down)
			continue;
		changed = true;
		engine_set_down(engine, target->pool, target->backend,
				down		     ? ENGINE_DOWN
				: pool->state.frozen ? ENGINE_UP_AT_ONCE
						     : ENGINE_UP);
		checks->daemon->origin =
			origin_self("health: %.60s/%.60s is %s", target->pool, target->backend, down ? "out" : "back");
	}
	if (pool->state.frozen != frozen)
		log_warning("pool %s: %s", pool->name,
			    pool->state.frozen ? "too many backends are down: none is taken out any more"
					       : "fewer backends are down: those that are lose their slots");
	free(members);
	free(ways);
	free(out);
	return changed;
}

static int on_publish(sd_event_source *source, uint64_t usec, void *arg)
{
	struct checks *checks = arg;
	bool changed = false;

	(void)source;
	(void)usec;
	for (size_t i = 0; i < checks->n_pools; i++)
		changed |= judge_pool(checks, &checks->pools[i]);
	if (changed) /* by the last of them, which the epochs name */
		ways_publish(checks->daemon);
	return 0;
}

/* A change of the whole takes longer than most of the time between two verdicts: each waits for more of them. */
static void arm_publish(struct checks *checks)
{
	uint64_t now = checks_now(), due = now + PUBLISH_DELAY;

	if (sd_event_source_get_enabled(checks->publish, NULL) <= 0)
		checks->first_verdict = now;
	if (due > checks->first_verdict + PUBLISH_MAX)
		due = checks->first_verdict + PUBLISH_MAX;
	sd_event_source_set_time(checks->publish, due * 1000);
	sd_event_source_set_enabled(checks->publish, SD_EVENT_ONESHOT);
}

void checks_judge(struct daemon *daemon)
{
	if (daemon->checks->n_pools)
		arm_publish(daemon->checks);
}

void checks_take(struct checks *checks, struct target *target, bool passed)
{
	if (!health_take(&target->state, &target->params, passed, checks_now()))
		return;
	target->waits = false;
	log_info("%s/%s is %s%s%s", target->pool, target->backend, health_state_names[target->state.state],
		 *target->why ? ": " : "", target->why);
	arm_publish(checks);
}

void checks_wait_no_more(struct checks *checks, struct target *target)
{
	target->waits = false;
	log_warning("%s/%s cannot be checked and serves without: %s", target->pool, target->backend, target->why);
	arm_publish(checks);
}

struct probe *checks_probe(struct checks *checks)
{
	struct daemon *daemon = checks->daemon;
	struct report report = {};

	if (checks->probe || (checks->probe_tried && checks_now() - checks->probe_tried < PROBE_RETRY))
		return checks->probe;
	checks->probe_tried = checks_now();
	if (probe_open(daemon->options->instance, engine_maps(daemon->engine), &checks->probe, &report)) {
		daemon_set_problem(&daemon->checks_problem, "health is not checked down the data path: %s",
				   report.count ? report.entries[0].text : "out of memory");
		log_error("%s", daemon->checks_problem);
	} else {
		daemon_set_problem(&daemon->checks_problem, NULL);
	}
	report_free(&report);
	return checks->probe;
}

static int compare(const char *pool, const char *backend, const struct target *target)
{
	int order = strcmp(pool, target->pool);

	return order ? order : strcmp(backend, target->backend);
}

/* By bisection: the targets are sorted as the model is. */
struct target *checks_target(const struct checks *checks, const char *pool, const char *backend)
{
	size_t low = 0, high = checks->n_targets;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare(pool, backend, checks->targets[middle]);

		if (!order)
			return checks->targets[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

/*
 * A check that begins goes by what the backend does: who is taken out comes in when it passes, who serves goes on until
 * it fails.  Where it is out although nobody has checked it, it is a newcomer.
 */
static void begin(const struct checks *checks, struct target *target, const struct target *before)
{
	struct engine_way way = {};
	bool down;

	engine_backend_way(checks->daemon->engine, target->pool, target->backend, &way);
	down = way.down && (before || !checks->started);
	target->waits = way.down && !down;
	health_begin(&target->state, down ? HEALTH_DOWN : HEALTH_UNKNOWN, checks_now());
	target->due = health_first(&target->params, checks_now(), target->seed);
}

struct building {
	struct asked *asked; /* of each pool of the model */
	struct target **targets;
	size_t n_targets;
	struct checked_pool *pools;
	size_t n_pools;
	size_t before; /* of the targets there are: those in front of it come before the one that is looked for */
};

/* The target that a backend has; asked for in the order of the model. */
static struct target *target_before(const struct checks *checks, const char *pool, const char *backend,
				    struct building *building)
{
	int order = 1;

	while (building->before < checks->n_targets &&
	       (order = compare(pool, backend, checks->targets[building->before])) > 0)
		building->before++;
	return order ? NULL : checks->targets[building->before];
}

/* The old target where the check is the same, else a new one. */
static struct target *keep_or_begin(const struct checks *checks, const struct model_pool *pool,
				    const struct model_backend *backend, const struct asked *asked,
				    struct building *building)
{
	struct target *before = target_before(checks, pool->name, backend->name, building), *target = before;

	if (before && before->identity == checks_identity(asked, backend)) {
		before->taken = true;
	} else {
		target = checks_target_new(pool, backend, asked);
		if (!target)
			return NULL;
		begin(checks, target, before);
	}
	target->counts = backend->weight;
	return target;
}

static int by_name(const void *name, const void *pool)
{
	return strcmp(name, ((const struct checked_pool *)pool)->name);
}

static struct checked_pool *checks_pool(const struct checks *checks, const char *name)
{
	return checks->n_pools ? bsearch(name, checks->pools, checks->n_pools, sizeof(*checks->pools), by_name) : NULL;
}

static int build_pool(struct checks *checks, const struct model_pool *pool, const struct asked *asked,
		      struct building *building)
{
	struct checked_pool *before = checks_pool(checks, pool->name), *to = &building->pools[building->n_pools];

	*to = (struct checked_pool){.name = strdup(pool->name), .first = building->n_targets};
	if (!to->name)
		return -ENOMEM;
	building->n_pools++;
	if (before)
		to->state = before->state;
	to->policy = (struct health_policy){
		.panic = pool->health->panic,
		.window = 2 * (pool->health->interval * pool->health->fall + pool->health->timeout),
		.last = pool->health->last,
	};
	for (size_t i = 0; asked->n && i < pool->n_backends; i++) {
		struct target *target = keep_or_begin(checks, pool, &pool->backends[i], asked, building);

		if (!target)
			return -ENOMEM;
		building->targets[building->n_targets++] = target;
		to->n++;
	}
	return 0;
}

/* Nobody checks them any more: they serve. */
static bool release(struct checks *checks, const struct building *building)
{
	struct engine *engine = checks->daemon->engine;
	const struct model *model = engine_model(engine);
	bool changed = false;
	size_t at = 0;

	for (size_t i = 0; model && i < model->n_pools; i++) {
		const struct model_pool *pool = &model->pools[i];

		for (size_t j = 0; j < pool->n_backends; j++) {
			struct engine_way way = {};

			while (at < building->n_targets &&
			       compare(pool->name, pool->backends[j].name, building->targets[at]) > 0)
				at++;
			if (at < building->n_targets &&
			    !compare(pool->name, pool->backends[j].name, building->targets[at]))
				continue;
			engine_backend_way(engine, pool->name, pool->backends[j].name, &way);
			if (!way.down)
				continue;
			changed = true;
			engine_set_down(engine, pool->name, pool->backends[j].name, ENGINE_UP_AT_ONCE);
		}
	}
	return changed;
}

static void take_over(struct checks *checks, struct building *building)
{
	for (size_t i = 0; i < checks->n_targets; i++) {
		struct target *target = checks->targets[i];

		if (target->taken) {
			target->taken = false;
			continue;
		}
		checks_forget(checks, target);
		checks_target_free(target);
	}
	for (size_t i = 0; i < checks->n_pools; i++)
		free(checks->pools[i].name);
	free(checks->targets);
	free(checks->pools);
	checks->targets = building->targets;
	checks->n_targets = building->n_targets;
	checks->pools = building->pools;
	checks->n_pools = building->n_pools;
}

static void give_back(struct checks *checks, struct building *building)
{
	for (size_t i = 0; i < building->n_targets; i++)
		if (!building->targets[i]->taken)
			checks_target_free(building->targets[i]);
	for (size_t i = 0; i < building->n_pools; i++)
		free(building->pools[i].name);
	for (size_t i = 0; i < checks->n_targets; i++)
		checks->targets[i]->taken = false;
	free(building->targets);
	free(building->pools);
	log_error("out of memory: the checks go on as they were");
}

void checks_update(struct daemon *daemon)
{
	struct checks *checks = daemon->checks;
	const struct model *model = engine_model(daemon->engine);
	struct building building = {};
	bool released;
	size_t n = 0;
	int ret = 0;

	if (!checks || !model)
		return;
	for (size_t i = 0; i < model->n_pools; i++)
		n += model->pools[i].health ? model->pools[i].n_backends : 0;
	if (!n && !checks->n_targets && checks->started)
		return; /* as so often: nothing is checked, and nothing was */
	building.targets = calloc(n + 1, sizeof(struct target *));
	building.pools = calloc(model->n_pools + 1, sizeof(*building.pools));
	building.asked = checks_asked(model);
	if (!building.targets || !building.pools || !building.asked)
		ret = -ENOMEM;
	for (size_t i = 0; i < model->n_pools && !ret; i++)
		if (model->pools[i].health)
			ret = build_pool(checks, &model->pools[i], &building.asked[i], &building);
	free(building.asked);
	if (ret) {
		give_back(checks, &building);
		return;
	}
	released = release(checks, &building);
	take_over(checks, &building);
	checks->started = true;
	if (checks_schedule(checks))
		log_error("out of memory: health is not checked");
	if (released) {
		daemon->origin = origin_self("health is not checked any more");
		ways_publish(daemon);
	} else {
		arm_publish(checks); /* a weight or a policy may be another one */
	}
}

void checks_reopen(struct daemon *daemon)
{
	struct checks *checks = daemon->checks;

	probe_close(checks->probe);
	checks->probe = NULL;
	checks->probe_tried = 0;
}

/* ---- opening ---- */

/* As many descriptors as may be had: checks need one each. */
static size_t room(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return OTHER_FILES;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < 2 * OTHER_FILES)
		return OTHER_FILES / 2;
	return limit.rlim_cur - OTHER_FILES < AT_ONCE_MAX ? limit.rlim_cur - OTHER_FILES : AT_ONCE_MAX;
}

int checks_open(struct daemon *daemon, struct report *report)
{
	struct checks *checks = calloc(1, sizeof(*checks));
	int ret = 0;

	if (!checks)
		return report_error(report, -ENOMEM, "out of memory");
	daemon->checks = checks; /* from here on checks_close() takes it all away */
	checks->daemon = daemon;
	checks->at_once = room();
	checks->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (checks->epoll < 0)
		ret = -errno;
	if (!ret)
		ret = sd_event_add_io(daemon->event, &checks->events, checks->epoll, EPOLLIN, checks_on_events, checks);
	if (ret >= 0)
		ret = sd_event_add_time(daemon->event, &checks->timer, CLOCK_MONOTONIC, 0, 1000, checks_on_due, checks);
	if (ret >= 0)
		ret = sd_event_add_time(daemon->event, &checks->publish, CLOCK_MONOTONIC, 0, 1000, on_publish, checks);
	if (ret < 0)
		return report_error(report, ret, "cannot prepare health checks: %s", strerror(-ret));
	/* After requests: a thousand checks must not keep an operator waiting. */
	sd_event_source_set_priority(checks->events, SD_EVENT_PRIORITY_NORMAL + 1);
	sd_event_source_set_priority(checks->timer, SD_EVENT_PRIORITY_NORMAL + 1);
	sd_event_source_set_enabled(checks->timer, SD_EVENT_OFF);
	sd_event_source_set_enabled(checks->publish, SD_EVENT_OFF);
	return 0;
}

void checks_close(struct daemon *daemon)
{
	struct checks *checks = daemon->checks;

	if (!checks)
		return;
	for (size_t i = 0; i < checks->n_targets; i++) {
		checks_forget(checks, checks->targets[i]);
		checks_target_free(checks->targets[i]);
	}
	for (size_t i = 0; i < checks->n_pools; i++)
		free(checks->pools[i].name);
	sd_event_source_unref(checks->events);
	sd_event_source_unref(checks->timer);
	sd_event_source_unref(checks->publish);
	if (checks->epoll >= 0)
		close(checks->epoll);
	probe_close(checks->probe);
	trusts_free(checks->trusts);
	free(checks->targets);
	free(checks->pools);
	free(checks->heap);
	free(checks->locals.list);
	free(checks);
	daemon->checks = NULL;
}
