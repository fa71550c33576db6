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
	struct score *scores; /* of n members: room to sort in */
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
static void number_zones(struct table_preference *p, uint16_t *order)
{
	const struct table_member *m = p->table->members;
	uint16_t zone = 0;

	for (size_t i = 0; i < p->n; i++)
		order[i] = p->members[i].member;
	qsort_r(order, p->n, sizeof(*order), by_zone, (void *)m);
	for (size_t i = 0; i < p->n; i++) {
		if (i && (!m[order[i]].zone || strcmp(m[order[i]].zone, m[order[i - 1]].zone)))
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

static int by_score(const void *a, const void *b)
{
	return score_before(a, b) ? -1 : 1;
}

static void sort_scores(const struct table_preference *p, uint32_t slot)
{
	uint16_t owner = p->table->owner[slot];
	size_t at = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct score_member *m = &p->members[i];
		uint64_t hash = score_hash(m, score_slot(slot));

		p->scores[i] = (struct score){score_log(&p->log, hash), hash, m};
	}
	qsort(p->scores, p->n, sizeof(*p->scores), by_score);
	while (at < p->n && p->scores[at].who->member != owner)
		at++;
	if (at < p->n) {
		struct score first = p->scores[at];

		memmove(&p->scores[1], &p->scores[0], at * sizeof(first));
		p->scores[0] = first;
	}
}

struct table_replicas table_preference_list(struct table_preference *p, uint32_t slot, size_t k, uint16_t *out)
{
	struct table_replicas replicas = {};

	sort_scores(p, slot);
	memset(p->used, 0, p->n_zones * sizeof(*p->used));
	for (size_t i = 0; i < p->n && replicas.count < k; i++) {
		uint16_t member = p->scores[i].who->member;

		if (p->used[p->zone[member]])
			continue;
		p->used[p->zone[member]] = true;
		out[replicas.count++] = member;
		p->scores[i].who = NULL;
	}
	replicas.zones = replicas.count;
	for (size_t i = 0; i < p->n && replicas.count < k; i++) {
		if (p->scores[i].who)
			out[replicas.count++] = p->scores[i].who->member;
	}
	replicas.under_replicated = replicas.zones < k;
	return replicas;
}
