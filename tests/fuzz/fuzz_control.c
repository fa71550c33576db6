/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control socket's framing and envelopes.  The first byte says in which pieces the rest arrives.  What comes out
 * does not depend on the pieces, and every message survives encoding.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"

#define LIMIT 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void insist(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void judge_round_trip(const json_t *message)
{
	struct control_decoder decoder;
	char why[CONTROL_WHY_MAX], *text;
	json_t *again = NULL;
	size_t length;

	insist(!control_encode(message, CONTROL_REPLY_MAX, &text, &length), "a message that cannot be encoded");
	control_decoder_init(&decoder, CONTROL_REPLY_MAX);
	insist(!control_decoder_feed(&decoder, text, length), "no memory");
	insist(control_decoder_next(&decoder, &again, why) == 1 && json_equal(message, again), "another message");
	insist(!control_decoder_partial(&decoder), "bytes are left");
	control_decoder_free(&decoder);
	json_decref(again);
	free(text);
}

static void judge_envelope(const json_t *message)
{
	const json_t *parameters = NULL;
	const char *name = NULL;
	char why[CONTROL_WHY_MAX] = "";
	enum control_error error;

	if (!control_request_parse(message, &name, &parameters, &error, why))
		insist(name && (!parameters || json_is_object(parameters)), "a request without its parts");
	else
		insist(*why && error < CONTROL_NR_ERRORS, "a request refused without a word");
	name = NULL;
	switch (control_reply_parse(message, &name, &parameters, why)) {
	case 0:
		insist(json_is_object(parameters), "a reply without parameters");
		break;
	case 1:
		insist(name && json_is_object(parameters), "an error without its parts");
	}
}

/* The messages' number, and how the stream ended: 0 or -EMSGSIZE. */
static size_t decode(const uint8_t *data, size_t size, size_t piece, bool judge, int *end)
{
	struct control_decoder decoder;
	char why[CONTROL_WHY_MAX];
	size_t count = 0;
	json_t *message;

	*end = 0;
	control_decoder_init(&decoder, LIMIT);
	for (size_t at = 0; at < size && *end != -EMSGSIZE; at += piece) {
		insist(!control_decoder_feed(&decoder, data + at, piece < size - at ? piece : size - at), "no memory");
		while ((*end = control_decoder_next(&decoder, &message, why)) == 1 || *end == -EBADMSG) {
			count++;
			if (*end != 1)
				continue;
			if (judge) {
				judge_round_trip(message);
				judge_envelope(message);
			}
			json_decref(message);
		}
	}
	control_decoder_free(&decoder);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t whole, pieces;
	int end, other;

	if (size < 2)
		return 0;
	whole = decode(data + 1, size - 1, size, true, &end);
	pieces = decode(data + 1, size - 1, (size_t)data[0] + 1, false, &other);
	insist(whole == pieces && end == other, "the pieces make a difference");
	return 0;
}
