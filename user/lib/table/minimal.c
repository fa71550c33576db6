/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The table in force with as few slots moved as the quotas allow: those whose owner is gone (orphans) and what owners
 * have beyond their quota (surplus).  Which of an owner's slots go, and to whom of those in deficit, is free; it is
 * chosen so that the table leans towards the canonical one, the maglev table of the membership:
 *
 *   1. orphans go to their canonical owner, where that is in deficit;
 *   2. so do slots of owners with a surplus that disagree with the canonical table;
 *   3. owners with a surplus give up slots that disagree, then slots that agree;
 *   4. what is left over goes to the backends in deficit, in order of names.
 *
 * Each step goes through the slots in order, so the result is a function of memberships and previous table.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

struct change {
	const struct table_member *members;
	size_t n;
	uint32_t slots;
	struct table_plan plan;
	uint16_t *canonical;
	uint16_t *owner;
	int32_t *lack; /* quota less slots owned: a deficit if positive, a surplus if negative */
};

/* The previous table in terms of the new members; TABLE_NONE where there is no owner, or none that may have slots. */
static int carry_over(struct change *c, const struct table *previous)
{
	uint16_t *now = table_alloc(previous->n_members, sizeof(*now));
	int err = now ? table_match(previous->members, previous->n_members, c->members, c->n, now) : -ENOMEM;

	for (size_t i = 0; !err && i < c->n; i++)
		c->lack[i] = (int32_t)c->plan.quota[i];
	for (uint32_t slot = 0; !err && slot < c->slots; slot++) {
		uint16_t owner = previous->owner[slot];

		owner = owner < previous->n_members ? now[owner] : TABLE_NONE;
		if (owner != TABLE_NONE && !c->plan.quota[owner])
			owner = TABLE_NONE;
		c->owner[slot] = owner;
		if (owner != TABLE_NONE)
			c->lack[owner]--;
	}
	table_free(now);
	return err;
}

static void give(struct change *c, uint32_t slot, uint16_t to)
{
	if (c->owner[slot] != TABLE_NONE)
		c->lack[c->owner[slot]]++;
	c->owner[slot] = to;
	if (to != TABLE_NONE)
		c->lack[to]--;
}

static void orphans_to_canonical(struct change *c)
{
	for (uint32_t slot = 0; slot < c->slots; slot++) {
		if (c->owner[slot] == TABLE_NONE && c->lack[c->canonical[slot]] > 0)
			give(c, slot, c->canonical[slot]);
	}
}

static void surplus_to_canonical(struct change *c)
{
	for (uint32_t slot = 0; slot < c->slots; slot++) {
		uint16_t owner = c->owner[slot];

		if (owner != TABLE_NONE && c->lack[owner] < 0 && c->lack[c->canonical[slot]] > 0)
			give(c, slot, c->canonical[slot]);
	}
}

static void release_surplus(struct change *c, bool agreeing)
{
	for (uint32_t slot = 0; slot < c->slots; slot++) {
		uint16_t owner = c->owner[slot];

		if (owner != TABLE_NONE && c->lack[owner] < 0 && (owner == c->canonical[slot]) == agreeing)
			give(c, slot, TABLE_NONE);
	}
}

static void rest_by_name(struct change *c)
{
	size_t rank = 0;

	for (uint32_t slot = 0; slot < c->slots; slot++) {
		if (c->owner[slot] != TABLE_NONE)
			continue;
		while (c->lack[c->plan.order[rank]] <= 0)
			rank++;
		give(c, slot, c->plan.order[rank]);
	}
}

static int build(struct change *c, const struct table *previous)
{
	int err;

	if (!previous || previous->slots != c->slots || !c->plan.positive)
		return table_fill_maglev(c->members, c->n, &c->plan, c->slots, c->owner);
	c->canonical = table_alloc(c->slots, sizeof(*c->canonical));
	c->lack = table_alloc(c->n, sizeof(*c->lack));
	err = c->canonical && c->lack ? table_fill_maglev(c->members, c->n, &c->plan, c->slots, c->canonical) : -ENOMEM;
	if (!err)
		err = carry_over(c, previous);
	if (err)
		return err;
	orphans_to_canonical(c);
	surplus_to_canonical(c);
	release_surplus(c, false);
	release_surplus(c, true);
	rest_by_name(c);
	return 0;
}

int table_build_minimal(const struct table_member *members, size_t n, const struct table_params *params,
			const struct table *previous, uint16_t *owner, struct report *report)
{
	struct change change = {.members = members, .n = n, .slots = params->slots, .owner = owner};
	int err = table_plan(members, n, params->slots, &change.plan, report);

	if (err)
		return err;
	err = build(&change, previous);
	if (!err)
		table_warn_shares(members, n, params->slots, change.plan.quota, report);
	table_free(change.canonical);
	table_free(change.lack);
	table_plan_free(&change.plan);
	return err;
}
