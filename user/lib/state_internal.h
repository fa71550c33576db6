/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the state's text and the file it is kept in. */
#ifndef SHUNT_STATE_INTERNAL_H
#define SHUNT_STATE_INTERNAL_H

#include "state.h"

/* The state as one line of JSON, without the newline.  malloc'd, holds the key: wipe it.  NULL: out of memory. */
char *state_encode(const struct state *state);

/* format: of the file, 1 .. STATE_FORMAT.  0 and *out; -EINVAL with the reason in why[], -ENOMEM. */
int state_decode(int format, const char *text, size_t length, struct state *out, char why[static 128]);

#endif
