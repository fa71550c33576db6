/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of shuntd share. */
#ifndef SHUNTD_DAEMON_H
#define SHUNTD_DAEMON_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "engine.h"
#include "model.h"
#include "nexthop.h"
#include "report.h"

struct daemon_options {
	const char *file; /* document, or NULL */
	const char *instance;
	char state_dir[PATH_MAX];
	struct maps_capacities capacities;
};

struct server;

struct daemon {
	const struct daemon_options *options;
	sd_event *event;
	struct engine *engine;
	struct server *server;
	int lock_fd;
	uint64_t started;	/* CLOCK_MONOTONIC, microseconds */
	char *document_problem; /* why the file is not in force, or NULL */
	char *publish_problem;	/* why the maps are not as they should be, or NULL */

	char *tick_problem;	/* why slots in transition do not come to rest, or NULL */
	sd_event_source *tick_timer;

	/* ways.c */
	struct nexthop *nexthop;
	sd_event_source *way_news, *way_timer, *publish_timer;
	uint64_t publish_retry; /* microseconds; 0: the last one succeeded */
};

/* ---- main loop (daemon.c) ---- */

/* Start, run until told to end, end.  The exit code. */
int daemon_run(const struct daemon_options *options);

/* CLOCK_MONOTONIC in microseconds. */
uint64_t daemon_now(void);

/* Replace a problem's text (NULL: solved); out of memory keeps a shorter one. */
void daemon_set_problem(char **problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- the instance's run directory and lock (lock.c) ---- */

/*
 * Make CONTROL_RUN_DIR/<instance> and lock it for this process.  A descriptor to keep; -EBUSY names the process that
 * holds it.
 */
int lock_instance(const char *instance, struct report *report);

/* ---- documents and changes (apply.c) ---- */

#define APPLY_SETTLE_MS 1500u /* at most so long is waited for next hops before a document is applied */
#define VERB_SETTLE_MS 300u

/*
 * Read the document file and apply it; not `always`: only if it is another than the one last applied.  0; -errno,
 * reported, and nothing has changed.  *changed: whether another model is in force now.
 */
int apply_file(struct daemon *daemon, bool always, bool *changed, struct report *report);

/*
 * Judge a changed model and make it the one in force, waiting a little for the ways to backends that are new in it.
 * Takes the model, also on failure.  -EINVAL where the model is wrong; the errors of engine_apply().
 */
int apply_model(struct daemon *daemon, struct model *model, struct report *report);

/* The loader rebuilt the maps: open them again. */
int apply_reopen(struct daemon *daemon, struct report *report);

/* ---- following the ways to backends (ways.c) ---- */

int ways_open(struct daemon *daemon, struct report *report);
void ways_close(struct daemon *daemon);

/* Follow the addresses of the model in force and of `model` (or NULL), and no others. */
int ways_watch(struct daemon *daemon, const struct model *model);

/* Wait until the ways are known, or known not to be, for at most `milliseconds`, and tell them to the engine. */
void ways_settle(struct daemon *daemon, unsigned int milliseconds);

/* All that was told to the engine is in force. */
void ways_published(struct daemon *daemon);

/* Bring the maps up to date; failures are logged, shown by Status, and tried again. */
void ways_publish(struct daemon *daemon);

/* ---- what comes later by itself (ticks.c) ---- */

int ticks_open(struct daemon *daemon, struct report *report);
void ticks_close(struct daemon *daemon);

/* Something has changed: look what is due. */
void ticks_kick(struct daemon *daemon);

#endif
