/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Announcements as routes: for each service address a blackhole route to it alone, in a table that no rule names, so
 * that no packet is looked up there; a routing daemon reads the table and tells the network.  Only routes with
 * RTNETLINK_ANNOUNCE as their protocol are ours: others are neither listed nor touched.
 */
#ifndef SHUNT_ANNOUNCE_ROUTES_H
#define SHUNT_ANNOUNCE_ROUTES_H

#include <libmnl/libmnl.h>
#include <shunt/types.h>

/* A socket for the functions below: 0, or -errno.  The caller closes it with mnl_socket_close(). */
int announce_routes_open(struct mnl_socket **out);

/* Ours in the table, sorted, of both families.  *out is malloc'd, NULL for none.  0 or -errno. */
int announce_routes_list(struct mnl_socket *socket, uint32_t table, struct shunt_prefix **out, size_t *n);

/* The order of the list. */
int announce_routes_compare(const struct shunt_prefix *a, const struct shunt_prefix *b);

/* -EEXIST: there is one to the address already, ours or another's. */
int announce_routes_add(struct mnl_socket *socket, uint32_t table, const union shunt_address *address);

/* That it is gone already is no error. */
int announce_routes_del(struct mnl_socket *socket, uint32_t table, const struct shunt_prefix *prefix);

/*
 * Only one process of a network namespace may have a table: a descriptor that holds it until it is closed, by whatever
 * death; -EADDRINUSE: another has it.
 */
int announce_routes_lock(uint32_t table);

#endif
