/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Links, routes and rules of the probe, over rtnetlink; for probe.c alone. */
#ifndef SHUNT_PROBE_NET_H
#define SHUNT_PROBE_NET_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>

/* All return 0 or -errno.  -ENODEV: there is none.  alias: what whoever made it wrote there, "" for nothing. */
int probe_net_find(struct mnl_socket *socket, const char *name, uint32_t *ifindex, char *alias, unsigned int size);

/* Both ends, without ARP or link-local addresses, up.  -EEXIST. */
int probe_net_add_pair(struct mnl_socket *socket, const char *name, const char *peer, const char *alias);
int probe_net_delete(struct mnl_socket *socket, const char *name);

/* A default route of the family in the table, out of the interface. */
int probe_net_add_route(struct mnl_socket *socket, int family, uint32_t table, uint32_t ifindex);

/* The rule for locally made packets of these marks; to delete it: one such rule, -ENOENT if there is none. */
int probe_net_rule(struct mnl_socket *socket, bool add, int family, uint32_t mark, uint32_t mask, uint32_t table);

#endif
