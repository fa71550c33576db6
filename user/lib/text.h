/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A text that grows, for large JSON written piece by piece; it may hold a key, and what it gives up is wiped. */
#ifndef SHUNT_TEXT_H
#define SHUNT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

struct text {
	char *at; /* not terminated; the owner wipes and frees it */
	size_t length, room;
	bool failed; /* out of memory, or a value was NULL: at says less than was asked for */
};

void text_add(struct text *text, const char *bytes, size_t length);
void text_adds(struct text *text, const char *string);
void text_number(struct text *text, uint64_t number);
/* Compact.  Takes the value, which may be NULL. */
void text_json(struct text *text, json_t *value);
/* An object without its closing brace, for members to follow; it must have one already. */
void text_open(struct text *text, json_t *object);
void text_free(struct text *text);

#endif
