/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "internal.h"

struct pass {
	const struct table *before, *after;
	uint16_t *after_of; /* member of `before` -> of `after`, or TABLE_NONE */
	uint32_t *had;	    /* slots of each member of `before` */
	uint32_t *has;	    /* slots of each member of `after` */
	uint16_t *rank;	    /* of names: n of `before`, then n of `after` */
	uint32_t *moves;    /* rank of giver << 16 | rank of taker; TABLE_NONE for nobody sorts last */
};

static uint16_t owner_of(const struct table *table, uint32_t slot)
{
	return table->owner[slot] < table->n_members ? table->owner[slot] : TABLE_NONE;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static uint32_t collect(struct pass *p)
{
	uint32_t moved = 0;

	for (uint32_t slot = 0; slot < p->before->slots; slot++) {
		uint16_t from = owner_of(p->before, slot), to = owner_of(p->after, slot);
		uint16_t same = from == TABLE_NONE ? TABLE_NONE : p->after_of[from];

		if (from != TABLE_NONE)
			p->had[from]++;
		if (to != TABLE_NONE)
			p->has[to]++;
		if (to == same && (from == TABLE_NONE) == (to == TABLE_NONE))
			continue;
		p->moves[moved++] = (uint32_t)(from == TABLE_NONE ? from : p->rank[from]) << 16 |
				    (to == TABLE_NONE ? to : p->rank[p->before->n_members + to]);
	}
	qsort(p->moves, moved, sizeof(*p->moves), by_number);
	return moved;
}

/* What both tables can have in common with these shares; slots without an owner are a share as well. */
static uint32_t minimum(const struct pass *p)
{
	uint32_t slots = p->before->slots, kept = 0, had_none = slots, has_none = slots;

	for (size_t i = 0; i < p->before->n_members; i++) {
		uint32_t has = p->after_of[i] == TABLE_NONE ? 0 : p->has[p->after_of[i]];

		kept += p->had[i] < has ? p->had[i] : has;
		had_none -= p->had[i];
	}
	for (size_t i = 0; i < p->after->n_members; i++)
		has_none -= p->has[i];
	return slots - kept - (had_none < has_none ? had_none : has_none);
}

static int summarize(const struct pass *p, const uint16_t *order, struct table_diff *out)
{
	const uint16_t *order_after = order + p->before->n_members;
	struct table_move *moves = NULL;
	size_t n = 0, at = 0;

	for (uint32_t i = 0; i < out->moved; i++)
		n += !i || p->moves[i] != p->moves[i - 1];
	moves = reallocarray(NULL, n ? n : 1, sizeof(*moves));
	if (!moves)
		return -ENOMEM;
	for (uint32_t i = 0; i < out->moved; i++) {
		uint16_t from = (uint16_t)(p->moves[i] >> 16), to = (uint16_t)p->moves[i];

		if (i && p->moves[i] == p->moves[i - 1]) {
			moves[at - 1].slots++;
			continue;
		}
		moves[at++] = (struct table_move){.from = from == TABLE_NONE ? from : order[from],
						  .to = to == TABLE_NONE ? to : order_after[to],
						  .slots = 1};
	}
	out->moves = moves;
	out->n_moves = n;
	return 0;
}

static int compare(struct pass *p, uint16_t *order, struct table_diff *out)
{
	size_t n = p->before->n_members;
	struct table_diff diff = {.slots = p->before->slots};
	int err = table_match(p->before->members, n, p->after->members, p->after->n_members, p->after_of);

	if (err)
		return err;
	table_sort(p->before->members, n, order);
	table_sort(p->after->members, p->after->n_members, order + n);
	for (size_t i = 0; i < n; i++)
		p->rank[order[i]] = (uint16_t)i;
	for (size_t i = 0; i < p->after->n_members; i++)
		p->rank[n + order[n + i]] = (uint16_t)i;
	diff.moved = collect(p);
	diff.minimum = minimum(p);
	diff.excess = diff.moved - diff.minimum;
	err = summarize(p, order, &diff);
	if (!err)
		*out = diff;
	return err;
}

int table_diff(const struct table *before, const struct table *after, struct table_diff *out)
{
	size_t n = before->n_members + after->n_members;
	struct pass p = {.before = before, .after = after};
	uint16_t *order;
	int err = -ENOMEM;

	if (before->slots != after->slots)
		return -EINVAL;
	if (before->n_members > TABLE_MEMBERS_MAX || after->n_members > TABLE_MEMBERS_MAX)
		return -E2BIG;
	order = table_alloc(n, sizeof(*order));
	p.rank = table_alloc(n, sizeof(*p.rank));
	p.after_of = table_alloc(before->n_members, sizeof(*p.after_of));
	p.had = table_zalloc(before->n_members, sizeof(*p.had));
	p.has = table_zalloc(after->n_members, sizeof(*p.has));
	p.moves = table_alloc(before->slots, sizeof(*p.moves));
	if (order && p.rank && p.after_of && p.had && p.has && p.moves)
		err = compare(&p, order, out);
	table_free(p.moves);
	table_free(p.has);
	table_free(p.had);
	table_free(p.after_of);
	table_free(p.rank);
	table_free(order);
	return err;
}

void table_diff_free(struct table_diff *diff)
{
	free(diff->moves);
	*diff = (struct table_diff){};
}
