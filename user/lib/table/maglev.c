/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maglev (Eisenbud et al., NSDI 2016, section 3.4) with exact quotas.  Each backend walks a permutation of the slots,
 * offset + k x skip modulo the (prime) size, and takes the next free one at each of its turns, until it has its quota.
 *
 * Turns come in rounds: turn k of a backend with weight w falls into round floor(k x heaviest / w), so turns are spaced
 * by weight and do not depend on who else is there.  Within a round those wait in line that came first: turns of the
 * same earlier round keep their order, and all begin in round 0, in order of names.
 *
 * Expected steps: slots x ln(slots).  Memory: an eighth of a byte a slot, two bytes a round, 40 bytes a backend.
 */
#include <errno.h>
#include <string.h>

#include "internal.h"

#define NOBODY 0xffffu

struct walker {
	uint32_t position, skip;
	uint32_t left; /* of its quota */
	uint32_t round;
	uint32_t step, rest; /* heaviest / weight and its remainder: from one turn's round to the next */
	uint32_t carry;	     /* sum of remainders, below the weight */
	uint32_t weight;
	uint16_t next; /* in its line: circular, so that a line is known by its last */
	uint16_t member;
};

struct fill {
	struct walker *walkers;
	size_t n;
	uint16_t *lines; /* for each round, the last in line */
	uint64_t *taken; /* a bit a slot */
	uint32_t slots;
	uint16_t *owner;
};

static void queue(struct fill *fill, uint16_t walker)
{
	struct walker *w = &fill->walkers[walker];
	uint16_t *last = &fill->lines[w->round];

	if (*last == NOBODY) {
		w->next = walker;
	} else {
		w->next = fill->walkers[*last].next;
		fill->walkers[*last].next = walker;
	}
	*last = walker;
}

static uint32_t advance(uint32_t position, uint32_t skip, uint32_t slots)
{
	position += skip;
	return position >= slots ? position - slots : position;
}

static void turn(struct fill *fill, struct walker *w)
{
	uint32_t position = w->position;

	while (fill->taken[position / 64] >> position % 64 & 1)
		position = advance(position, w->skip, fill->slots);
	fill->taken[position / 64] |= 1ull << position % 64;
	fill->owner[position] = w->member;
	w->position = advance(position, w->skip, fill->slots);
	w->left--;
	w->round += w->step;
	w->carry += w->rest;
	if (w->carry >= w->weight) {
		w->carry -= w->weight;
		w->round++;
	}
}

static void run(struct fill *fill)
{
	uint32_t left = fill->slots;

	for (uint32_t round = 0; left; round++) {
		uint16_t last = fill->lines[round], next;

		if (last == NOBODY)
			continue;
		next = fill->walkers[last].next;
		for (uint16_t i = NOBODY; i != last;) {
			i = next;
			next = fill->walkers[i].next;
			turn(fill, &fill->walkers[i]);
			left--;
			if (fill->walkers[i].left)
				queue(fill, i);
		}
	}
}

/* The walkers in order of names.  Returns the number of rounds: the last turn of none is later than slots x w / sum. */
static uint32_t start(struct fill *fill, const struct table_member *members, size_t n, const struct table_plan *plan)
{
	uint32_t heaviest = 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += members[i].weight;
		if (members[i].weight > heaviest)
			heaviest = members[i].weight;
	}
	for (size_t rank = 0; rank < n; rank++) {
		const struct table_member *m = &members[plan->order[rank]];

		if (!m->weight)
			continue;
		fill->walkers[fill->n++] = (struct walker){
			.position = (uint32_t)(table_name_hash(m->name, TABLE_HASH_OFFSET) % fill->slots),
			.skip = (uint32_t)(table_name_hash(m->name, TABLE_HASH_SKIP) % (fill->slots - 1) + 1),
			.left = plan->quota[plan->order[rank]],
			.step = heaviest / m->weight,
			.rest = heaviest % m->weight,
			.weight = m->weight,
			.member = plan->order[rank],
		};
	}
	return sum ? (uint32_t)((uint64_t)fill->slots * heaviest / sum + 2) : 0;
}

int table_fill_maglev(const struct table_member *members, size_t n, const struct table_plan *plan, uint32_t slots,
		      uint16_t *owner)
{
	struct fill fill = {.slots = slots, .owner = owner};
	uint32_t rounds;
	int err = -ENOMEM;

	memset(owner, 0xff, slots * sizeof(*owner));
	if (!plan->positive)
		return 0;
	fill.walkers = table_alloc(plan->positive, sizeof(*fill.walkers));
	fill.taken = table_zalloc(slots / 64 + 1, sizeof(*fill.taken));
	if (!fill.walkers || !fill.taken)
		goto out;
	rounds = start(&fill, members, n, plan);
	fill.lines = table_alloc(rounds, sizeof(*fill.lines));
	if (!fill.lines)
		goto out;
	memset(fill.lines, 0xff, rounds * sizeof(*fill.lines));
	for (size_t i = 0; i < fill.n; i++)
		queue(&fill, (uint16_t)i);
	run(&fill);
	err = 0;
out:
	table_free(fill.walkers);
	table_free(fill.lines);
	table_free(fill.taken);
	return err;
}

int table_build_maglev(const struct table_member *members, size_t n, const struct table_params *params,
		       const struct table *previous __attribute__((unused)), uint16_t *owner, struct report *report)
{
	struct table_plan plan;
	int err = table_plan(members, n, params->slots, &plan, report);

	if (err)
		return err;
	err = table_fill_maglev(members, n, &plan, params->slots, owner);
	if (!err)
		table_warn_shares(members, n, params->slots, plan.quota, report);
	table_plan_free(&plan);
	return err;
}
