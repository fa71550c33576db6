/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the state's text and the file it is kept in. */
#ifndef SHUNT_STATE_INTERNAL_H
#define SHUNT_STATE_INTERNAL_H

#include "state.h"
#include "text.h"

#define STATE_DRAINING "draining"
#define STATE_LEAVING "leaving"
#define STATE_MAINTENANCE "maintenance"
#define STATE_RAMP "slow-start"
/* Beside the model, in which a key and a key file exclude each other. */
#define STATE_KEY_FILE "hash-key-file"

/* The state as one line of JSON, added to a text, which then holds the key.  0 or -ENOMEM. */
int state_encode(const struct state *state, struct text *out);

/* format: of the file, 1 .. STATE_FORMAT.  0 and *out; -EINVAL with the reason in why[], -ENOMEM. */
int state_decode(int format, const char *text, size_t length, struct state *out, char why[static 128]);

#endif
