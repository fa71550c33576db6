/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <shunt/flow.h>

static uint32_t age(uint32_t now, uint32_t seen)
{
	return shunt_flow_age(now, shunt_flow_word(~0u, ~0u, seen, 3, 15, 0xffff));
}

static void test_ages_wrap(void **state)
{
	(void)state;
	assert_int_equal(age(7, 7), 0);
	assert_int_equal(age(127, 0), 127);
	assert_int_equal(age(3, 250), 9);
	assert_int_equal(age(1000 + 180, 1000), 180);
}

static void test_a_word_used_after_the_clock_was_read_is_not_old(void **state)
{
	(void)state;
	assert_int_equal(age(9, 10), 0);
	assert_int_equal(age(255, 0), 0);
	assert_int_equal(age(100, 100 + SHUNT_FLOW_AHEAD), 0);
	assert_int_equal(age(100, 100 + SHUNT_FLOW_AHEAD + 1), 239);
}

static void test_fingerprints_tell_the_protocol_and_are_never_0(void **state)
{
	(void)state;
	assert_int_equal(shunt_flow_fp(0, 0), 2);
	assert_int_equal(shunt_flow_fp(0, 1), 1);
	assert_int_equal(shunt_flow_fp(1ull << 22, 0), 2);
	assert_int_equal(shunt_flow_fp(~0ull, 0), (1u << 26) - 2);
	assert_int_equal(shunt_flow_fp(~0ull, 1), (1u << 26) - 1);
	/* Bits that choose slot and buckets are not used again. */
	assert_int_equal(shunt_flow_fp(0xffff0000003fffffull, 0), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ages_wrap),
		cmocka_unit_test(test_a_word_used_after_the_clock_was_read_is_not_old),
		cmocka_unit_test(test_fingerprints_tell_the_protocol_and_are_never_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
