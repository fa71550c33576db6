/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Preference lists: a slot's owner, then the other members of positive weight in the slot's order of preference
 * (score.h); those of zones not yet in the list go before the others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "score.h"

struct table_preference {
	const struct table *table;
	struct score_log log;
	size_t n;
	struct score_member *members;
	struct score *scores; /* of the n members for one slot; who is NULL once it is in the list */
	uint16_t *zone;	      /* of each member of the table: a number for each zone */
	bool *used;	      /* zones, while a list is made */
	size_t n_zones;	      /* among members of positive weight */
};

static int by_zone(const void *a, const void *b, void *members)
{
	const struct table_member *m = members;
	uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;

	if (!m[x].zone || !m[y].zone)
		return m[x].zone ? -1 : m[y].zone ? 1 : 0;
	return strcmp(m[x].zone, m[y].zone);
}

/* A member without a zone is a zone of its own. */
static bool share_zone(const struct table_member *a, const struct table_member *b)
{
	return a->zone && b->zone && !strcmp(a->zone, b->zone);
}

static void number_zones(struct table_preference *p, uint16_t *order)
{
	const struct table_member *m = p->table->members;
	uint16_t zone = 0;

	for (size_t i = 0; i < p->n; i++)
		order[i] = p->members[i].member;
	qsort_r(order, p->n, sizeof(*order), by_zone, (void *)m);
	for (size_t i = 0; i < p->n; i++) {
		if (i && !share_zone(&m[order[i]], &m[order[i - 1]]))
			zone++;
		p->zone[order[i]] = zone;
	}
	p->n_zones = p->n ? zone + 1u : 0;
}

int table_preference_open(const struct table *table, struct table_preference **out)
{
	struct table_preference *p = calloc(1, sizeof(*p));
	uint16_t *order = table_alloc(table->n_members, sizeof(*order));
	int err = -ENOMEM;

	if (!p || !order)
		goto out;
	p->table = table;
	p->members = table_alloc(table->n_members, sizeof(*p->members));
	p->scores = table_alloc(table->n_members, sizeof(*p->scores));
	p->zone = table_alloc(table->n_members, sizeof(*p->zone));
	p->used = table_alloc(table->n_members, sizeof(*p->used));
	if (!p->members || !p->scores || !p->zone || !p->used)
		goto out;
	err = table_order(table->members, table->n_members, order, NULL);
	if (err)
		goto out;
	score_log_init(&p->log);
	p->n = score_members(table->members, table->n_members, order, p->members);
	number_zones(p, order);
	*out = p;
	p = NULL;
out:
	table_free(order);
	table_preference_close(p);
	return err;
}

void table_preference_close(struct table_preference *p)
{
	if (!p)
		return;
	table_free(p->members);
	table_free(p->scores);
	table_free(p->zone);
	table_free(p->used);
	free(p);
}

static void score_all(const struct table_preference *p, uint32_t slot)
{
	uint64_t slot_hash = score_slot(slot);

	for (size_t i = 0; i < p->n; i++) {
		uint64_t hash = score_hash(&p->members[i], slot_hash);

		p->scores[i] = (struct score){score_log(&p->log, hash), hash, &p->members[i]};
	}
}

/* The first of those that are left; NULL if there is none. */
static struct score *best(const struct table_preference *p, uint16_t owner, bool new_zone)
{
	struct score *first = NULL;

	for (size_t i = 0; i < p->n; i++) {
		struct score *s = &p->scores[i];

		if (!s->who || (new_zone && p->used[p->zone[s->who->member]]))
			continue;
		if (s->who->member == owner)
			return s;
		if (!first || score_before(s, first))
			first = s;
	}
	return first;
}

struct table_replicas table_preference_list(struct table_preference *p, uint32_t slot, size_t k, uint16_t *out)
{
	struct table_replicas replicas = {};
	bool new_zone = true;

	score_all(p, slot);
	memset(p->used, 0, p->n_zones * sizeof(*p->used));
	while (replicas.count < k && replicas.count < p->n) {
		struct score *next = best(p, p->table->owner[slot], new_zone);

		if (!next) {
			new_zone = false;
			continue;
		}
		out[replicas.count++] = next->who->member;
		replicas.zones += new_zone;
		p->used[p->zone[next->who->member]] = true;
		next->who = NULL;
	}
	replicas.under_replicated = replicas.zones < k;
	return replicas;
}
