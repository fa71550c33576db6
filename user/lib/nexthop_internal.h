/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of nexthop_table.h share; not for others. */
#ifndef SHUNT_NEXTHOP_INTERNAL_H
#define SHUNT_NEXTHOP_INTERNAL_H

#include <linux/neighbour.h>
#include <search.h>
#include <sys/queue.h>

#include "nexthop_table.h"

#define NUD_USABLE (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP)

struct target;

struct neighbour {
	struct nexthop_neighbour entry; /* first: the tree's key */
	LIST_HEAD(target_set, target) targets;
	TAILQ_ENTRY(neighbour) asking;
	struct ask_list *list;	    /* that it is on, or NULL */
	enum nexthop_question next; /* that it is on the list for */
	bool kept;		    /* we asked for it */
	bool allowed;		    /* its ration is spent: KEEP at once, if the answer to GET does not forbid it */
	bool failed;		    /* it did not answer, and has not since: the kernel tries again and again */
	int refused;
	uint32_t retry; /* milliseconds */
	uint64_t due;	/* when it may be asked to be kept; 0: at once */
};

struct target {
	union shunt_address address; /* first: the tree's key */
	LIST_ENTRY(target) sibling;
	TAILQ_ENTRY(target) querying, changing;
	struct neighbour *neighbour;
	struct nexthop_route route;
	struct engine_nexthop told;
	bool answered, queried, changed, wanted, pending, was_told;
};

TAILQ_HEAD(ask_list, neighbour);

struct link {
	struct nexthop_link link; /* first: the tree's key */
	bool stale;
};

struct nexthop_table {
	void *targets, *neighbours, *links; /* tsearch() trees */
	TAILQ_HEAD(target_list, target) query, change;
	struct ask_list ask, keep, wait; /* to be asked; to be kept, and that is due; to be kept later */
	uint64_t now;
	size_t pending;
};

/* What a tsearch() tree holds for `key`, or NULL. */
static inline void *nexthop_find(void *const *root, const void *key, int (*compare)(const void *, const void *))
{
	void **node = tfind(key, root, compare);

	return node ? *node : NULL;
}

/* ---- nexthop_describe.c: what follows for an address ---- */

/* What it depends on changed: to be told anew, if that changes the way. */
void nexthop_touch(struct nexthop_table *table, struct target *target);
void nexthop_set_pending(struct nexthop_table *table, struct target *target, bool pending);

/* ---- nexthop_table.c ---- */

const struct nexthop_link *nexthop_find_link(const struct nexthop_table *table, uint32_t ifindex);

/* ---- nexthop_neighbours.c ---- */

/* The neighbour, made if there is none yet, for a target to join.  0 or -ENOMEM. */
int nexthop_get_neighbour(struct nexthop_table *table, uint32_t ifindex, const union shunt_address *address,
			  struct neighbour **out);
/* The target leaves its neighbour, if it has one; one that no target needs is let go of. */
void nexthop_leave_neighbour(struct nexthop_table *table, struct target *target);
/* Ask for each present entry again. */
void nexthop_ask_all(struct nexthop_table *table);

#endif
