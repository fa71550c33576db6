/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <math.h>

#include "table/score.h"
#include "table_fixture.h"

static uint64_t next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	return *x ^= *x << 17;
}

static void is_the_logarithm(void **state)
{
	uint64_t x = 88172645463325252ull;
	struct score_log log;

	(void)state;
	score_log_init(&log);
	assert_int_equal(score_log(&log, UINT64_MAX), 0);
	assert_int_equal(score_log(&log, 0), 64ull << SCORE_LOG_BITS);
	assert_int_equal(score_log(&log, UINT64_MAX >> 1), 1ull << SCORE_LOG_BITS);
	for (int i = 0; i < 1000000; i++) {
		uint64_t hash = i % 2 ? next(&x) : ~(next(&x) >> i % 50);
		long double exact = (64 - log2l((long double)hash + 1)) * (1ull << SCORE_LOG_BITS);

		assert_true(fabsl(exact - (long double)score_log(&log, hash)) < 3);
	}
}

static void never_grows_with_the_hash(void **state)
{
	uint64_t x = 2463534242ull;
	struct score_log log;

	(void)state;
	score_log_init(&log);
	for (int i = 0; i < 1000000; i++) {
		uint64_t hash = next(&x) >> i % 60, more = hash + 1 + i % 1000;

		assert_true(more < hash || score_log(&log, hash) >= score_log(&log, more));
		/* At the borders of the table's segments. */
		hash = (uint64_t)(i % 256 + 256) << 55;
		assert_true(score_log(&log, hash - 2) >= score_log(&log, hash - 1));
		assert_true(score_log(&log, hash - 1) >= score_log(&log, hash));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_the_logarithm),
		cmocka_unit_test(never_grows_with_the_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
