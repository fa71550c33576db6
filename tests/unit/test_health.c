/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "health.h"

static const struct health_params params = {
	.interval = 1000, .rise = 2, .fall = 3, .hold_down = 4000, .hold_down_max = 60000};

static void takes_consecutive_counts(void **state)
{
	struct health health;

	(void)state;
	health_begin(&health, HEALTH_UP, 0);
	/* One failure in three, for ever. */
	for (uint64_t i = 0; i < 3000; i++)
		assert_false(health_take(&health, &params, i % 3, i * 1000));
	assert_false(health_take(&health, &params, false, 3000000));
	assert_false(health_take(&health, &params, false, 3001000));
	assert_true(health_take(&health, &params, false, 3002000));
	assert_int_equal(health.state, HEALTH_DOWN);
	/* The first time it is not held. */
	assert_false(health_take(&health, &params, true, 3003000));
	assert_true(health_take(&health, &params, true, 3004000));
	assert_int_equal(health.state, HEALTH_UP);
}

static void flapping_settles(void **state)
{
	struct health health;
	uint64_t ups[32], n_ups = 0, now = 0;

	(void)state;
	health_begin(&health, HEALTH_UP, 0);
	/* Down after it has been up for 5 s, each time; passes while it is down. */
	while (now < 600000 && n_ups < 32) {
		bool pass = health.state == HEALTH_DOWN || now - health.since < 2000;

		if (health_take(&health, &params, pass, now) && health.state == HEALTH_UP)
			ups[n_ups++] = now;
		now += 1000;
	}
	assert_int_equal(health.hold, params.hold_down_max);
	assert_true(n_ups < 16);
	assert_true(ups[n_ups - 1] - ups[n_ups - 2] >= params.hold_down_max);
	/* Well for long enough, it is as one that never flapped. */
	while (health.state != HEALTH_UP || now - health.since < 2 * params.hold_down_max) {
		health_take(&health, &params, true, now);
		now += 1000;
	}
	for (int i = 0; i < 3; i++)
		health_take(&health, &params, false, now += 1000);
	assert_int_equal(health.hold, 0);
}

/* Whatever the results: a change needs its run of equal ones, and counts say what was taken. */
static void changes_need_runs(void **state)
{
	struct health health;
	uint32_t run = 0;
	bool last = true;

	(void)state;
	srandom(6);
	health_begin(&health, HEALTH_UNKNOWN, 0);
	for (uint64_t i = 1; i < 100000; i++) {
		bool passed = random() & 1;
		bool changed;

		run = passed == last ? run + 1 : 1;
		last = passed;
		changed = health_take(&health, &params, passed, i * 1000);
		if (changed)
			assert_true(run >= (passed ? params.rise : params.fall));
		if (!passed && run >= params.fall)
			assert_int_equal(health.state, HEALTH_DOWN);
		assert_true(!health.passed || !health.failed);
		assert_true(health.hold <= params.hold_down_max);
		assert_int_equal(health.n_passed + health.n_failed, i);
	}
}

static void jitter_only_shortens(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 10000; seed++) {
		uint64_t next = health_next(&params, 5000, seed, seed * 7);

		assert_in_range(next, 5900, 6000);
		assert_in_range(health_first(&params, 5000, seed), 5000, 5999);
	}
}

/* ---- pools ---- */

static const struct health_policy policy = {.panic = 50, .window = 8000};

static size_t judge(struct health_pool *pool, const struct health_policy *by, const char *states, uint64_t since,
		    uint64_t now, bool *out)
{
	struct health_member members[16] = {};
	size_t n = strlen(states), left = 0;

	for (size_t i = 0; i < n; i++) {
		members[i].since = since;
		members[i].state = states[i] == 'd' ? HEALTH_DOWN : states[i] == 'u' ? HEALTH_UP : HEALTH_UNKNOWN;
		members[i].waits = states[i] == 'w';
	}
	health_judge(pool, by, members, n, now, out);
	for (size_t i = 0; i < n; i++)
		left += !out[i];
	return left;
}

static void too_many_at_once_freeze(void **state)
{
	struct health_pool pool = {};
	bool out[16];

	(void)state;
	assert_int_equal(judge(&pool, &policy, "duuuuu", 1000, 1100, out), 5);
	assert_int_equal(judge(&pool, &policy, "ddduuu", 1000, 1100, out), 3);
	assert_false(pool.frozen);
	assert_int_equal(judge(&pool, &policy, "dddddu", 1000, 1200, out), 6);
	assert_true(pool.frozen);
	assert_int_equal(judge(&pool, &policy, "dddddu", 1000, 99000, out), 6);
	assert_int_equal(judge(&pool, &policy, "duuuuu", 1000, 99100, out), 5);
	assert_false(pool.frozen);
	/* Who was down long before stays out. */
	assert_int_equal(judge(&pool, &policy, "dddduu", 1000, 20000, out), 2);
}

static void the_last_goes_by_the_policy(void **state)
{
	const struct health_policy refuse = {.panic = 100, .window = 8000, .last = HEALTH_REFUSE};
	const struct health_policy open = {.panic = 100, .window = 8000};
	struct health_pool pool = {};
	bool out[16];

	(void)state;
	assert_int_equal(judge(&pool, &refuse, "dddddu", 1000, 1100, out), 1);
	assert_int_equal(judge(&pool, &refuse, "dddddd", 1000, 1100, out), 0);
	assert_int_equal(judge(&pool, &open, "dddddd", 1000, 1100, out), 6);
	/* Down for long, all of them: still nobody is refused. */
	pool = (struct health_pool){};
	assert_int_equal(judge(&pool, &open, "dddddd", 1000, 99000, out), 6);
}

static void newcomers_wait(void **state)
{
	struct health_pool pool = {};
	bool out[16];

	(void)state;
	assert_int_equal(judge(&pool, &policy, "uuw?", 0, 1, out), 3);
	assert_true(out[2]);
	/* Rather one that nobody has checked than nobody. */
	assert_int_equal(judge(&pool, &policy, "www", 0, 1, out), 3);
	assert_int_equal(judge(&pool, &policy, "wwd", 0, 1, out), 2);
}

static void nobody_is_left_only_by_refusal(void **state)
{
	(void)state;
	srandom(7);
	for (int i = 0; i < 20000; i++) {
		const struct health_policy any = {.panic = (uint32_t)random() % 101, .window = 1000};
		struct health_pool pool = {};
		char states[17] = "";
		bool out[16];
		size_t n = 1 + (size_t)random() % 16;

		for (size_t j = 0; j < n; j++)
			states[j] = "udw?"[random() % 4];
		assert_true(judge(&pool, &any, states, (uint64_t)random() % 4000, 4000, out));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_consecutive_counts), cmocka_unit_test(flapping_settles),
		cmocka_unit_test(changes_need_runs),	    cmocka_unit_test(jitter_only_shortens),
		cmocka_unit_test(too_many_at_once_freeze),  cmocka_unit_test(the_last_goes_by_the_policy),
		cmocka_unit_test(newcomers_wait),	    cmocka_unit_test(nobody_is_left_only_by_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
