/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control socket's protocol (docs/control-protocol.md): JSON objects, each ended by a NUL byte.  Both sides use the
 * same framing and envelopes; control_call() is the client.
 */
#ifndef SHUNT_CONTROL_H
#define SHUNT_CONTROL_H

#include <stddef.h>
#include <jansson.h>

#include "report.h"

#define CONTROL_INTERFACE "shunt.control"
#define CONTROL_VERSION 1
#define CONTROL_RUN_DIR "/run/shunt"
#define CONTROL_REQUEST_MAX (1u << 20)	      /* bytes of a message, its NUL not counted */
#define CONTROL_ADMIN_REQUEST_MAX (72u << 20) /* of those who may change things: a document fits */
#define CONTROL_REPLY_MAX (64u << 20)
#define CONTROL_PATH_MAX 108 /* sizeof(sun_path) */
#define CONTROL_WHY_MAX 160

/* CONTROL_RUN_DIR/<instance>/control.sock.  0, or -ENAMETOOLONG.  The name itself is judged by maps_check_instance().
 */
int control_path(const char *instance, char out[static CONTROL_PATH_MAX]);

/* ---- framing ---- */

/* Bytes as they come from a socket, in; messages, out. */
struct control_decoder {
	char *buffer;
	size_t start;	 /* of the first message not yet taken */
	size_t length;	 /* bytes in the buffer */
	size_t capacity; /* of the buffer */
	size_t scanned;	 /* bytes known to hold no NUL, from `start` on */
	size_t limit;
};

/* limit: CONTROL_REQUEST_MAX or CONTROL_ADMIN_REQUEST_MAX on the daemon's side, CONTROL_REPLY_MAX on the client's. */
void control_decoder_init(struct control_decoder *decoder, size_t limit);
void control_decoder_free(struct control_decoder *decoder);

/* Append n bytes.  0 or -ENOMEM.  Memory is bounded if all messages are taken before the next bytes are fed. */
int control_decoder_feed(struct control_decoder *decoder, const void *bytes, size_t n);

/*
 * Take the next message.  1: *out is an object that the caller owns.  0: there is no whole message yet.
 * -EBADMSG: it is not one JSON object, `why` says what is wrong with it; it has been skipped, so the stream can go on.
 * -EMSGSIZE: it is longer than the limit; nothing can follow it: close.
 */
int control_decoder_next(struct control_decoder *decoder, json_t **out, char why[static CONTROL_WHY_MAX]);

/* 1 if bytes of an unfinished message are waiting. */
int control_decoder_partial(const struct control_decoder *decoder);

/* The message as text with its NUL, malloc'd; *length counts the NUL.  -EMSGSIZE above `limit`, -ENOMEM. */
int control_encode(const json_t *message, size_t limit, char **out, size_t *length);

/* ---- envelopes ---- */

enum control_error {
	CONTROL_INVALID,
	CONTROL_NOT_FOUND,
	CONTROL_EXISTS,
	CONTROL_FULL,
	CONTROL_PERMISSION_DENIED,
	CONTROL_UNKNOWN_METHOD,
	CONTROL_BAD_REQUEST,
	CONTROL_VERSION_MISMATCH,
	CONTROL_FAILED,
	CONTROL_POLICY,	 /* refused by the document's policy */
	CONTROL_PENDING, /* another change waits to be confirmed */
	CONTROL_NR_ERRORS
};

/* "Invalid", "NotFound", ... */
const char *control_error_name(enum control_error error);

/* A request; takes the reference to `parameters` (NULL: none).  NULL if out of memory. */
json_t *control_request(const char *method, json_t *parameters);

/*
 * Judge a request's envelope.  0: *method ("PoolList") and *parameters (NULL if there are none) are borrowed from
 * `message`.  -EINVAL: *error and `why` are what to answer.
 */
int control_request_parse(const json_t *message, const char **method, const json_t **parameters,
			  enum control_error *error, char why[static CONTROL_WHY_MAX]);

/* A JSON string; where the text is not UTF-8, bytes outside ASCII become '?'.  NULL if out of memory. */
json_t *control_text(const char *text);

/* Replies; take the references to `parameters` and `entries` (NULL: none).  NULL if out of memory. */
json_t *control_reply(json_t *parameters);
json_t *control_error_reply(enum control_error error, const char *message, json_t *entries);

/* A report's entries by place, as an error reply's `entries`.  NULL if out of memory. */
json_t *control_entries(const struct report *report);

/*
 * Judge a reply's envelope.  0: *parameters, borrowed.  1: the daemon's error, whose name without the interface is
 * *error and whose parameters are *parameters, borrowed.  -EPROTO, and `why`: neither.
 */
int control_reply_parse(const json_t *message, const char **error, const json_t **parameters,
			char why[static CONTROL_WHY_MAX]);

/* ---- client ---- */

/*
 * Connect, send `request` (from control_request(), borrowed), receive one reply, close; at most timeout_ms in all.
 * 0: *reply is a message for control_reply_parse(), owned by the caller; it may be an error of the daemon's.
 * Each failure is one sentence in the report:
 *   -ENOTCONN    no daemon listens there           -ETIMEDOUT  it does not answer
 *   -EACCES      the socket may not be opened      -EPROTO     what answers does not speak the protocol
 *   -ECONNRESET  it went away without an answer    -EMSGSIZE   the request is too long
 *   another -errno of the system
 */
int control_call(const char *path, const json_t *request, unsigned int timeout_ms, json_t **reply,
		 struct report *report);

#endif
