/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way of health checks down the data path: a veth pair whose egress has shunt_probe, a routing table that leads
 * into it, and a rule for each family that sends packets with the checks' marks, and no others, to that table.  All of
 * it is in the caller's network namespace, and named so that what a killed process left is found again.
 */
#ifndef SHUNT_PROBE_H
#define SHUNT_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "maps.h"
#include "report.h"

#define PROBE_NUMBERS 256u	      /* of instances on a host, in a mark */
#define PROBE_TABLE_FIRST 0x5e000000u /* of the routing tables, by number */

struct probe;

/*
 * Build it, taking away first what an earlier process of the instance left.  maps: of the instance, as long as the
 * probe lives.  0 and *out; -errno, reported, and nothing stays.
 */
int probe_open(const char *instance, const struct maps *maps, struct probe **out, struct report *report);

/* Take everything away. */
void probe_close(struct probe *probe);

/* Whether this host has the family at all. */
bool probe_has(const struct probe *probe, bool v4);

/* For SO_MARK: the socket's packets go to this backend. */
uint32_t probe_mark(const struct probe *probe, uint32_t backend);

/* The first packet of each check of the backend is padded to this many bytes, from its IP header on; 0: is not. */
void probe_set_size(struct probe *probe, uint32_t backend, uint16_t bytes);

#endif
