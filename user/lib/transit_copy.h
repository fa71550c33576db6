/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The copy of slots in transition in the state directory: after a reboot the maps are new, but the connections that
 * base holds are still there.  Entries of the flow table are not in it.  See docs/state-format.md.
 */
#ifndef SHUNT_TRANSIT_COPY_H
#define SHUNT_TRANSIT_COPY_H

#include "report.h"
#include "transit.h"

#define TRANSIT_COPY_FILE "transit"

struct transit_copy;

/* -ENOMEM.  Frees with transit_copy_free(), which takes NULL. */
int transit_copy_new(struct transit_copy **out);
void transit_copy_free(struct transit_copy *copy);

/* Add the tracked slots of a pool, as of now (CLOCK_MONOTONIC, milliseconds). */
int transit_copy_add(struct transit_copy *copy, uint32_t pool, const struct transit *transit, uint64_t now_ms);

/*
 * Base, learn and t0 of the pool's slots, if it is there with as many slots: tracked, without owner.  The time that has
 * passed since is by CLOCK_REALTIME.
 */
void transit_copy_take(const struct transit_copy *copy, uint32_t pool, uint64_t now_ms, struct transit *transit);

/* Replace, or without pools remove, the file in dir.  0, or -errno. */
int transit_copy_save(const struct transit_copy *copy, const char *dir);

/* -ENOENT: none; -EUCLEAN: damaged. */
int transit_copy_load(const char *dir, struct transit_copy **out);

#endif
