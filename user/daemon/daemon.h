/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of shuntd share. */
#ifndef SHUNTD_DAEMON_H
#define SHUNTD_DAEMON_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include <systemd/sd-event.h>

#include "engine.h"
#include "history.h"
#include "model.h"
#include "nexthop.h"
#include "report.h"

struct daemon_options {
	const char *file; /* document, or NULL */
	const char *instance;
	char state_dir[PATH_MAX];
	struct maps_capacities capacities;
	const char *hash_key_file; /* of a first document that says "hash-key: keep", or NULL */
	const char *admin_group;   /* whose members may change things, beside root */
	bool only_admins;	   /* others may not even read */
	const char *hooks_dir;	   /* of health checks by hooks */
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
	char *history_problem;	/* why the history is not on disk, or NULL */
	char *undo_problem;	/* why a change that was not confirmed is still there, or NULL */
	char *state_problem;	/* why what is in force is not on disk, or NULL */
	char *publish_problem;	/* why the maps are not as they should be, or NULL */

	char *tick_problem;	/* why slots in transition do not come to rest, or NULL */
	char *deletion_problem; /* why backends that have drained are not deleted, or NULL */
	sd_event_source *tick_timer;
	uint64_t tick_put_off; /* CLOCK_MONOTONIC, microseconds, since when by changes; 0: it is not */
	struct history *history;
	struct origin origin; /* of what is being done: for epochs that come of it */
	sd_event_source *undo_timer;

	struct announce *announce;
	struct checks *checks;
	char *checks_problem; /* why health is not checked, or NULL */

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
 * reported, and nothing has changed.  *changed: whether another model is in force now; a document that is the same to
 * the byte makes no revision then.
 */
int apply_file(struct daemon *daemon, bool always, const struct origin *origin, bool *changed, struct report *report);

/* The loader rebuilt the maps: open them again. */
int apply_reopen(struct daemon *daemon, struct report *report);

/* Of a document's bytes, as it is recorded; 0 if they are no document, or not those of the daemon's file. */
uint64_t apply_tag(const struct daemon *daemon, const char *text, size_t length);

/* ---- changes (change.c): all go this way ---- */

struct change {
	struct origin origin;
	uint64_t tag;		/* of the daemon's own file, if that says so; 0: something else does */
	unsigned int settle_ms; /* at most so long is waited for the ways to new backends */
	uint32_t confirm;	/* seconds, 0: it need not be confirmed */
	bool dry_run;		/* nothing changes */
	bool forced;		/* the policy is not asked */
	bool undo;		/* takes back what waits to be confirmed: allowed while it does */
	bool document;		/* a whole one: takes deletions back that wait for their drain */
	bool files;		/* those that it names are read again, and have to be readable */
	bool always;		/* makes a revision also where it changes nothing */
};

/* What a change does: docs/control-protocol.md, Apply.  The references are the caller's; NULL where it did not come so
 * far. */
struct change_result {
	json_t *changes; /* of the model: empty if it is as it was */
	json_t *pools;	 /* of their tables */
	bool refused;	 /* by the policy */
};

/*
 * From a judged model to what is in force: what differs, policy, tables, epochs, revision, history.  Takes the model,
 * also on failure.  0; -ECANCELED: refused by the policy; -EALREADY: another change waits to be confirmed; the errors
 * of engine_apply().
 */
int change_make(struct daemon *daemon, struct model *model, const struct change *change, struct change_result *result,
		struct report *report);
/* The same for a drain, which leaves the model as it is. */
int change_drain(struct daemon *daemon, const char *pool, const char *name, enum engine_drain how,
		 const struct change *change, struct change_result *result, struct report *report);
void change_result_free(struct change_result *result);

/* Judge a model that was changed by hand against this host and what is in force. */
int change_check(struct daemon *daemon, const struct model *model, struct report *report);

/* Go back to the model of a revision that is kept. -ENOENT: it is not. */
int change_load_revision(struct daemon *daemon, uint64_t revision, struct model **out, struct report *report);

/* Take back the change that waits to be confirmed. */
int change_undo(struct daemon *daemon, const struct origin *origin, struct report *report);
/* It stands. */
int change_confirm(struct daemon *daemon, struct report *report);
int change_open(struct daemon *daemon); /* the timer; -errno */
/* At start: wait for the rest of the time, or undo at once. */
void change_resume(struct daemon *daemon);

/* ---- history (record.c) ---- */

/* For engine_options: `arg` is the daemon. */
engine_epoch_fn record_epoch;
/* changes: how many objects of the model; pools: how many tables. */
void record_revision(struct daemon *daemon, size_t changes, size_t pools);
/* At start: entries for what is in force and has none. */
void record_found(struct daemon *daemon);
/* What was recorded, to disk. */
void record_flush(struct daemon *daemon);

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

/* ---- announcements of service addresses (announce.c) ---- */

int announce_open(struct daemon *daemon, struct report *report);
void announce_close(struct daemon *daemon);

/* Tables or the model may have changed: look soon. */
void announce_kick(struct daemon *daemon);

/* For Status: null where the document announces nothing. */
json_t *announce_show(const struct daemon *daemon);
/* The same: null where no operator has drained this balancer. */
json_t *announce_show_drain(const struct daemon *daemon);
/* Into an object for people: members announced, announced_why. */
void announce_show_service(const struct daemon *daemon, const struct model_service *service, json_t *row);
/* Whether routes, or what is kept of them, are not as they should be. */
bool announce_alarm(const struct daemon *daemon);
/* Sentences for what is wrong, appended to a list. */
void announce_problems(const struct daemon *daemon, json_t *problems);

/* ---- health checks (checks.c) ---- */

int checks_open(struct daemon *daemon, struct report *report);
void checks_close(struct daemon *daemon);

/* Check what the model in force says: after every change of it.  Checks that are the same go on. */
void checks_update(struct daemon *daemon);

/*
 * Whom checks by https believe (checks_trust.c).  again: the CA files of `model` are read, and one that cannot be is an
 * error, reported.  Otherwise those that were read before are good enough, and where one cannot be read its checks are
 * not made.  0 and *out, for trusts_take() or trusts_free(); -EINVAL, -ENOMEM.
 */
struct trusts;
int trusts_read(struct daemon *daemon, const struct model *model, bool again, struct trusts **out,
		struct report *report);
void trusts_take(struct daemon *daemon, struct trusts *trusts); /* before checks_update() */
void trusts_free(struct trusts *trusts);			/* NULL is allowed */

/* The maps are other ones: the way down the data path is built again. */
void checks_reopen(struct daemon *daemon);

/* Of a backend, into an object for people: members health_..., "health" is null where it is not checked. */
void checks_show_backend(const struct daemon *daemon, const char *pool, const char *backend, json_t *row);

/* Who counts may have changed: backends that drain do not. */
void checks_judge(struct daemon *daemon);

/* Sentences for what is wrong, appended to a list. */
void checks_problems(const struct daemon *daemon, json_t *problems);

#endif
