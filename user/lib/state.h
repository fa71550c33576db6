/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must survive the daemon and its host: the model, and which numbers were given to its parts.  One file,
 * state.json (docs/state-format.md), replaced by fsync and rename.
 */
#ifndef SHUNT_STATE_H
#define SHUNT_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "model.h"
#include "report.h"

#define STATE_FORMAT 1
#define STATE_FILE "state.json"

struct state_backend {
	uint32_t id;
	uint32_t generation; /* 0 .. 15 */
};

/* epoch, phase, digest: the last that were allotted, in force or in flight; epoch 0: none yet. */
struct state_pool {
	uint32_t index;
	uint32_t phase;
	uint64_t epoch;
	uint64_t digest;
	struct state_backend *backends; /* beside model->pools[i].backends */
};

struct state {
	uint64_t revision; /* of the model: counts what engine_apply() took */
	uint64_t document_tag;
	uint64_t epoch_floor;	  /* no pool that ever was had a higher epoch, those of now apart */
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

/*
 * Replace dir/state.json, making the folder (0700) if there is none.  On return it is on disk; on failure, reported,
 * the old file is what there is.
 */
int state_save(const char *dir, const struct state *state, struct report *report);

/* Remove dir/state.json, if there is one: 0, or -errno. */
int state_remove(const char *dir);

#endif
