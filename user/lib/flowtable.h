/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is recorded in the flow table, read from the pinned maps: neither packets nor the daemon notice it.  Entries
 * change meanwhile, so that what is told is true of each entry by itself, not of all at one moment.
 */
#ifndef SHUNT_FLOWTABLE_H
#define SHUNT_FLOWTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "published.h"

struct flowtable {
	const struct maps *maps; /* borrowed */
	const struct shunt_flow_bucket *buckets;
	const struct shunt_backend *backends;
	uint32_t n_buckets, n_backends;
};

/* Indexed by enum shunt_flow_status. */
extern const char *const flowtable_states[4];

/* 0, or -errno with *out untouched. */
int flowtable_open(const struct maps *maps, struct flowtable *out);
void flowtable_close(struct flowtable *table);

struct flowtable_entry {
	uint32_t pool, slot, bucket, place;
	uint32_t owner, base; /* of the slot */
	uint64_t word;
	uint64_t idle_ms; /* since it was used last, as exact as its units are */
	bool stale;	  /* its backend is gone: the entry counts for nothing */
};

/*
 * A pool's table in force.  Where the daemon replaces it meanwhile it is read again, so that slots and ranges are of
 * one table.  The caller frees out->transit.  -ENOENT, -EAGAIN (replaced each time), -EUCLEAN, -ENOMEM.
 */
int flowtable_pool(const struct flowtable *table, enum shunt_table_class class, uint32_t pool, struct published *out);

typedef void flowtable_fn(const struct flowtable_entry *entry, void *arg);

/* Each entry of all pools in transition, by pool, slot, bucket and place.  0, or -errno. */
int flowtable_each(const struct flowtable *table, flowtable_fn *fn, void *arg);

/*
 * The entry of a flow in its slot's own word or range; false if there is none.  hash: of the 5-tuple.  It is told from
 * others by 25 bits: another flow of the slot is taken for it once in two million times.
 */
bool flowtable_find(const struct flowtable *table, const struct published *published, uint32_t slot, uint64_t hash,
		    bool udp, struct flowtable_entry *out);

#endif
