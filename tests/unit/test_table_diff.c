/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "table_fixture.h"

static void says_from_whom_to_whom(void **state)
{
	struct table_member first[] = {{.name = "c"}, {.name = "a"}, {.name = "b"}};
	struct table_member second[] = {{.name = "d"}, {.name = "b"}, {.name = "a"}};
	const uint16_t before[] = {1, 1, 2, 2, 0, 0, TABLE_NONE}; /* a a b b c c - */
	const uint16_t after[] = {2, 1, 2, 1, 0, 2, 0};		  /* a b a b d a d */
	const struct table_move expected[] = {{1, 1, 1}, {2, 2, 1}, {0, 2, 1}, {0, 0, 1}, {TABLE_NONE, 0, 1}};
	struct table a = {first, 3, 7, before}, b = {second, 3, 7, after};
	struct table_diff diff;

	(void)state;
	assert_int_equal(table_diff(&a, &b, &diff), 0);
	assert_int_equal(diff.slots, 7);
	assert_int_equal(diff.moved, 5);
	assert_int_equal(diff.minimum, 3); /* a keeps 2 of 3, b 2 of 2 */
	assert_int_equal(diff.excess, 2);
	assert_int_equal(diff.n_moves, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(diff.moves[i].from, expected[i].from);
		assert_int_equal(diff.moves[i].to, expected[i].to);
		assert_int_equal(diff.moves[i].slots, expected[i].slots);
	}
	table_diff_free(&diff);
}

static void slots_without_an_owner_are_a_share(void **state)
{
	struct table_member members[] = {{.name = "a"}};
	const uint16_t before[] = {0, TABLE_NONE, TABLE_NONE}, after[] = {TABLE_NONE, 5, 0};
	struct table a = {members, 1, 3, before}, b = {members, 1, 3, after};
	struct table_diff diff;

	(void)state;
	assert_int_equal(table_diff(&a, &b, &diff), 0);
	assert_int_equal(diff.moved, 2);
	assert_int_equal(diff.minimum, 0);
	table_diff_free(&diff);
	assert_int_equal(table_diff(&a, &a, &diff), 0);
	assert_int_equal(diff.moved, 0);
	assert_int_equal(diff.n_moves, 0);
	table_diff_free(&diff);
}

static void tables_of_different_sizes_have_none(void **state)
{
	const uint16_t owner[] = {TABLE_NONE, TABLE_NONE, TABLE_NONE};
	struct table a = {NULL, 0, 3, owner}, b = {NULL, 0, 2, owner};
	struct table_diff diff;

	(void)state;
	assert_int_equal(table_diff(&a, &b, &diff), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_from_whom_to_whom),
		cmocka_unit_test(slots_without_an_owner_are_a_share),
		cmocka_unit_test(tables_of_different_sizes_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
