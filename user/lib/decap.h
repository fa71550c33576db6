/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The decapsulating program's lists: who may send tunnel packets, and for which inner destinations. */
#ifndef SHUNT_DECAP_H
#define SHUNT_DECAP_H

#include <stddef.h>
#include <shunt/types.h>

#define DECAP_PREFIXES_MAX 1024u /* in each list */

/*
 * Make a list (the descriptor decap_sources or decap_inner of struct maps) equal to prefixes[0..n): what is new is
 * added first, then what is gone is removed, so that what is in both is allowed all the time.  -ENOSPC above
 * DECAP_PREFIXES_MAX, nothing changed; -ENOMEM.
 */
int decap_set(int fd, const struct shunt_prefix *prefixes, size_t n);

/* Read a list, sorted.  *out is malloc'd. */
int decap_list(int fd, struct shunt_prefix **out, size_t *n);

#endif
