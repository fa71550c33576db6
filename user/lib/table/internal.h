/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the builders share. */
#ifndef SHUNT_TABLE_INTERNAL_H
#define SHUNT_TABLE_INTERNAL_H

#include "table.h"

/* Seeds of XXH64(name): one for each use, so that a name's numbers are independent of each other. */
enum table_hash_use { TABLE_HASH_OFFSET, TABLE_HASH_SKIP, TABLE_HASH_SCORE, TABLE_HASH_TOKEN };

uint64_t table_name_hash(const char *name, enum table_hash_use use);

/* order[rank] is the index of the member whose name has that rank in strcmp() order. Names may repeat. */
void table_sort(const struct table_member *members, size_t n, uint16_t *order);

/* table_sort() of members that are fit for a table: -EINVAL (a name twice or missing, a weight), -E2BIG (too many). */
int table_order(const struct table_member *members, size_t n, uint16_t *order, struct report *report);

/* -EINVAL, with the nearest primes, unless the size is allowed. */
int table_check_size(uint32_t slots, struct report *report);

table_build_fn table_build_maglev;

#endif
