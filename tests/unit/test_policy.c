/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The policy: exactly at each limit, and one beyond. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "policy.h"

static const struct model_policy strict = {
	.given = true,
	.has_max_moved = true,
	.max_moved_percent = 30,
	.has_max_leaving = true,
	.max_leaving = 2,
};

static struct engine_pool_change change(uint32_t moved, uint32_t leaving)
{
	return (struct engine_pool_change){.pool = "web",
					   .slots = 1000,
					   .moved = moved,
					   .backends_before = 9,
					   .backends_after = 9 - leaving,
					   .leaving = leaving};
}

/* The errors that come of it. */
static size_t judge(const struct model_policy *policy, const struct engine_pool_change *pools, size_t n)
{
	struct report report = {};
	int ret = policy_judge(policy, pools, n, &report);
	size_t errors = report.errors;

	assert_int_equal(ret, errors ? -ECANCELED : 0);
	report_free(&report);
	return errors;
}

static void test_limits(void **state)
{
	struct engine_pool_change pools[] = {change(300, 1), change(300, 1)};

	(void)state;
	assert_int_equal(judge(&strict, pools, 2), 0);
	pools[0].moved = 301;
	assert_int_equal(judge(&strict, pools, 2), 1);
	pools[1].moved = 1000;
	assert_int_equal(judge(&strict, pools, 2), 2);
	pools[1].leaving = 2;
	assert_int_equal(judge(&strict, pools, 2), 3);
	assert_int_equal(judge(&strict, NULL, 0), 0);
	assert_int_equal(judge(&(struct model_policy){}, pools, 2), 0);
}

static void test_empty(void **state)
{
	struct model_policy policy = {.given = true};
	struct engine_pool_change pool = change(1000, 9);

	(void)state;
	assert_int_equal(judge(&policy, &pool, 1), 1);
	policy.allow_empty = true;
	assert_int_equal(judge(&policy, &pool, 1), 0);
	policy.allow_empty = false;
	pool.backends_before = 0; /* it was before */
	assert_int_equal(judge(&policy, &pool, 1), 0);
}

/* What is new or goes as a whole moves as it likes, but its backends leave. */
static void test_whole_pools(void **state)
{
	struct engine_pool_change added = {
		.pool = "a", .added = true, .slots = 1000, .moved = 1000, .backends_after = 3};
	struct engine_pool_change removed = {
		.pool = "r", .removed = true, .slots = 1000, .moved = 1000, .backends_before = 2, .leaving = 2};

	(void)state;
	assert_int_equal(judge(&strict, &added, 1), 0);
	assert_int_equal(judge(&strict, &removed, 1), 0);
	removed.leaving = 3;
	assert_int_equal(judge(&strict, &removed, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_whole_pools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
