/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds and follows the way to backend addresses over netlink, in the caller's network namespace: the kernel's route
 * for each, the neighbour entry of its gateway (or of itself), the egress interface.  The kernel is asked to resolve
 * those neighbours and to keep them resolved (NTF_EXT_MANAGED, Linux 5.16; before that they are asked for again and
 * again).  Nothing blocks: the owner waits for nexthop_fd() and nexthop_wait() in its event loop.
 */
#ifndef SHUNT_NEXTHOP_H
#define SHUNT_NEXTHOP_H

#include "engine.h"

struct nexthop;

int nexthop_open(struct nexthop **out, struct report *report);
void nexthop_close(struct nexthop *nexthop);

/* Follow these addresses, and no others.  0 or -ENOMEM. */
int nexthop_watch(struct nexthop *nexthop, const union shunt_address *addresses, size_t count);

/* Readable when the kernel has news: call nexthop_receive().  0, or -errno where netlink itself fails. */
int nexthop_fd(const struct nexthop *nexthop);
int nexthop_receive(struct nexthop *nexthop);

/* Milliseconds after which nexthop_work() has something to do, -1 for not before news: to be asked after each call. */
int nexthop_wait(const struct nexthop *nexthop);
int nexthop_work(struct nexthop *nexthop);

/* The next address whose way changed since it was last told.  False: none. */
bool nexthop_changed(struct nexthop *nexthop, union shunt_address *address, struct engine_nexthop *out);

/* Addresses that are still being looked up or resolved for the first time. */
size_t nexthop_pending(const struct nexthop *nexthop);

#endif
