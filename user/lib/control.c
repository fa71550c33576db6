/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"

static const char *const error_names[CONTROL_NR_ERRORS] = {
	[CONTROL_INVALID] = "Invalid",
	[CONTROL_NOT_FOUND] = "NotFound",
	[CONTROL_EXISTS] = "Exists",
	[CONTROL_FULL] = "Full",
	[CONTROL_PERMISSION_DENIED] = "PermissionDenied",
	[CONTROL_UNKNOWN_METHOD] = "UnknownMethod",
	[CONTROL_BAD_REQUEST] = "BadRequest",
	[CONTROL_VERSION_MISMATCH] = "VersionMismatch",
	[CONTROL_FAILED] = "Failed",
	[CONTROL_POLICY] = "Policy",
	[CONTROL_PENDING] = "Pending",
};

static const char *const level_names[] = {"error", "warning", "info"};

int control_path(const char *instance, char out[static CONTROL_PATH_MAX])
{
	char path[CONTROL_PATH_MAX];
	int n = snprintf(path, sizeof(path), CONTROL_RUN_DIR "/%s/control.sock", instance);

	if (n < 0 || n >= CONTROL_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(out, path, (size_t)n + 1);
	return 0;
}

/* ---- framing ---- */

void control_decoder_init(struct control_decoder *decoder, size_t limit)
{
	*decoder = (struct control_decoder){.limit = limit};
}

void control_decoder_free(struct control_decoder *decoder)
{
	free(decoder->buffer);
	*decoder = (struct control_decoder){.limit = decoder->limit};
}

static int make_room(struct control_decoder *decoder, size_t n)
{
	size_t used = decoder->length - decoder->start, capacity = decoder->capacity ? decoder->capacity : 4096;
	char *grown;

	if (decoder->start) {
		memmove(decoder->buffer, decoder->buffer + decoder->start, used);
		decoder->start = 0;
		decoder->length = used;
	}
	while (capacity - used < n) {
		if (capacity > SIZE_MAX / 2)
			return -ENOMEM;
		capacity *= 2;
	}
	if (capacity == decoder->capacity)
		return 0;
	grown = realloc(decoder->buffer, capacity);
	if (!grown)
		return -ENOMEM;
	decoder->buffer = grown;
	decoder->capacity = capacity;
	return 0;
}

int control_decoder_feed(struct control_decoder *decoder, const void *bytes, size_t n)
{
	int err;

	if (!n)
		return 0;
	err = make_room(decoder, n);
	if (err)
		return err;
	memcpy(decoder->buffer + decoder->length, bytes, n);
	decoder->length += n;
	return 0;
}

static int parse_object(const char *text, size_t length, json_t **out, char why[static CONTROL_WHY_MAX])
{
	json_error_t error;
	json_t *message = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);

	if (!message) {
		snprintf(why, CONTROL_WHY_MAX, "not JSON: %.100s, byte %d", error.text, error.position);
		return -EBADMSG;
	}
	if (!json_is_object(message)) {
		snprintf(why, CONTROL_WHY_MAX, "not a JSON object");
		json_decref(message);
		return -EBADMSG;
	}
	*out = message;
	return 1;
}

int control_decoder_next(struct control_decoder *decoder, json_t **out, char why[static CONTROL_WHY_MAX])
{
	size_t waiting = decoder->length - decoder->start, size;
	const char *text, *end;

	if (!waiting)
		return 0;
	text = decoder->buffer + decoder->start;
	end = memchr(text + decoder->scanned, '\0', waiting - decoder->scanned);
	size = end ? (size_t)(end - text) : waiting;
	if (size > decoder->limit)
		return -EMSGSIZE;
	if (!end) {
		decoder->scanned = waiting;
		return 0;
	}
	decoder->start += size + 1;
	decoder->scanned = 0;
	return parse_object(text, size, out, why);
}

int control_decoder_partial(const struct control_decoder *decoder)
{
	return decoder->length > decoder->start;
}

int control_encode(const json_t *message, size_t limit, char **out, size_t *length)
{
	char *text = json_dumps(message, JSON_COMPACT);
	size_t size;

	if (!text)
		return -ENOMEM;
	size = strlen(text);
	if (size > limit) {
		free(text);
		return -EMSGSIZE;
	}
	*out = text;
	*length = size + 1;
	return 0;
}

/* ---- envelopes ---- */

const char *control_error_name(enum control_error error)
{
	return error_names[error];
}

