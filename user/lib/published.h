/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tables in force, read back from the maps with what is known of their slots in transition. */
#ifndef SHUNT_PUBLISHED_H
#define SHUNT_PUBLISHED_H

#include "maps.h"
#include "transit.h"

struct published {
	struct shunt_table header; /* ranges: 0 for SHUNT_TABLE_DENSE, which is about the value's form alone */
	struct transit transit;
};

/* The caller frees out->transit.  -ENOENT if there is no table, -EUCLEAN for one that no engine writes, -ENOMEM. */
int published_read(const struct maps *maps, enum shunt_table_class class, uint32_t pool, struct published *out);

/*
 * Of a table's value whose header and owner[] are written: bring it into the dense form, if no slot is tracked and its
 * owners, SHUNT_BACKEND_NONE among them, are at most SHUNT_TABLE_IDS.  -ENOMEM; value is then as it was.
 */
int published_densify(void *value, enum shunt_table_class class);

/* Slots that fit a table of the class. */
uint32_t published_capacity(enum shunt_table_class class);

/* Which inner maps hold the ranges of its tables. */
enum maps_inner published_ranges(enum shunt_table_class class);

#endif
