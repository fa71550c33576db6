/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must survive the daemon and its host: the model, and which numbers were given to its parts.  One file,
 * state.json (docs/state-format.md), replaced by fsync and rename; the last state of each former revision stays beside
 * it, as revisions/<number>.json.
 */
#ifndef SHUNT_STATE_H
#define SHUNT_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "model.h"
#include "origin.h"
#include "report.h"

#define STATE_FORMAT 2 /* what is written; from 1 on is read */
#define STATE_FILE "state.json"
#define STATE_REVISIONS "revisions"
#define STATE_REVISIONS_KEPT 100u

struct state_backend {
	uint32_t id;
	uint32_t generation; /* 0 .. 15 */
	uint64_t draining;   /* since when, by CLOCK_REALTIME in seconds; 0: it does not drain */
	uint64_t drain_seen; /* what the next belongs to: `draining` of then; neither is in the file */
	int64_t drain_began; /* the same moment by CLOCK_MONOTONIC in milliseconds, which nobody sets */
	bool leaving;	     /* to be deleted when it has drained */
	bool maintenance;    /* drains, and is not cut off: until it is activated */
	uint64_t ramp;	     /* when its slow start began, CLOCK_REALTIME in milliseconds; 0: none is under way */
	uint32_t step;	     /* of it, as the table has it; not in the file */
	bool at_once;	     /* comes back without one: not in the file */
	bool down;	     /* taken out by its checks: not in the file, but in the maps */
};

/* epoch, phase, digest: the last that were allotted, in force or in flight; epoch 0: none yet. */
struct state_pool {
	uint32_t index;
	uint32_t phase;
	uint64_t epoch;
	uint64_t digest;
	struct state_backend *backends; /* beside model->pools[i].backends */
};

/* A change that is undone if it is not confirmed in time. */
struct state_pending {
	uint64_t revision; /* to go back to; 0: no change waits to be confirmed */
	uint64_t deadline; /* UNIX seconds */
	uint32_t window;   /* seconds from the change to the deadline */
};

struct state {
	uint64_t revision; /* of the model: counts what engine_apply() took */
	uint64_t document_tag;
	uint64_t epoch_floor; /* no pool that ever was had a higher epoch, those of now apart */
	struct origin origin; /* of the revision; empty where format 1 was read */
	struct state_pending pending;
	struct model *model;	  /* NULL: nothing was ever applied, and the arrays are empty */
	struct state_pool *pools; /* beside model->pools */
	uint32_t *counters;	  /* beside model->services: index into service_stats */
};

/* Arrays for `model`, zeroed; borrows the model.  0 or -ENOMEM. */
int state_init(struct state *state, struct model *model);

/* Frees the arrays; the model stays. */
void state_free(struct state *state);

/*
 * Read dir/state.json.  0 and *out, whose arrays and model the caller frees; -ENOENT (not reported) if there is no
 * file; -EUCLEAN (damaged or of another format: reported with the way to recover), -ENOMEM, or what the system says.
 */
int state_load(const char *dir, struct state *out, struct report *report);

/* The same of a former revision: -ENOENT (not reported) if it is not kept any more. */
int state_load_revision(const char *dir, uint64_t revision, struct state *out, struct report *report);

/* Whether a former revision is kept. */
bool state_has_revision(const char *dir, uint64_t revision);

/*
 * Keep the state file as the last state of this revision, before state_save() replaces it by one of the next; the
 * oldest beyond STATE_REVISIONS_KEPT go.  0, or -errno, reported.
 */
int state_keep_revision(const char *dir, uint64_t revision, struct report *report);

/*
 * Replace dir/state.json, making the folder (0700) if there is none.  On return it is on disk; on failure, reported,
 * the old file is what there is.
 */
int state_save(const char *dir, const struct state *state, struct report *report);

/* Remove dir/state.json, if there is one: 0, or -errno. */
int state_remove(const char *dir);

#endif