json_t *control_request(const char *method, json_t *parameters)
{
	char full[CONTROL_WHY_MAX];

	snprintf(full, sizeof(full), CONTROL_INTERFACE ".%s", method);
	return json_pack("{s:s, s:o*, s:i}", "method", full, "parameters", parameters, "version", CONTROL_VERSION);
}

/* The part of `name` after "shunt.control.", or NULL. */
static const char *in_interface(const char *name)
{
	static const char prefix[] = CONTROL_INTERFACE ".";

	return strncmp(name, prefix, sizeof(prefix) - 1) ? NULL : name + sizeof(prefix) - 1;
}

int control_request_parse(const json_t *message, const char **method, const json_t **parameters,
			  enum control_error *error, char why[static CONTROL_WHY_MAX])
{
	const char *full = json_string_value(json_object_get(message, "method"));
	const json_t *version = json_object_get(message, "version");
	const json_t *given = json_object_get(message, "parameters");

	*error = CONTROL_BAD_REQUEST;
	if (!full) {
		snprintf(why, CONTROL_WHY_MAX, "the request has no \"method\" that is a string");
		return -EINVAL;
	}
	if (!json_is_integer(version)) {
		snprintf(why, CONTROL_WHY_MAX, "the request has no \"version\" that is a number");
		return -EINVAL;
	}
	if (json_integer_value(version) != CONTROL_VERSION) {
		*error = CONTROL_VERSION_MISMATCH;
		snprintf(why, CONTROL_WHY_MAX,
			 "the request speaks version %lld of the protocol and the daemon version %d: "
			 "use the shuntctl of the daemon's release",
			 (long long)json_integer_value(version), CONTROL_VERSION);
		return -EINVAL;
	}
	if (given && !json_is_object(given)) {
		snprintf(why, CONTROL_WHY_MAX, "\"parameters\" is not an object");
		return -EINVAL;
	}
	if (!in_interface(full)) {
		*error = CONTROL_UNKNOWN_METHOD;
		snprintf(why, CONTROL_WHY_MAX, "there is no method \"%.60s\"", full);
		return -EINVAL;
	}
	*method = in_interface(full);
	*parameters = given;
	return 0;
}

json_t *control_reply(json_t *parameters)
{
	return json_pack("{s:o}", "parameters", parameters ? parameters : json_object());
}

json_t *control_text(const char *text)
{
	json_t *string = json_string(text);
	char *ascii;

	if (string)
		return string;
	ascii = strdup(text);
	if (!ascii)
		return NULL;
	for (char *c = ascii; *c; c++)
		if (*c & 0x80)
			*c = '?';
	string = json_string(ascii);
	free(ascii);
	return string;
}

json_t *control_error_reply(enum control_error error, const char *message, json_t *entries)
{
	char name[64];

	snprintf(name, sizeof(name), CONTROL_INTERFACE ".%s", control_error_name(error));
	return json_pack("{s:s, s:{s:o, s:o}}", "error", name, "parameters", "message", control_text(message),
			 "entries", entries ? entries : json_array());
}

json_t *control_entries(const struct report *report)
{
	const struct report_entry **sorted = report_sorted(report);
	json_t *entries = sorted ? json_array() : NULL;

	for (size_t i = 0; entries && i < report->count; i++) {
		json_t *item = json_pack("{s:s, s:I, s:I, s:o}", "level", level_names[sorted[i]->level], "line",
					 (json_int_t)sorted[i]->line, "column", (json_int_t)sorted[i]->column, "text",
					 control_text(sorted[i]->text));

		if (json_array_append_new(entries, item)) {
			json_decref(entries);
			entries = NULL;
		}
	}
	free(sorted);
	return entries;
}

int control_reply_parse(const json_t *message, const char **error, const json_t **parameters,
			char why[static CONTROL_WHY_MAX])
{
	const json_t *name = json_object_get(message, "error");
	const json_t *given = json_object_get(message, "parameters");

	if (!json_is_object(given)) {
		snprintf(why, CONTROL_WHY_MAX, "the reply has no \"parameters\"");
		return -EPROTO;
	}
	if (!name) {
		*parameters = given;
		return 0;
	}
	if (!json_is_string(name) || !in_interface(json_string_value(name))) {
		snprintf(why, CONTROL_WHY_MAX, "the reply's \"error\" is none of " CONTROL_INTERFACE);
		return -EPROTO;
	}
	*error = in_interface(json_string_value(name));
	*parameters = given;
	return 1;
}
