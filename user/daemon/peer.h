/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is at the other end of a control connection, and whether they may change things. */
#ifndef SHUNTD_PEER_H
#define SHUNTD_PEER_H

#include "methods.h"

/*
 * Root, the daemon's own user, and members of `group` (which need not exist) are admins.  The groups are those of the
 * process that connected.  -errno where the socket does not tell.
 */
int peer_of(int fd, const char *group, struct peer *out);

#endif
