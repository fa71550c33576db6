/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memberships and tables for the table tests. */
#ifndef TABLE_FIXTURE_H
#define TABLE_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "table/table.h"

struct members {
	struct table_member *array;
	size_t n;
	char (*names)[24];
};

struct built {
	uint16_t *owner;
	uint32_t slots;
};

/* web0 .. web<n-1>, with weights that go through low .. high. */
static inline struct members members_numbered(size_t n, uint32_t low, uint32_t high)
{
	struct members m = {calloc(n, sizeof(*m.array)), n, calloc(n, sizeof(*m.names))};

	for (size_t i = 0; i < n; i++) {
		snprintf(m.names[i], sizeof(m.names[i]), "web%zu", i);
		m.array[i].name = m.names[i];
		m.array[i].weight = low + (uint32_t)(i * 7919 % (high - low + 1));
	}
	return m;
}

static inline void members_shuffle(struct members *m)
{
	for (size_t i = m->n; i > 1; i--) {
		size_t j = (size_t)rand() % i;
		struct table_member swap = m->array[j];

		m->array[j] = m->array[i - 1];
		m->array[i - 1] = swap;
	}
}

static inline void members_free(struct members *m)
{
	free(m->array);
	free(m->names);
}

static inline struct table built_table(const struct members *m, const struct built *t)
{
	return (struct table){m->array, m->n, t->slots, t->owner};
}

static inline struct built build(const char *algorithm, const struct members *m, uint32_t slots,
				 const struct table *previous, uint32_t balance)
{
	struct table_params params = {.slots = slots, .balance_percent = balance};
	struct built t = {malloc(slots * sizeof(*t.owner)), slots};
	struct report report = {};

	assert_int_equal(table_algorithm(algorithm)->build(m->array, m->n, &params, previous, t.owner, &report), 0);
	assert_int_equal(report.errors, 0);
	report_free(&report);
	return t;
}

static inline uint64_t built_digest(const struct members *m, const struct built *t)
{
	struct table table = built_table(m, t);

	return table_digest(&table);
}

static inline uint32_t *counts(const struct members *m, const struct built *t)
{
	uint32_t *count = calloc(m->n + 1, sizeof(*count));

	for (uint32_t slot = 0; slot < t->slots; slot++) {
		if (t->owner[slot] != TABLE_NONE) {
			assert_in_range(t->owner[slot], 0, m->n - 1);
			count[t->owner[slot]]++;
		}
	}
	return count;
}

/* `from` without the member at this index: shares its names. */
static inline struct members members_without(const struct members *from, size_t index)
{
	struct members m = {calloc(from->n, sizeof(*m.array)), from->n - 1, NULL};

	memcpy(m.array, from->array, index * sizeof(*m.array));
	memcpy(m.array + index, from->array + index + 1, (from->n - 1 - index) * sizeof(*m.array));
	return m;
}

static inline void built_free(struct built *t)
{
	free(t->owner);
}

#endif
