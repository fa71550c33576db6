/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Largest remainder (Hamilton's method) with a floor of one slot.  Members whose proportional share is below one slot
 * get one slot each; the other slots are shared among the other members in proportion to weight, repeated while that
 * leaves another one below.  Whole parts first, then one slot each to the largest remainders, ties by name.
 *
 * Bounds: slots < 2^20, weights < 2^16, their sum < 2^30, so every product below fits in 64 bits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct share {
	uint32_t weight;
	uint32_t remainder; /* of slots x weight / sum of weights: below the sum */
	uint16_t rank, member;
};

static int by_weight(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
}

static int by_remainder(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->remainder != y->remainder)
		return x->remainder > y->remainder ? -1 : 1;
	return x->rank < y->rank ? -1 : 1;
}

static void largest_remainder(struct share *shares, size_t n, uint32_t slots, uint32_t *quota)
{
	uint64_t sum = 0;
	uint32_t left = slots;
	size_t i = 0;

	qsort(shares, n, sizeof(*shares), by_weight);
	for (size_t k = 0; k < n; k++)
		sum += shares[k].weight;
	/* Each one below a slot takes more than its part, so the slots per weight that remain only fall. */
	for (; i < n && (uint64_t)left * shares[i].weight < sum; i++) {
		quota[shares[i].member] = 1;
		sum -= shares[i].weight;
		left--;
	}
	slots = left;
	for (size_t k = i; k < n; k++) {
		uint64_t product = (uint64_t)slots * shares[k].weight;

		quota[shares[k].member] = (uint32_t)(product / sum);
		shares[k].remainder = (uint32_t)(product % sum);
		left -= quota[shares[k].member];
	}
	qsort(shares + i, n - i, sizeof(*shares), by_remainder);
	for (; left; left--, i++)
		quota[shares[i].member]++;
}

/* The first prime that is not below `least`, or 0. */
static uint32_t prime_from(uint64_t least)
{
	uint32_t below, above;

	if (least > TABLE_SLOTS_MAX)
		return 0;
	table_nearest_primes((uint32_t)least - 1, &below, &above);
	return above;
}

static int refuse(size_t n, uint32_t slots, struct report *report)
{
	return report_error(report, -E2BIG,
			    "%zu backends with a positive weight do not fit in %u slots: the next size that holds them "
			    "is %u; %u keeps equal shares within 1 %%",
			    n, slots, prime_from(n), prime_from(100 * (uint64_t)n));
}

static int share_out(const struct table_member *members, size_t n, uint32_t slots, struct table_plan *plan,
		     struct report *report)
{
	struct share *shares = table_alloc(n, sizeof(*shares));
	int err = 0;

	if (!shares)
		return -ENOMEM;
	for (size_t rank = 0; rank < n; rank++) {
		uint16_t member = plan->order[rank];

		plan->quota[member] = 0;
		if (members[member].weight)
			shares[plan->positive++] = (struct share){members[member].weight, 0, (uint16_t)rank, member};
	}
	if (plan->positive > slots)
		err = refuse(plan->positive, slots, report);
	else if (plan->positive)
		largest_remainder(shares, plan->positive, slots, plan->quota);
	table_free(shares);
	return err;
}

int table_plan(const struct table_member *members, size_t n, uint32_t slots, struct table_plan *plan,
	       struct report *report)
{
	int err = table_check_size(slots, report);

	*plan = (struct table_plan){};
	if (err)
		return err;
	plan->order = table_alloc(n, sizeof(*plan->order));
	plan->quota = table_alloc(n, sizeof(*plan->quota));
	err = plan->order && plan->quota ? table_order(members, n, plan->order, report) : -ENOMEM;
	if (!err)
		err = share_out(members, n, slots, plan, report);
	if (err)
		table_plan_free(plan);
	return err;
}

void table_plan_free(struct table_plan *plan)
{
	table_free(plan->order);
	table_free(plan->quota);
	*plan = (struct table_plan){};
}

int table_quotas(const struct table_member *members, size_t n, uint32_t slots, uint32_t *quota, struct report *report)
{
	struct table_plan plan;
	int err = table_plan(members, n, slots, &plan, report);

	if (err)
		return err;
	if (n)
		memcpy(quota, plan.quota, n * sizeof(*quota));
	table_warn_shares(members, n, slots, quota, report);
	table_plan_free(&plan);
	return 0;
}

int table_caps(const struct table_member *members, size_t n, const struct table_params *params, uint32_t **cap,
	       struct report *report)
{
	struct table_plan plan;
	int err;

	*cap = NULL;
	if (!params->balance_percent)
		return 0;
	if (params->balance_percent < 100)
		return report_error(report, -EINVAL, "balance %u %% leaves slots to nobody: use at least 100 %%",
				    params->balance_percent);
	err = table_plan(members, n, params->slots, &plan, report);
	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		uint64_t most = (uint64_t)plan.quota[i] * params->balance_percent / 100;

		if (most == plan.quota[i] && most && params->balance_percent > 100)
			most++;
		plan.quota[i] = most < params->slots ? (uint32_t)most : params->slots;
	}
	*cap = plan.quota;
	plan.quota = NULL;
	table_plan_free(&plan);
	return 0;
}
