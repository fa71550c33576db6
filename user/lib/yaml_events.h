/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* libfyaml's events of a text, with places and sentences for what is wrong.  For yaml.c alone. */
#ifndef SHUNT_YAML_EVENTS_H
#define SHUNT_YAML_EVENTS_H

#include <libfyaml.h>

#include "report.h"

struct yaml_events {
	struct report *report;
	struct fy_diag *diag;
	struct fy_parser *parser;
	struct fy_token_iter *iterator;
	unsigned int line, column; /* of the last event that had a place */
};

/* 0; -EINVAL, reported, where the text is not UTF-8; -ENOMEM.  To be closed in any case. */
int yaml_events_open(struct yaml_events *events, const char *text, size_t length, struct report *report);
void yaml_events_close(struct yaml_events *events);

/* The next event, to be given back with fy_parser_event_free(); NULL: reported. */
struct fy_event *yaml_events_next(struct yaml_events *events);

/* The bytes of a token's text, to `copy` unless it is NULL.  0, or -EINVAL, reported. */
int yaml_events_text(struct yaml_events *events, struct fy_token *token, char *copy, size_t *length);

/* An error at the last event; returns -EINVAL. */
int yaml_events_fail(struct yaml_events *events, const char *sentence);

#endif
