/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Neighbours: which there are, and what to ask the kernel about them and about routes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nexthop_internal.h"

#define RETRY_FIRST 1000u /* milliseconds between questions to keep an entry that the kernel does not manage */
#define RETRY_MAX 30000u

static int compare_neighbours(const void *a, const void *b)
{
	const struct nexthop_neighbour *x = a, *y = b;

	if (x->ifindex != y->ifindex)
		return x->ifindex < y->ifindex ? -1 : 1;
	return memcmp(&x->address, &y->address, sizeof(x->address));
}

/* ---- questions ---- */

static void unlist(struct neighbour *neighbour)
{
	if (neighbour->list)
		TAILQ_REMOVE(neighbour->list, neighbour, asking);
	neighbour->list = NULL;
}

static void ask(struct nexthop_table *table, struct neighbour *neighbour, enum nexthop_question question)
{
	unlist(neighbour);
	neighbour->next = question;
	neighbour->list = &table->ask;
	if (question == NEXTHOP_KEEP)
		TAILQ_INSERT_HEAD(neighbour->list, neighbour, asking); /* while what was just read still holds */
	else
		TAILQ_INSERT_TAIL(neighbour->list, neighbour, asking);
}

/* To be kept when it is due and rations allow it: by CREATE, or by KEEP after another look. */
static void want_kept(struct nexthop_table *table, struct neighbour *neighbour)
{
	unlist(neighbour);
	neighbour->next = neighbour->entry.exists ? NEXTHOP_GET : NEXTHOP_CREATE;
	neighbour->list = neighbour->due <= table->now ? &table->keep : &table->wait;
	TAILQ_INSERT_TAIL(neighbour->list, neighbour, asking);
}

static void forget_neighbour(struct nexthop_table *table, struct neighbour *neighbour)
{
	unlist(neighbour);
	tdelete(neighbour, &table->neighbours, compare_neighbours);
	free(neighbour);
}

static void asked_now(struct nexthop_table *table, struct neighbour *neighbour)
{
	switch (neighbour->next) {
	case NEXTHOP_RELEASE:
		forget_neighbour(table, neighbour);
		break;
	case NEXTHOP_CREATE:
	case NEXTHOP_KEEP:
		neighbour->allowed = false;
		/* Again later, unless the kernel says before that it manages the entry: wake(). */
		neighbour->retry = !neighbour->due		       ? RETRY_FIRST
				   : neighbour->retry >= RETRY_MAX / 2 ? RETRY_MAX
								       : 2 * neighbour->retry;
		neighbour->due = table->now + neighbour->retry;
		neighbour->kept = true;
		want_kept(table, neighbour);
		break;
	default:
		unlist(neighbour);
	}
}

static void wake(struct nexthop_table *table, uint64_t now)
{
	struct neighbour *neighbour, *next;

	table->now = now;
	for (neighbour = TAILQ_FIRST(&table->wait); neighbour; neighbour = next) {
		next = TAILQ_NEXT(neighbour, asking);
		if (neighbour->due <= now)
			ask(table, neighbour,
			    NEXTHOP_GET); /* an event may have been lost; the answer asks to keep it */
	}
}

enum nexthop_question nexthop_table_question(struct nexthop_table *table, uint64_t now, unsigned int *keep_limit,
					     uint32_t *ifindex, union shunt_address *address)
{
	struct target *target = TAILQ_FIRST(&table->query);
	struct neighbour *neighbour;
	enum nexthop_question question;

	if (now != table->now)
		wake(table, now);
	if (target) {
		TAILQ_REMOVE(&table->query, target, querying);
		target->queried = false;
		*address = target->address;
		return NEXTHOP_ROUTE;
	}
	neighbour = TAILQ_FIRST(&table->ask);
	if (!neighbour && *keep_limit) {
		neighbour = TAILQ_FIRST(&table->keep);
		if (neighbour) {
			neighbour->allowed = true;
			--*keep_limit;
		}
	}
	if (!neighbour)
		return NEXTHOP_NOTHING;
	question = neighbour->next;
	*ifindex = neighbour->entry.ifindex;
	*address = neighbour->entry.address;
	asked_now(table, neighbour);
	return question;
}

uint64_t nexthop_table_due(const struct nexthop_table *table)
{
	const struct neighbour *neighbour;
	uint64_t due = UINT64_MAX;

	if (!TAILQ_EMPTY(&table->query) || !TAILQ_EMPTY(&table->ask) || !TAILQ_EMPTY(&table->keep))
		return 0;
	for (neighbour = TAILQ_FIRST(&table->wait); neighbour; neighbour = TAILQ_NEXT(neighbour, asking))
		due = neighbour->due < due ? neighbour->due : due;
	return due;
}

