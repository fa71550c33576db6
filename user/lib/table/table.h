/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables: pure functions from a membership to the owner of each slot.  No system call, no floating point.
 * Backends are ranked by name, so the order of input never matters; identity is the name.
 */
#ifndef SHUNT_TABLE_H
#define SHUNT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report.h"

#define TABLE_NONE 0xffffu /* a slot without an owner */
#define TABLE_SLOTS_MIN 2u
#define TABLE_SLOTS_MAX 1048573u
#define TABLE_MEMBERS_MAX 10000u /* in one pool */
#define TABLE_WEIGHT_MAX 65535u
#define TABLE_VNODES_DEFAULT 200u
#define TABLE_TOKENS_MAX (1u << 26) /* of a ring: sum of weights x vnodes */

struct table_member {
	const char *name;
	uint32_t weight;  /* 0: no slot */
	const char *zone; /* for preference lists; NULL: none */
};

struct table_params {
	uint32_t slots;		  /* prime, 2 .. 1,048,573 */
	uint32_t balance_percent; /* rendezvous, ring: cap of a share in % of its quota, 0: none (balance: 1.05 is 105)
				   */
	uint32_t vnodes;	  /* ring: virtual nodes per unit of weight, 0: the default */
};

/* A table beside the members it speaks of: owner[slot] is an index into members[], or TABLE_NONE. */
struct table {
	const struct table_member *members;
	size_t n_members;
	uint32_t slots;
	const uint16_t *owner;
};

/*
 * Fill owner[params->slots] with indexes into members[0..n).  previous: the table in force, of any size and with at
 * most TABLE_MEMBERS_MAX members, or NULL; builders without history ignore it.  0; -EINVAL (names not unique, weight
 * above the maximum, size not allowed), -E2BIG (more members than the maximum; maglev, minimal, and the others with a
 * balance: more members of positive weight than slots, the report names the next sizes; ring: more than
 * TABLE_TOKENS_MAX tokens), -ENOMEM.  Outputs are unspecified on failure. Warnings (shares off by more than 1 %,
 * members that end with no slot) are added to the report.
 */
typedef int table_build_fn(const struct table_member *members, size_t n, const struct table_params *params,
			   const struct table *previous, uint16_t *owner, struct report *report);

struct table_algorithm {
	const char *name;
	table_build_fn *build;
	bool history;	     /* depends on the previous table */
	bool exact;	     /* gives table_quotas(), to the slot */
	bool simulator_only; /* not allowed in a document */
};

extern const struct table_algorithm table_algorithms[];
extern const size_t table_n_algorithms;

/* By name, or NULL. */
const struct table_algorithm *table_algorithm(const char *name);

/*
 * Exact quotas by largest remainder: quota[i] slots for members[i]; weight 0 none, each positive weight at least one.
 * The order of members does not matter.  Errors as for a builder.
 */
int table_quotas(const struct table_member *members, size_t n, uint32_t slots, uint32_t *quota, struct report *report);

/*
 * xxh64 over the table's canonical bytes (docs/tables.md): depends on names and owners alone, so that it can be
 * compared between hosts.  At most TABLE_MEMBERS_MAX members; an owner that is none of them counts as TABLE_NONE.
 */
uint64_t table_digest(const struct table *table);

/* Slots that went from one owner to another: indexes into the members of each table, or TABLE_NONE. */
struct table_move {
	uint16_t from, to;
	uint32_t slots;
};

struct table_diff {
	uint32_t slots;		  /* of each table */
	uint32_t moved;		  /* slots whose owner's name differs */
	uint32_t minimum;	  /* that must differ between any two tables with the shares of these */
	uint32_t excess;	  /* moved - minimum */
	struct table_move *moves; /* each pair once, in order of names, TABLE_NONE last */
	size_t n_moves;
};

/* Names are distinct in each.  -EINVAL: sizes differ.  -E2BIG, -ENOMEM.  table_diff_free() what it fills. */
int table_diff(const struct table *before, const struct table *after, struct table_diff *out);
void table_diff_free(struct table_diff *diff);

/*
 * Preference lists of a table's slots.  The table must stay as it is until close, which takes NULL too.
 * -EINVAL, -E2BIG as for a builder, -ENOMEM.
 */
struct table_preference;
int table_preference_open(const struct table *table, struct table_preference **out);
void table_preference_close(struct table_preference *preference);

struct table_replicas {
	size_t count;	       /* members in the list */
	size_t zones;	       /* distinct zones among them; a member without a zone is one of its own */
	bool under_replicated; /* zones < k: not enough backends, or not enough zones */
};

/*
 * The first k distinct members for a slot, as indexes into out[0..count): its owner, then by weighted rendezvous; one
 * of each zone before a second one of any.  Members of weight 0 are in no list.  Not for two threads at once.
 */
struct table_replicas table_preference_list(struct table_preference *preference, uint32_t slot, size_t k,
					    uint16_t *out);

/* The most bytes that this thread's builders had allocated at one time since the last call. */
size_t table_memory_peak(void);

bool table_is_prime(uint32_t n);
/* The nearest primes below and above n (0: none within 2 .. 1,048,573). */
void table_nearest_primes(uint32_t n, uint32_t *below, uint32_t *above);

#endif
