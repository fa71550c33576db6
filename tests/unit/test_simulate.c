/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "simulate.h"
#include "table_fixture.h"

static void events_are_parsed(void **state)
{
	static const char *const bad[] = {"",	       "Add",	     "add:1",	"fail",
					  "fail:",     "fail:-1",    "fail:0",	"fail:1x",
					  "ramp:1001", "grow:10001", "rolling", "fail:99999999999999999999"};
	struct simulate_event event = {};

	(void)state;
	assert_int_equal(simulate_event_parse("ramp:10", &event, NULL), 0);
	assert_int_equal(event.what, SIMULATE_RAMP);
	assert_int_equal(event.number, 10);
	assert_int_equal(simulate_event_parse("roll", &event, NULL), 0);
	assert_int_equal(event.what, SIMULATE_ROLL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct report report = {};

		assert_int_equal(simulate_event_parse(bad[i], &event, &report), -EINVAL);
		assert_int_equal(report.errors, 1);
		assert_int_equal(event.what, SIMULATE_ROLL);
		report_free(&report);
	}
}

static void backends_are_made(void **state)
{
	struct simulate_backends made;

	(void)state;
	assert_int_equal(simulate_backends(5, "1,20", 2, 7, &made, NULL), 0);
	assert_int_equal(made.n, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(made.members[i].weight, i % 2 ? 20 : 1);
		assert_ptr_equal(made.members[i].zone, made.members[i % 2].name);
	}
	assert_string_equal(made.members[4].name, "s7-00005");
	simulate_backends_free(&made);
	assert_int_equal(simulate_backends(1000, "3-5", 0, 7, &made, NULL), 0);
	for (size_t i = 0; i < 1000; i++)
		assert_in_range(made.members[i].weight, 3, 5);
	simulate_backends_free(&made);
	assert_int_equal(simulate_backends(5, "1,65536", 0, 7, &made, NULL), -EINVAL);
	assert_int_equal(simulate_backends(5, "5-3", 0, 7, &made, NULL), -EINVAL);
	assert_int_equal(simulate_backends(5, "", 0, 7, &made, NULL), -EINVAL);
}

static struct simulate_result run(struct simulate_options *o, const char *event)
{
	struct simulate_result result;

	assert_int_equal(simulate_event_parse(event, &o->event, NULL), 0);
	assert_int_equal(simulate(o, &result, NULL), 0);
	return result;
}

static void figures_are_what_arithmetic_says(void **state)
{
	struct simulate_options o = {.algorithm = table_algorithm("minimal"), .params = {.slots = 1009}, .seed = 1};
	struct members m = members_numbered(2, 1, 1);
	struct simulate_result r;

	(void)state;
	o.members = m.array;
	o.n = m.n;
	/* 505 and 504 slots become 337, 336 and 336. */
	r = run(&o, "add");
	assert_int_equal((int)(r.moved * 1009 + 0.5), 336);
	assert_int_equal((int)(r.minimum * 1009 + 0.5), 336);
	assert_true(r.excess < 1e-12 && !r.restored && r.steps == 1 && r.build_ms == 0);
	/* One leaves: its slots; it comes back: the same. */
	r = run(&o, "flap");
	assert_true(r.moved * 1009 > 2 * 504 - 0.5 && r.moved * 1009 < 2 * 505 + 0.5);
	assert_true(r.restored && r.steps == 2 && r.excess < 1e-12);
	/* 505 of 504.5. */
	assert_true(r.load.max_over_mean > 1 && r.load.max_over_mean < 1.001);
	members_free(&m);
}

static void members_are_left_as_they_were(void **state)
{
	struct members m = members_numbered(10, 1, 9), same = members_numbered(10, 1, 9);
	struct simulate_options o = {.algorithm = table_algorithm("minimal"), .members = m.array, .n = m.n};

	(void)state;
	o.params.slots = 251;
	run(&o, "roll");
	run(&o, "ramp:10");
	for (size_t i = 0; i < m.n; i++)
		assert_int_equal(m.array[i].weight, same.array[i].weight);
	members_free(&m);
	members_free(&same);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_parsed),
		cmocka_unit_test(backends_are_made),
		cmocka_unit_test(figures_are_what_arithmetic_says),
		cmocka_unit_test(members_are_left_as_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
