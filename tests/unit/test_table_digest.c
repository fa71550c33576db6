/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <xxhash.h>

#include "table_fixture.h"

static void is_xxh64_of_the_documented_bytes(void **state)
{
	struct table_member members[] = {{.name = "c"}, {.name = "unused"}, {.name = "bb"}};
	const uint16_t owner[] = {0, 2, TABLE_NONE, 2, 0};
	struct table table = {members, 3, 5, owner};
	const uint8_t bytes[] = {5, 0, 0, 0, 2, 0, 0, 0, 'b', 'b', 0, 'c', 0, 1, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0};

	(void)state;
	assert_int_equal(table_digest(&table), XXH64(bytes, sizeof(bytes), 0));
}

static void depends_on_names_and_owners_alone(void **state)
{
	struct table_member first[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 1}};
	struct table_member second[] = {{.name = "b", .weight = 7}, {.name = "x"}, {.name = "a", .zone = "z"}};
	struct table_member renamed[] = {{.name = "a"}, {.name = "c"}};
	const uint16_t here[] = {0, 1, 1}, there[] = {2, 0, 0}, moved[] = {1, 0, 0}, stray[] = {0, 1, 9};
	const uint16_t none[] = {0, 1, TABLE_NONE};
	struct table a = {first, 2, 3, here}, b = {second, 3, 3, there}, c = {renamed, 2, 3, here},
		     d = {first, 2, 3, moved}, e = {first, 2, 3, stray}, f = {first, 2, 3, none};

	(void)state;
	assert_int_equal(table_digest(&a), table_digest(&b));
	assert_int_not_equal(table_digest(&a), table_digest(&c));
	assert_int_not_equal(table_digest(&a), table_digest(&d));
	assert_int_equal(table_digest(&e), table_digest(&f));
	assert_int_not_equal(table_digest(&a), table_digest(&f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_xxh64_of_the_documented_bytes),
		cmocka_unit_test(depends_on_names_and_owners_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
