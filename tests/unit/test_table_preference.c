/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "table_fixture.h"

static const char *const zones[] = {"north", "south", "west"};

static void distinct_zones_come_first(void **state)
{
	struct members m = members_numbered(9, 1, 4);
	struct table_preference *preference;
	struct built t;
	struct table table;

	(void)state;
	for (size_t i = 0; i < m.n; i++)
		m.array[i].zone = zones[i % 3];
	t = build("maglev", &m, 251, NULL, 0);
	table = built_table(&m, &t);
	assert_int_equal(table_preference_open(&table, &preference), 0);
	for (uint32_t slot = 0; slot < t.slots; slot++) {
		uint16_t out[9], fewer[3];
		bool seen[9] = {};
		struct table_replicas r = table_preference_list(preference, slot, 9, out);

		assert_int_equal(r.count, 9);
		assert_int_equal(r.zones, 3);
		assert_true(r.under_replicated);
		assert_int_equal(out[0], t.owner[slot]);
		for (size_t i = 0; i < 9; i++) {
			assert_false(seen[out[i]]);
			seen[out[i]] = true;
		}
		assert_ptr_not_equal(m.array[out[0]].zone, m.array[out[1]].zone);
		assert_ptr_not_equal(m.array[out[0]].zone, m.array[out[2]].zone);
		assert_ptr_not_equal(m.array[out[1]].zone, m.array[out[2]].zone);
		r = table_preference_list(preference, slot, 3, fewer);
		assert_false(r.under_replicated);
		assert_memory_equal(out, fewer, sizeof(fewer));
	}
	table_preference_close(preference);
	built_free(&t);
	members_free(&m);
}

static void too_few_backends_are_said(void **state)
{
	struct members m = members_numbered(3, 1, 1);
	struct table_preference *preference;
	struct table_replicas r;
	uint16_t out[4];
	struct built t;
	struct table table;

	(void)state;
	m.array[1].weight = 0;
	t = build("maglev", &m, 5, NULL, 0);
	table = built_table(&m, &t);
	assert_int_equal(table_preference_open(&table, &preference), 0);
	r = table_preference_list(preference, 0, 2, out);
	assert_int_equal(r.count, 2);
	assert_int_equal(r.zones, 2); /* no zones: each its own */
	assert_false(r.under_replicated);
	r = table_preference_list(preference, 0, 4, out);
	assert_int_equal(r.count, 2);
	assert_true(r.under_replicated);
	assert_int_equal(out[0] + out[1], 2);
	table_preference_close(preference);
	built_free(&t);
	members_free(&m);
}

static void an_empty_table_has_an_empty_list(void **state)
{
	const uint16_t owner[] = {TABLE_NONE, TABLE_NONE};
	struct table table = {NULL, 0, 2, owner};
	struct table_preference *preference;
	struct table_replicas r;
	uint16_t out[1];

	(void)state;
	assert_int_equal(table_preference_open(&table, &preference), 0);
	r = table_preference_list(preference, 1, 1, out);
	assert_int_equal(r.count, 0);
	assert_true(r.under_replicated);
	table_preference_close(preference);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distinct_zones_come_first),
		cmocka_unit_test(too_few_backends_are_said),
		cmocka_unit_test(an_empty_table_has_an_empty_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
