/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Weighted rendezvous (highest random weight): each slot belongs to the member that comes first in its order of
 * preference (score.h).  With a balance, slots are given out in order and a member that has reached its cap is passed
 * over.  Time: slots x members.
 */
#include <errno.h>
#include <string.h>

#include "score.h"

struct contest {
	struct score_member *members; /* that still take slots */
	size_t n;
	uint32_t *cap; /* slots that each may still take, or NULL */
	struct score_log log;
};

/* Among members of one weight the highest hash has the least logarithm, so one logarithm a weight is enough. */
static const struct score_member *winner(const struct contest *contest, uint64_t slot_hash)
{
	const struct score_member *m = contest->members, *end = m + contest->n;
	struct score best = {};

	while (m < end) {
		uint32_t weight = m->weight;
		struct score first = {.hash = score_hash(m, slot_hash), .who = m};

		for (m++; m < end && m->weight == weight; m++) {
			uint64_t hash = score_hash(m, slot_hash);

			if (hash > first.hash)
				first = (struct score){.hash = hash, .who = m};
		}
		if (!best.who && m == end)
			return first.who;
		first.log = score_log(&contest->log, first.hash);
		if (!best.who || score_before(&first, &best))
			best = first;
	}
	return best.who;
}

static void take(struct contest *contest, const struct score_member *who)
{
	size_t i = (size_t)(who - contest->members);

	if (contest->cap && !--contest->cap[who->member])
		memmove(&contest->members[i], &contest->members[i + 1], (--contest->n - i) * sizeof(*who));
}

int table_build_rendezvous(const struct table_member *members, size_t n, const struct table_params *params,
			   const struct table *previous __attribute__((unused)), uint16_t *owner, struct report *report)
{
	uint16_t *order = table_alloc(n, sizeof(*order));
	struct contest contest = {.members = table_alloc(n, sizeof(*contest.members))};
	int err = order && contest.members ? table_check_size(params->slots, report) : -ENOMEM;

	if (!err)
		err = table_order(members, n, order, report);
	if (!err)
		err = table_caps(members, n, params, &contest.cap, report);
	if (err)
		goto out;
	contest.n = score_members(members, n, order, contest.members);
	score_log_init(&contest.log);
	for (uint32_t slot = 0; slot < params->slots; slot++) {
		const struct score_member *who = winner(&contest, score_slot(slot));

		owner[slot] = who ? who->member : TABLE_NONE;
		if (who)
			take(&contest, who);
	}
	table_warn_empty(members, n, owner, params->slots, report);
out:
	table_free(contest.cap);
	table_free(contest.members);
	table_free(order);
	return err;
}
