/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The output of shuntctl simulate. */
#ifndef SHUNT_CTL_SIMULATE_OUTPUT_H
#define SHUNT_CTL_SIMULATE_OUTPUT_H

#include <jansson.h>

#include "simulate.h"

/* One algorithm with one event, as a row: the keys of docs/tables.md. */
json_t *simulate_row(const struct simulate_options *options, const char *event, const struct simulate_result *result,
		     const struct report *report);

/* An algorithm that refused: only what was asked, and `error`. */
json_t *simulate_refused(const struct simulate_options *options, const char *event, const struct report *report);

/* Takes the rows.  The exit code. */
int simulate_print(const struct simulate_options *options, json_t *rows);

#endif
