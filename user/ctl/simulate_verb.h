/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of shuntctl simulate: command line, backends, output. */
#ifndef SHUNT_CTL_SIMULATE_VERB_H
#define SHUNT_CTL_SIMULATE_VERB_H

#include <jansson.h>

#include "model.h"
#include "simulate.h"

struct simulate_arguments {
	struct simulate_options o;
	const char *algorithms, *events, *weights, *config, *pool;
	json_int_t backends;
	uint32_t zones;
	bool compare, has_backends;
};

/* What owns the backends that the options speak of. */
struct simulate_subject {
	struct simulate_backends made;
	struct model *model;
	struct table_member *members; /* of the model's pool */
};

/*
 * Make the backends that the arguments describe, and fill in what a document says and the arguments do not.  -errno,
 * reported; simulate_subject_free() in any case.
 */
int simulate_subject(struct simulate_arguments *arguments, struct simulate_subject *out, struct report *report);
void simulate_subject_free(struct simulate_subject *subject);

/* One algorithm with one event, as a row: the keys of docs/tables.md. */
json_t *simulate_row(const struct simulate_options *options, const char *event, const struct simulate_result *result,
		     const struct report *report);

/* An algorithm that refused: only what was asked, and `error`. */
json_t *simulate_refused(const struct simulate_options *options, const char *event, const struct report *report);

/* Takes the rows.  The exit code. */
int simulate_print(const struct simulate_options *options, json_t *rows);

#endif
