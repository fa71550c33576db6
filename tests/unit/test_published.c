/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The dense form of a table: when there is one, and that it says what owner[] says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "published.h"

/* A table of the class in which slot i is owned by 32,766, 32,765 and so on: `owners` of them, in turn. */
static struct shunt_table *new_table(enum shunt_table_class class, uint32_t owners)
{
	uint32_t capacity = published_capacity(class);
	struct shunt_table *table = calloc(1, SHUNT_TABLE_SIZE(capacity));
	uint16_t *owner = (uint16_t *)((char *)table + SHUNT_TABLE_OWNER(capacity));

	assert_non_null(table);
	table->slots = capacity;
	for (uint32_t i = 0; i < capacity; i++)
		owner[i] = (uint16_t)(SHUNT_BACKEND_NONE - 1 - i % owners);
	return table;
}

static void assert_dense(const struct shunt_table *table, enum shunt_table_class class)
{
	uint32_t capacity = published_capacity(class);
	const uint16_t *owner = (const uint16_t *)((const char *)table + SHUNT_TABLE_OWNER(capacity));
	const uint16_t *id = (const uint16_t *)((const char *)table + SHUNT_TABLE_ID(capacity));
	const uint8_t *of = (const uint8_t *)table + SHUNT_TABLE_OF(capacity);

	assert_int_equal(table->ranges, SHUNT_TABLE_DENSE);
	for (uint32_t i = 0; i < capacity; i++)
		assert_int_equal(id[of[i]], owner[i]);
}

/* Neither the header nor what stands behind it changed. */
static void assert_as_it_was(const struct shunt_table *table, enum shunt_table_class class, uint32_t owners,
			     uint32_t flags)
{
	struct shunt_table *same = new_table(class, owners);

	same->flags = flags;
	assert_memory_equal(table, same, SHUNT_TABLE_SIZE(published_capacity(class)));
	free(same);
}

static void few_owners_are_numbered(void **state)
{
	static const uint32_t owners[] = {1, 2, 100, SHUNT_TABLE_IDS};

	(void)state;
	for (int class = SHUNT_TABLE_M; class < SHUNT_NR_TABLE_CLASSES; class ++)
		for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
			struct shunt_table *table = new_table(class, owners[i]);

			assert_int_equal(published_densify(table, class), 0);
			assert_dense(table, class);
			free(table);
		}
}

static void more_are_not(void **state)
{
	struct shunt_table *table = new_table(SHUNT_TABLE_M, SHUNT_TABLE_IDS + 1);

	(void)state;
	assert_int_equal(published_densify(table, SHUNT_TABLE_M), 0);
	assert_as_it_was(table, SHUNT_TABLE_M, SHUNT_TABLE_IDS + 1, 0);
	free(table);
}

static void nor_is_a_small_table(void **state)
{
	struct shunt_table *table = new_table(SHUNT_TABLE_S, 3);

	(void)state;
	assert_int_equal(published_densify(table, SHUNT_TABLE_S), 0);
	assert_as_it_was(table, SHUNT_TABLE_S, 3, 0);
	free(table);
}

static void nor_is_one_in_transition(void **state)
{
	struct shunt_table *table = new_table(SHUNT_TABLE_M, 3);

	(void)state;
	table->flags = SHUNT_TABLE_IN_TRANSITION;
	assert_int_equal(published_densify(table, SHUNT_TABLE_M), 0);
	assert_as_it_was(table, SHUNT_TABLE_M, 3, SHUNT_TABLE_IN_TRANSITION);
	free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_owners_are_numbered),
		cmocka_unit_test(more_are_not),
		cmocka_unit_test(nor_is_a_small_table),
		cmocka_unit_test(nor_is_one_in_transition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
