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

static uint32_t prime_from(uint64_t least)
{
	uint32_t below, above;

	if (least > TABLE_SLOTS_MAX)
		return 0;
	table_nearest_primes(least ? (uint32_t)least - 1 : 0, &below, &above);
	return above;
}

/* A largest-remainder share is less than one slot off, so 100 slots for the smallest weight keep all within 1 %. */
static void warn_of_shares(const struct table_member *members, const struct share *shares, size_t n, uint32_t slots,
			   const uint32_t *quota, struct report *report)
{
	uint64_t sum = 0, worst = 0, smallest = TABLE_WEIGHT_MAX;
	const struct table_member *name = NULL;
	size_t off = 0;
	uint32_t size;

	for (size_t k = 0; k < n; k++)
		sum += shares[k].weight;
	for (size_t k = 0; k < n; k++) {
		uint64_t ideal = (uint64_t)slots * shares[k].weight, got = quota[shares[k].member] * sum;
		uint64_t error = got > ideal ? got - ideal : ideal - got;

		if (shares[k].weight < smallest)
			smallest = shares[k].weight;
		if (error * 100 <= ideal)
			continue;
		off++;
		/* In units of 0.1 %: ties go to the first name, so that the sentence does not depend on the order. */
		error = error * 1000 / ideal;
		if (!name || error > worst ||
		    (error == worst && strcmp(members[shares[k].member].name, name->name) < 0)) {
			worst = error;
			name = &members[shares[k].member];
		}
	}
	if (!off)
		return;
	size = prime_from((100 * sum + smallest - 1) / smallest);
	if (size)
		report_add(
			report, REPORT_WARNING, 0, 0,
			"%zu of %zu shares are off by more than 1 %% (\"%s\" by %llu.%llu %%) with %u slots: a table "
			"size of %u keeps all within 1 %%",
			off, n, name->name, (unsigned long long)worst / 10, (unsigned long long)worst % 10, slots,
			size);
	else
		report_add(
			report, REPORT_WARNING, 0, 0,
			"%zu of %zu shares are off by more than 1 %% (\"%s\" by %llu.%llu %%) with %u slots: no table "
			"size is large enough for these weights, use larger weights for the small ones",
			off, n, name->name, (unsigned long long)worst / 10, (unsigned long long)worst % 10, slots);
}

static int refuse(size_t n, uint32_t slots, struct report *report)
{
	return report_error(report, -E2BIG,
			    "%zu backends with a positive weight do not fit in %u slots: the next size that holds them "
			    "is %u; %u keeps equal shares within 1 %%",
			    n, slots, prime_from(n), prime_from(100 * (uint64_t)n));
}

int table_quotas(const struct table_member *members, size_t n, uint32_t slots, uint32_t *quota, struct report *report)
{
	struct share *shares = NULL;
	uint16_t *order = NULL;
	size_t positive = 0;
	int err = table_check_size(slots, report);

	if (err)
		return err;
	if (!n)
		return 0;
	order = malloc(n * sizeof(*order));
	shares = malloc(n * sizeof(*shares));
	err = order && shares ? table_order(members, n, order, report) : -ENOMEM;
	if (err)
		goto out;
	for (size_t rank = 0; rank < n; rank++) {
		quota[order[rank]] = 0;
		if (members[order[rank]].weight)
			shares[positive++] =
				(struct share){members[order[rank]].weight, 0, (uint16_t)rank, order[rank]};
	}
	if (positive > slots) {
		err = refuse(positive, slots, report);
	} else if (positive) {
		largest_remainder(shares, positive, slots, quota);
		warn_of_shares(members, shares, positive, slots, quota, report);
	}
out:
	free(order);
	free(shares);
	return err;
}