/* ---- neighbours ---- */

static void touch_targets(struct nexthop_table *table, struct neighbour *neighbour)
{
	struct target *target;

	for (target = LIST_FIRST(&neighbour->targets); target; target = LIST_NEXT(target, sibling))
		nexthop_touch(table, target);
}

/* A permanent entry is left alone: asking to keep it would make it an ordinary one. */
static void see_to_keeping(struct nexthop_table *table, struct neighbour *neighbour)
{
	const struct nexthop_neighbour *entry = &neighbour->entry;
	bool allowed = neighbour->allowed, usable = entry->state & NUD_USABLE;

	neighbour->allowed = false;
	if (entry->managed || (entry->state & (NUD_PERMANENT | NUD_NOARP))) {
		unlist(neighbour);
		neighbour->kept = neighbour->kept && entry->managed;
		neighbour->due = usable ? 0 : neighbour->due;
	} else if (allowed && entry->exists) {
		ask(table, neighbour, NEXTHOP_KEEP);
	} else {
		want_kept(table, neighbour);
	}
}

void nexthop_table_neighbour(struct nexthop_table *table, const struct nexthop_neighbour *entry)
{
	struct neighbour *neighbour = nexthop_find(&table->neighbours, entry, compare_neighbours);

	if (!neighbour)
		return;
	if (LIST_EMPTY(&neighbour->targets)) {
		if (entry->managed)
			ask(table, neighbour, NEXTHOP_RELEASE);
		else
			forget_neighbour(table, neighbour);
		return;
	}
	neighbour->entry = *entry;
	if (entry->state)
		neighbour->refused = 0;
	neighbour->failed = (neighbour->failed || (entry->state & NUD_FAILED)) && !(entry->state & NUD_USABLE);
	see_to_keeping(table, neighbour);
	touch_targets(table, neighbour);
}

void nexthop_table_refused(struct nexthop_table *table, uint32_t ifindex, const union shunt_address *address, int error)
{
	struct nexthop_neighbour key = {.ifindex = ifindex, .address = *address};
	struct neighbour *neighbour = nexthop_find(&table->neighbours, &key, compare_neighbours);

	if (!neighbour || LIST_EMPTY(&neighbour->targets))
		return;
	neighbour->kept = false;
	if (error == -EEXIST) {
		neighbour->allowed = true;
		ask(table, neighbour, NEXTHOP_GET);
		return;
	}
	neighbour->refused = error;
	want_kept(table, neighbour);
	touch_targets(table, neighbour);
}

int nexthop_get_neighbour(struct nexthop_table *table, uint32_t ifindex, const union shunt_address *address,
			  struct neighbour **out)
{
	struct nexthop_neighbour key = {.ifindex = ifindex, .address = *address};
	struct neighbour *neighbour = nexthop_find(&table->neighbours, &key, compare_neighbours);

	if (!neighbour) {
		neighbour = calloc(1, sizeof(*neighbour));
		if (!neighbour)
			return -ENOMEM;
		neighbour->entry = key;
		LIST_INIT(&neighbour->targets);
		if (!tsearch(neighbour, &table->neighbours, compare_neighbours)) {
			free(neighbour);
			return -ENOMEM;
		}
	}
	if (LIST_EMPTY(&neighbour->targets))
		ask(table, neighbour, NEXTHOP_GET);
	*out = neighbour;
	return 0;
}

void nexthop_leave_neighbour(struct nexthop_table *table, struct target *target)
{
	struct neighbour *neighbour = target->neighbour;

	if (!neighbour)
		return;
	LIST_REMOVE(target, sibling);
	target->neighbour = NULL;
	if (!LIST_EMPTY(&neighbour->targets))
		return;
	if (neighbour->kept)
		ask(table, neighbour, NEXTHOP_GET); /* released if the kernel still keeps it */
	else
		forget_neighbour(table, neighbour);
}

static void ask_again(const void *node, VISIT visit, void *arg)
{
	struct neighbour *neighbour = *(struct neighbour *const *)node;

	if (visit == postorder || visit == leaf) {
		neighbour->allowed = false;
		ask(arg, neighbour, NEXTHOP_GET);
	}
}

void nexthop_ask_all(struct nexthop_table *table)
{
	twalk_r(table->neighbours, ask_again, table);
}
