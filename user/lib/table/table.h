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
 * Fill owner[params->slots] with indexes into members[0..n).  previous: the table in force, or NULL; builders without
 * history ignore it.  0; -EINVAL (names not unique, weight above the maximum, size not allowed), -E2BIG (more members
 * of positive weight than slots; the report names the next sizes), -ENOMEM.  Outputs are unspecified on failure.
 * Warnings (shares off by more than 1 %, members that end with no slot) are added to the report.
 */
typedef int table_build_fn(const struct table_member *members, size_t n, const struct table_params *params,
			   const struct table *previous, uint16_t *owner, struct report *report);

struct table_algorithm {
	const char *name;
	table_build_fn *build;
	bool history;	     /* depends on the previous table */
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

bool table_is_prime(uint32_t n);
/* The nearest primes below and above n (0: none within 2 .. 1,048,573). */
void table_nearest_primes(uint32_t n, uint32_t *below, uint32_t *above);

#endif
