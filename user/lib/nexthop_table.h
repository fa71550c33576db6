/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is known of routes, links and neighbours, and what follows for each backend address.  Pure: it is told what
 * netlink says and tells what to ask netlink; no system call, no clock.  nexthop.h is what programs use.
 *
 * Addresses behind one gateway share one neighbour, which is asked for once.
 */
#ifndef SHUNT_NEXTHOP_TABLE_H
#define SHUNT_NEXTHOP_TABLE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"

/* A network interface.  mac is meaningful where `ethernet`. */
struct nexthop_link {
	uint32_t ifindex, mtu;
	bool up, ethernet;
	uint8_t mac[6];
	char name[IF_NAMESIZE];
};

/* The kernel's answer for one destination. */
struct nexthop_route {
	int error;	       /* 0, or -errno of the look-up */
	bool local;	       /* an address of this host, or not unicast */
	uint32_t ifindex, mtu; /* mtu 0: the route has none */
	bool has_gateway;
	union shunt_address gateway, source; /* source: unspecified if the kernel named none */
};

/* A neighbour entry, or that there is none (any more).  state: NUD_*, of which NUD_NONE is 0. */
struct nexthop_neighbour {
	uint32_t ifindex;
	union shunt_address address;
	uint16_t state;
	bool exists, managed, has_mac;
	uint8_t mac[6];
};

struct nexthop_table;

int nexthop_table_new(struct nexthop_table **out);
void nexthop_table_free(struct nexthop_table *table);

/* The addresses to follow; those that were followed already keep what is known of them.  0 or -ENOMEM. */
int nexthop_table_watch(struct nexthop_table *table, const union shunt_address *addresses, size_t count);

/* What netlink says.  Unknown neighbours and links that change nothing are ignored. */
int nexthop_table_link(struct nexthop_table *table, const struct nexthop_link *link);
void nexthop_table_link_gone(struct nexthop_table *table, uint32_t ifindex);
int nexthop_table_route(struct nexthop_table *table, const union shunt_address *address,
			const struct nexthop_route *route);
void nexthop_table_neighbour(struct nexthop_table *table, const struct nexthop_neighbour *neighbour);

/* Something about routes to addresses below `prefix` changed (length 0 of either family: about any): look up again. */
void nexthop_table_routes_changed(struct nexthop_table *table, const struct shunt_prefix *prefix);

/*
 * Events were lost: look everything up again.  What is known stays until other answers come.  Links are to be told
 * anew, and nexthop_table_links_done() says that this is all of them.
 */
void nexthop_table_reset(struct nexthop_table *table);
void nexthop_table_links_done(struct nexthop_table *table);

/*
 * The next question, taken off the list: the route to *address; a neighbour's present entry (GET); ask the kernel to
 * resolve a neighbour and keep it resolved, where it has no entry (CREATE) or one that is not permanent (KEEP: the
 * kernel would make it an ordinary one, so a GET comes just before); let go of one that nobody needs (RELEASE).  At
 * most `keep_limit` are given out that make the kernel resolve (and counted down).  now: milliseconds, any monotonic
 * origin.
 */
enum nexthop_question {
	NEXTHOP_NOTHING,
	NEXTHOP_ROUTE,
	NEXTHOP_GET,
	NEXTHOP_CREATE,
	NEXTHOP_KEEP,
	NEXTHOP_RELEASE,
};
enum nexthop_question nexthop_table_question(struct nexthop_table *table, uint64_t now, unsigned int *keep_limit,
					     uint32_t *ifindex, union shunt_address *address);

/* The kernel refused CREATE or KEEP; -EEXIST: meanwhile there is an entry. */
void nexthop_table_refused(struct nexthop_table *table, uint32_t ifindex, const union shunt_address *address,
			   int error);

/* When nexthop_table_question() has something again: milliseconds as `now`, UINT64_MAX for never. */
uint64_t nexthop_table_due(const struct nexthop_table *table);

/* The next address whose way changed, taken off the list.  False: none. */
bool nexthop_table_changed(struct nexthop_table *table, union shunt_address *address, struct engine_nexthop *nexthop);

/* Addresses of which neither the way is known nor why there is none. */
size_t nexthop_table_pending(const struct nexthop_table *table);

#endif
