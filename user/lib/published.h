/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables in force, read back from the maps with what is known of their slots in transition. */
#ifndef SHUNT_PUBLISHED_H
#define SHUNT_PUBLISHED_H

#include "maps.h"
#include "transit.h"

struct published {
	struct shunt_table header;
	struct transit transit;
};

/* The caller frees out->transit.  -ENOENT if there is no table, -EUCLEAN for one that no engine writes, -ENOMEM. */
int published_read(const struct maps *maps, enum shunt_table_class class, uint32_t pool, struct published *out);

/* Slots that fit a table of the class. */
uint32_t published_capacity(enum shunt_table_class class);

/* Which inner maps hold the ranges of its tables. */
enum maps_inner published_ranges(enum shunt_table_class class);

#endif
