/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of model_check() share; for nobody else. */
#ifndef SHUNT_MODEL_CHECK_H
#define SHUNT_MODEL_CHECK_H

#include "model.h"

/* At a place of the model: an error. */
#define complain(report, where, ...) report_add(report, REPORT_ERROR, (where).line, (where).column, __VA_ARGS__)

/* " (line N)", or "" for what has no line. */
#define PLACE_TEXT_MAX 24
const char *model_place_text(struct model_place place, char out[static PLACE_TEXT_MAX]);

bool model_place_before(struct model_place a, struct model_place b);

/* kind: "pool", "backend", "service". */
void model_check_name(const char *kind, const char *name, struct model_place place, struct report *report);
void model_check_duplicate(const char *kind, const char *name, struct model_place first, struct model_place second,
			   struct report *report);

/* 0, or -ENOMEM; errors are in the report. */
int model_check_pools(const struct model *model, struct report *report);
void model_check_encapsulation(const struct model *model, const struct model_pool *pool, struct report *report);
int model_check_services(const struct model *model, const struct model_local *locals, size_t n_locals,
			 struct report *report);

/* model_check_health.c */
void model_check_health(const struct model *model, const struct model_pool *pool, struct report *report);

#endif
