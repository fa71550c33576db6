/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The control socket's server: many clients, one event loop, nothing that blocks.  What a client may hold is bounded: a
 * request, a reply, and time.
 */
#ifndef SHUNTD_SERVER_H
#define SHUNTD_SERVER_H

#include "daemon.h"

int server_open(struct daemon *daemon, struct server **out, struct report *report);
void server_close(struct server *server); /* NULL is allowed */

#endif
