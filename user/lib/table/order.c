/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "internal.h"

uint64_t table_name_hash(const char *name, enum table_hash_use use)
{
	return XXH64(name, strlen(name), use);
}

static int by_name(const void *a, const void *b, void *members)
{
	const struct table_member *m = members;

	return strcmp(m[*(const uint16_t *)a].name, m[*(const uint16_t *)b].name);
}

void table_sort(const struct table_member *members, size_t n, uint16_t *order)
{
	bool sorted = true;

	for (size_t i = 0; i < n; i++) {
		order[i] = (uint16_t)i;
		sorted &= !i || strcmp(members[i - 1].name, members[i].name) <= 0;
	}
	if (!sorted)
		qsort_r(order, n, sizeof(*order), by_name, (void *)members);
}

int table_order(const struct table_member *members, size_t n, uint16_t *order, struct report *report)
{
	if (n > TABLE_MEMBERS_MAX)
		return report_error(report, -E2BIG, "%zu backends in one pool: the limit is %u", n, TABLE_MEMBERS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (!members[i].name || !members[i].name[0])
			return report_error(report, -EINVAL, "backend %zu of %zu has no name", i + 1, n);
		if (members[i].weight > TABLE_WEIGHT_MAX)
			return report_error(report, -EINVAL, "backend \"%s\": weight %u is not within 0 to %u",
					    members[i].name, members[i].weight, TABLE_WEIGHT_MAX);
	}
	table_sort(members, n, order);
	for (size_t i = 1; i < n; i++) {
		if (!strcmp(members[order[i - 1]].name, members[order[i]].name))
			return report_error(report, -EINVAL, "two backends of one pool are named \"%s\"",
					    members[order[i]].name);
	}
	return 0;
}

int table_match(const struct table_member *from, size_t n_from, const struct table_member *to, size_t n_to,
		uint16_t *to_of)
{
	uint16_t *order;
	size_t k = 0;

	if (n_from > TABLE_MEMBERS_MAX || n_to > TABLE_MEMBERS_MAX)
		return -E2BIG;
	order = table_alloc(n_from + n_to, sizeof(*order));
	if (!order)
		return -ENOMEM;
	table_sort(from, n_from, order);
	table_sort(to, n_to, order + n_from);
	for (size_t i = 0; i < n_from; i++) {
		int compared = 1;

		while (k < n_to && (compared = strcmp(from[order[i]].name, to[order[n_from + k]].name)) > 0)
			k++;
		to_of[order[i]] = k < n_to && !compared ? order[n_from + k] : TABLE_NONE;
	}
	table_free(order);
	return 0;
}
