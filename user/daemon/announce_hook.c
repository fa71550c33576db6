/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Announcements by a hook: "up" or "down" and the address are its arguments.  Each address of the document is told at
 * start, and when it changes; which may have been told "up" is on disk before that, so that they are told "down" too
 * where a kill came between.  A few run side by side, never two of one address; what fails is tried again.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "addr.h"
#include "announce.h"
#include "log.h"

#define MS 1000ull	     /* microseconds */
#define RUN_MAX (10000 * MS) /* of one */
#define RETRY_FIRST (1000 * MS)
#define RETRY_MAX (60000 * MS)
#define TRIES_AT_PARTING 3u /* of a hook that the document does not name any more */

static const char *wanted_hook(const struct announce *announce)
{
	const struct model *model = engine_model(announce->daemon->engine);

	return model->announce.given && *model->announce.hook ? model->announce.hook : "";
}

struct told *announce_told(const struct announce *announce, const union shunt_address *address)
{
	return announce->n_told ? bsearch(address, announce->told, announce->n_told, sizeof(*announce->told),
					  announce_by_address)
				: NULL;
}

/* ---- what is kept ---- */

static void keep(struct announce *announce)
{
	union shunt_address *list = calloc(announce->n_told + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return;
	for (size_t i = 0; i < announce->n_told; i++)
		if (announce->told[i].maybe_up)
			list[n++] = announce->told[i].address;
	free(announce->kept.up);
	announce->kept.up = list;
	announce->kept.n_up = n;
	announce->unsaved = false;
	announce_save(announce);
}

int announce_hook_resume(struct announce *announce)
{
	const struct announce_kept *kept = &announce->kept;

	announce->told = calloc(kept->n_up + 1, sizeof(*announce->told));
	if (!announce->told)
		return -ENOMEM;
	for (size_t i = 0; i < kept->n_up; i++)
		announce->told[i] = (struct told){.address = kept->up[i], .maybe_up = true};
	announce->n_told = kept->n_up;
	return 0;
}

/* ---- running ---- */

static bool is_settled(const struct told *told)
{
	return told->state == (told->want ? TOLD_UP : TOLD_DOWN);
}

static void failed(struct announce *announce, struct told *told, const char *why)
{
	char text[ADDR_TEXT_MAX];
	uint64_t wait = RETRY_MAX;

	snprintf(told->why, sizeof(told->why), "%s", why);
	if (!told->failures++)
		log_error("hook %s %s %s: %s", announce->kept.hook, told->want ? "up" : "down",
			  addr_format(&told->address, text), why);
	if (told->failures < 7)
		wait = RETRY_FIRST << (told->failures - 1);
	told->due = daemon_now() + (wait < RETRY_MAX ? wait : RETRY_MAX);
}

static void ended(struct announce *announce, struct running *run, const char *why)
{
	struct told *told = announce_told(announce, &run->address);

	sd_event_source_disable_unref(run->source);
	close(run->fd);
	if (told) {
		told->running = false;
		if (why) {
			failed(announce, told, why);
		} else {
			told->state = run->up ? TOLD_UP : TOLD_DOWN;
			told->failures = 0;
			if (!run->up && told->maybe_up) {
				told->maybe_up = false;
				announce->unsaved = true;
			}
		}
	}
	*run = announce->runs[--announce->n_runs];
	announce_kick(announce->daemon);
}

static int on_ended(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct announce *announce = arg;
	char why[HOOK_WHY_MAX];
	int status = 0;

	(void)source;
	(void)events;
	for (size_t i = 0; i < announce->n_runs; i++) {
		struct running *run = &announce->runs[i];

		if (run->fd != fd || !hook_ended(run->child, &status))
			continue;
		ended(announce, run, WIFEXITED(status) && !WEXITSTATUS(status) ? NULL : hook_describe(status, why));
		break;
	}
	return 0;
}

static int start(struct announce *announce, struct told *told, struct running *run)
{
	const struct daemon_options *options = announce->daemon->options;
	char dir[PATH_MAX], path[PATH_MAX + 256], address[ADDR_TEXT_MAX], instance[64];
	char *arguments[] = {path, told->want ? "up" : "down", address, NULL};
	char *variables[] = {HOOK_PATH, instance, NULL};
	const struct hook_request request = {path, arguments, variables, false};
	char why[HOOK_WHY_MAX];
	int ret;

	snprintf(dir, sizeof(dir), "%s/" ANNOUNCE_HOOKS, options->hooks_dir);
	snprintf(path, sizeof(path), "%s/%s", dir, announce->kept.hook);
	snprintf(instance, sizeof(instance), "SHUNT_INSTANCE=%s", options->instance);
	addr_format(&told->address, address);
	ret = hook_check(dir, announce->kept.hook, false, why);
	if (!ret) {
		ret = hook_start(&request, &run->child, &run->fd);
		snprintf(why, sizeof(why), "cannot be run: %s", strerror(-ret));
	}
	if (ret) {
		failed(announce, told, why);
		return ret;
	}
	ret = sd_event_add_io(announce->daemon->event, &run->source, run->fd, EPOLLIN, on_ended, announce);
	if (ret < 0) {
		hook_kill(run->child);
		close(run->fd);
		failed(announce, told, strerror(-ret));
		return ret;
	}
	run->address = told->address;
	run->up = told->want;
	run->deadline = daemon_now() + RUN_MAX;
	told->running = true;
	return 0;
}

static void run_due(struct announce *announce)
{
	const uint64_t now = daemon_now();

	for (size_t i = 0; i < announce->n_told && announce->n_runs < ANNOUNCE_RUNS; i++) {
		struct told *told = &announce->told[i];

		if (told->running || is_settled(told) || told->due > now)
			continue;
		if (!start(announce, told, &announce->runs[announce->n_runs]))
			announce->n_runs++;
	}
}

static void end_late(struct announce *announce)
{
	for (size_t i = announce->n_runs; i--;) {
		if (announce->runs[i].deadline > daemon_now())
			continue;
		hook_kill(announce->runs[i].child);
		ended(announce, &announce->runs[i], "it took longer than 10 s");
	}
}

/* ---- what is to be told ---- */

/* Nothing is left to say about it. */
static bool is_over(const struct announce *announce, const struct told *told, bool parting)
{
	if (told->running)
		return false;
	if (parting && told->failures >= TRIES_AT_PARTING) {
		log_error("hook %s is not in the document any more, and could not be told of an address that is down",
			  announce->kept.hook);
		return true;
	}
	return !told->maybe_up;
}

/* The list anew: what shall be told, and what was told once and is to be taken back. */
static int list(struct announce *announce, bool parting)
{
	size_t n_wanted = parting ? 0 : announce->n, room = n_wanted + announce->n_told, n = 0, i = 0, j = 0;
	struct told *fresh = calloc(room + 1, sizeof(*fresh));

	if (!fresh)
		return -ENOMEM;
	while (i < n_wanted || j < announce->n_told) {
		int order = i == n_wanted ? 1
			    : j == announce->n_told
				    ? -1
				    : addr_compare(&announce->list[i].address, &announce->told[j].address);
		bool want = order <= 0 && announce->list[i].wanted;
		struct told *to = &fresh[n];

		if (order < 0)
			*to = (struct told){.address = announce->list[i].address};
		else
			*to = announce->told[j];
		i += order <= 0;
		j += order >= 0;
		if (order > 0 && is_over(announce, to, parting)) {
			announce->unsaved |= to->maybe_up;
			continue;
		}
		if (to->want != want)
			to->failures = to->due = 0;
		to->want = want;
		if (want && !to->maybe_up)
			to->maybe_up = announce->unsaved = true;
		n++;
	}
	free(announce->told);
	announce->told = fresh;
	announce->n_told = n;
	return 0;
}

void announce_hook_sync(struct announce *announce)
{
	const char *wanted = wanted_hook(announce);
	bool parting = strcmp(announce->kept.hook, wanted) != 0;

	if (!*wanted && !*announce->kept.hook)
		return;
	end_late(announce);
	if (parting && !announce->n_told && !announce->n_runs) {
		snprintf(announce->kept.hook, sizeof(announce->kept.hook), "%s", wanted);
		announce->unsaved = true;
		parting = false;
	}
	if (list(announce, parting)) {
		log_error("out of memory: hooks are not told of announcements");
		return;
	}
	if (announce->unsaved)
		keep(announce);
	run_due(announce);
	if (parting && !announce->n_told)
		announce_kick(announce->daemon);
}

size_t announce_hook_failures(const struct announce *announce, const struct told **first)
{
	size_t n = 0;

	for (size_t i = 0; i < announce->n_told; i++) {
		if (!announce->told[i].failures)
			continue;
		if (!n++)
			*first = &announce->told[i];
	}
	return n;
}

void announce_hook_close(struct announce *announce)
{
	for (size_t i = 0; i < announce->n_runs; i++) {
		hook_kill(announce->runs[i].child);
		sd_event_source_disable_unref(announce->runs[i].source);
		close(announce->runs[i].fd);
	}
	free(announce->told);
}
