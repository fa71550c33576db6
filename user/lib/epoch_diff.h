/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between two epochs of a pool, from what the history has of them. */
#ifndef SHUNT_EPOCH_DIFF_H
#define SHUNT_EPOCH_DIFF_H

#include <jansson.h>

/*
 * {pool, from, to, slots, moved, minimum, rows: [{backend, weight_from, weight_to, slots_from, slots_to}]}.  moved and
 * minimum are null where the tables have other sizes; moved also where a table cannot be computed again from its
 * members, because its algorithm builds on the table before.  Null stands for a backend that is not there.  New
 * reference; NULL if out of memory.
 */
json_t *epoch_diff(const json_t *from, const json_t *to);

#endif
