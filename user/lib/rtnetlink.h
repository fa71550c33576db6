/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests over rtnetlink, one at a time. */
#ifndef SHUNT_RTNETLINK_H
#define SHUNT_RTNETLINK_H

#include <libmnl/libmnl.h>

/* rtm_protocol of what is ours, nobody else's in iproute2's list: of checks' routes and rules, and of announcements. */
#define RTNETLINK_PROBE 213
#define RTNETLINK_ANNOUNCE 214

/* 0, or -errno; the caller closes it with mnl_socket_close(). */
int rtnetlink_open(struct mnl_socket **out);

/*
 * Send, and read until the kernel has acknowledged, or all of a dump has come; messages of the reply go to `fn`, which
 * may be NULL.  0, or what the kernel says, -errno: -EINTR for a dump of what changed meanwhile.
 */
int rtnetlink_ask(struct mnl_socket *socket, struct nlmsghdr *message, mnl_cb_t fn, void *arg);

#endif
