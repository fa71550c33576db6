/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "text.h"

#define ROOM_FIRST 65536u

/* Not realloc(), which leaves the old bytes where they were. */
static bool grow(struct text *text, size_t length)
{
	size_t room = text->room ? text->room : ROOM_FIRST;
	char *at;

	while (room - text->length < length)
		room *= 2;
	if (room == text->room)
		return true;
	at = malloc(room);
	if (!at)
		return false;
	if (text->length)
		memcpy(at, text->at, text->length);
	if (text->at)
		explicit_bzero(text->at, text->length);
	free(text->at);
	text->at = at;
	text->room = room;
	return true;
}

void text_add(struct text *text, const char *bytes, size_t length)
{
	if (text->failed || !grow(text, length)) {
		text->failed = true;
		return;
	}
	memcpy(text->at + text->length, bytes, length);
	text->length += length;
}

void text_adds(struct text *text, const char *string)
{
	text_add(text, string, strlen(string));
}

/* printf() takes five times as long, and a state has some ten thousand numbers. */
void text_number(struct text *text, uint64_t number)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	text_add(text, digits + at, sizeof(digits) - at);
}

static int add(const char *bytes, size_t length, void *arg)
{
	struct text *text = arg;

	text_add(text, bytes, length);
	return text->failed ? -1 : 0;
}

void text_json(struct text *text, json_t *value)
{
	if (!value || json_dump_callback(value, add, text, JSON_COMPACT | JSON_ENCODE_ANY))
		text->failed = true;
	json_decref(value);
}

void text_open(struct text *text, json_t *object)
{
	text_json(text, object);
	if (!text->failed)
		text->length--;
}

void text_free(struct text *text)
{
	if (text->at)
		explicit_bzero(text->at, text->length);
	free(text->at);
	*text = (struct text){};
}
