/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * XXH64, seed 0, over the canonical bytes of docs/tables.md: slots (u32), number of owners (u32), the owners' names in
 * strcmp() order, each with its NUL, and for each slot the rank of its owner's name (u16, 0xffff: none); numbers little
 * endian.  Members without a slot do not appear.
 */
#include <endian.h>
#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* for the state on the stack: a digest cannot fail */
#include <xxhash.h>

#include "internal.h"

#define CHUNK 4096 /* slots at a time */

static uint16_t owner_of(const struct table *table, uint32_t slot)
{
	return table->owner[slot] < table->n_members ? table->owner[slot] : TABLE_NONE;
}

/* rank[member] for those that own a slot, TABLE_NONE for the rest.  Returns how many do. */
static uint32_t rank_owners(const struct table *table, const uint16_t *order, uint16_t *rank)
{
	uint32_t owners = 0;

	memset(rank, 0xff, table->n_members * sizeof(*rank));
	for (uint32_t slot = 0; slot < table->slots; slot++) {
		if (owner_of(table, slot) != TABLE_NONE)
			rank[table->owner[slot]] = 0;
	}
	for (size_t i = 0; i < table->n_members; i++) {
		if (rank[order[i]] != TABLE_NONE)
			rank[order[i]] = (uint16_t)owners++;
	}
	return owners;
}

uint64_t table_digest(const struct table *table)
{
	uint16_t order[TABLE_MEMBERS_MAX], rank[TABLE_MEMBERS_MAX], bytes[CHUNK];
	uint32_t head[2] = {htole32(table->slots)};
	XXH64_state_t state;

	table_sort(table->members, table->n_members, order);
	head[1] = htole32(rank_owners(table, order, rank));
	XXH64_reset(&state, 0);
	XXH64_update(&state, head, sizeof(head));
	for (size_t i = 0; i < table->n_members; i++) {
		const char *name = table->members[order[i]].name;

		if (rank[order[i]] != TABLE_NONE)
			XXH64_update(&state, name, strlen(name) + 1);
	}
	for (uint32_t slot = 0; slot < table->slots;) {
		size_t n = 0;

		for (; n < CHUNK && slot < table->slots; n++, slot++) {
			uint16_t owner = owner_of(table, slot);

			bytes[n] = htole16(owner == TABLE_NONE ? TABLE_NONE : rank[owner]);
		}
		XXH64_update(&state, bytes, n * sizeof(*bytes));
	}
	return XXH64_digest(&state);
}
