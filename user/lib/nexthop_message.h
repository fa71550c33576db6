/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* rtnetlink messages that nexthop.c sends and reads.  Pure: buffers in, structures out. */
#ifndef SHUNT_NEXTHOP_MESSAGE_H
#define SHUNT_NEXTHOP_MESSAGE_H

#include <libmnl/libmnl.h>

#include "nexthop_table.h"

/* Each request fits in this; sequence numbers are the caller's. */
#define NEXTHOP_MESSAGE_MAX 128u

/* A request for `question` at `buffer`. */
struct nlmsghdr *nexthop_message_ask(void *buffer, enum nexthop_question question, uint32_t ifindex,
				     const union shunt_address *address);
struct nlmsghdr *nexthop_message_dump_links(void *buffer);

/* Read one message; -EINVAL if it is not well formed or (link, neighbour) about something else, outputs untouched. */
int nexthop_message_link(const struct nlmsghdr *message, struct nexthop_link *out);
int nexthop_message_route(const struct nlmsghdr *message, struct nexthop_route *out);
int nexthop_message_neighbour(const struct nlmsghdr *message, struct nexthop_neighbour *out);

/* Where a route event says that something changed: its destination, or everything (length 0). */
void nexthop_message_prefix(const struct nlmsghdr *message, struct shunt_prefix *out);
/* Whether a route event is of an announcement of ours, by which nothing is routed. */
bool nexthop_message_announces(const struct nlmsghdr *message);

#endif
