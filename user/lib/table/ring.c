/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A ring of 2^64 points (ketama-like).  Slot s stands at s x 2^64 / slots, rounded up; a member of weight w has
 * w x vnodes tokens; a slot belongs to the owner of the first token at or after it, of equal tokens to the first in
 * order of names.  Tokens are not kept, only the first of each arc between two slots: memory does not grow with
 * weights.
 *
 * With a balance, slots are given out in order and go on to the next kept token whose owner is below its cap; where
 * all of those are at their caps, to the first such member in order of names.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

struct ring {
	const struct table_member *members;
	size_t n;
	uint32_t slots;
	uint16_t *order;
	uint16_t *first; /* member whose token comes first in the arc from a slot to the next, or TABLE_NONE */
	uint32_t *cap;	 /* slots that each member may still take, or NULL */
	uint32_t *next;	 /* with caps: an arc from which the next one of use is reached, itself if it may be of use */
};

/* Of the sequence that SplitMix64 makes from the name's hash. */
static uint64_t token(uint64_t hash, uint64_t index)
{
	return table_mix(hash + index * 0x9e3779b97f4a7c15ull);
}

static int place_tokens(struct ring *ring, uint32_t vnodes)
{
	uint64_t *least = table_alloc(ring->slots, sizeof(*least));

	if (!least)
		return -ENOMEM;
	memset(ring->first, 0xff, ring->slots * sizeof(*ring->first));
	for (size_t rank = 0; rank < ring->n; rank++) {
		const struct table_member *m = &ring->members[ring->order[rank]];
		uint64_t hash = table_name_hash(m->name, TABLE_HASH_TOKEN), tokens = (uint64_t)m->weight * vnodes;

		for (uint64_t i = 0; i < tokens; i++) {
			uint64_t point = token(hash, i);
			uint32_t arc = (uint32_t)((unsigned __int128)point * ring->slots >> 64);

			if (ring->first[arc] == TABLE_NONE || point < least[arc]) {
				least[arc] = point;
				ring->first[arc] = ring->order[rank];
			}
		}
	}
	table_free(least);
	return 0;
}

static void to_next_token(const struct ring *ring, uint16_t *owner)
{
	uint16_t ahead = TABLE_NONE;

	/* Twice round, backwards: the last arcs may find their token past the end. */
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t slot = ring->slots; slot--;) {
			if (ring->first[slot] != TABLE_NONE)
				ahead = ring->first[slot];
			owner[slot] = ahead;
		}
	}
}

/* The first arc from this one on, without going past the end, whose member takes slots; ring->slots if there is none.
 */
static uint32_t find(struct ring *ring, uint32_t arc)
{
	uint32_t found = arc;

	while (found < ring->slots) {
		if (ring->next[found] != found)
			found = ring->next[found];
		else if (ring->first[found] == TABLE_NONE || !ring->cap[ring->first[found]])
			found = ring->next[found] = found + 1;
		else
			break;
	}
	/* Shorten the way for the next one. */
	while (arc < found) {
		uint32_t after = ring->next[arc];

		ring->next[arc] = found;
		arc = after;
	}
	return found;
}

static int to_next_below_cap(struct ring *ring, uint16_t *owner)
{
	size_t rank = 0;

	ring->next = table_alloc(ring->slots, sizeof(*ring->next));
	if (!ring->next)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < ring->slots; slot++)
		ring->next[slot] = slot;
	for (uint32_t slot = 0; slot < ring->slots; slot++) {
		uint32_t arc = find(ring, slot);

		if (arc == ring->slots)
			arc = find(ring, 0);
		if (arc < ring->slots) {
			owner[slot] = ring->first[arc];
		} else {
			while (!ring->cap[ring->order[rank]])
				rank++;
			owner[slot] = ring->order[rank];
		}
		ring->cap[owner[slot]]--;
	}
	return 0;
}

static int check_tokens(const struct ring *ring, uint32_t vnodes, uint64_t *sum, struct report *report)
{
	*sum = 0;
	for (size_t i = 0; i < ring->n; i++)
		*sum += ring->members[i].weight;
	if (*sum * vnodes <= TABLE_TOKENS_MAX)
		return 0;
	return report_error(
		report, -E2BIG,
		"a ring of %llu virtual nodes (%u for each unit of weight, %llu units): the limit is %u, use "
		"smaller weights or fewer virtual nodes",
		(unsigned long long)*sum * vnodes, vnodes, (unsigned long long)*sum, TABLE_TOKENS_MAX);
}

int table_build_ring(const struct table_member *members, size_t n, const struct table_params *params,
		     const struct table *previous __attribute__((unused)), uint16_t *owner, struct report *report)
{
	struct ring ring = {.members = members, .n = n, .slots = params->slots};
	uint32_t vnodes = params->vnodes ? params->vnodes : TABLE_VNODES_DEFAULT;
	int err = table_check_size(params->slots, report);
	uint64_t sum;

	if (err)
		return err;
	ring.order = table_alloc(n, sizeof(*ring.order));
	ring.first = table_alloc(params->slots, sizeof(*ring.first));
	err = ring.order && ring.first ? table_order(members, n, ring.order, report) : -ENOMEM;
	if (!err)
		err = check_tokens(&ring, vnodes, &sum, report);
	if (!err)
		err = place_tokens(&ring, vnodes);
	if (!err)
		err = table_caps(members, n, params, &ring.cap, report);
	if (err)
		goto out;
	if (ring.cap && sum)
		err = to_next_below_cap(&ring, owner);
	else
		to_next_token(&ring, owner);
	if (!err)
		table_warn_empty(members, n, owner, params->slots, report);
out:
	table_free(ring.next);
	table_free(ring.cap);
	table_free(ring.first);
	table_free(ring.order);
	return err;
}
