/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* New programs and new capacities under traffic (docs/state-and-upgrade.md). */
#ifndef SHUNT_UPGRADE_H
#define SHUNT_UPGRADE_H

#include <stdbool.h>

#include "maps.h"
#include "report.h"
#include "snapshot.h"

/*
 * Replace the programs of all the instance's links by those of the installed objects, in place.  With a capacity other
 * than the one in force (want: 0 keeps it), first a set of maps of the new sizes is built beside, filled from the old
 * one, put in its place, and the programs are loaded onto that.  On failure the old maps and programs are in force.
 * *rebuilt: the daemon must open its maps again.  What was done is reported as information.  The caller holds
 * maps_lock().
 *
 * -ENOENT: the instance has no maps; -ENOSPC: what is in use does not fit into the capacities; reported.
 */
int upgrade_instance(const char *instance, const struct maps_capacities *want, bool *rebuilt, struct report *report);

/*
 * Bring an instance to rest that was left in the middle of an upgrade: links that still run on the maps that were
 * replaced get the program again, on those in force; the left-overs are removed.  Does nothing otherwise.
 */
int upgrade_repair(const char *instance, struct report *report);

/* Whether there is something for upgrade_repair() to do. */
bool upgrade_interrupted(const char *instance);

/*
 * Fill `to` (new, empty) with what `from` holds: backends, next hops, interfaces, tables, snapshot, counters.
 * -ENOSPC, reported, if something in use lies beyond a capacity of `to`.
 */
int upgrade_copy(const struct maps *from, const struct maps *to, struct report *report);

/*
 * Ranges of slots in transition and the entries in them.  -ENOSPC, reported, if the new flow table ends before a range
 * that is in use.  The second: entries alone, again at the last moment; live: packets use the new maps already.
 */
int upgrade_copy_flows(const struct maps *from, const struct maps *to, struct report *report);
int upgrade_update_flows(const struct maps *from, const struct maps *to, bool live, struct report *report);

/* The counters alone: again at the last moment. */
int upgrade_copy_counters(const struct maps *from, const struct maps *to, struct report *report);

/*
 * Pure: the snapshot value `from` (for the capacities `old`) as a value for other capacities, whose hash tables have
 * other numbers of buckets: every entry is inserted anew.  -ENOSPC, reported, if an entry names a pool or counter
 * beyond n_pools or new->services, or there are more than fit; -EUCLEAN if `from` is no snapshot.
 */
int upgrade_snapshot(const void *from, const struct snapshot_capacity *old, void *to,
		     const struct snapshot_capacity *new, uint32_t n_pools, struct report *report);

#endif
