/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "report.h"

static void expect_text(const struct report *report, const char *expected)
{
	char *text = report_text(report);

	assert_string_equal(text, expected);
	free(text);
}

static void entries_are_sorted_by_place(void **state)
{
	struct report report = {};

	(void)state;
	assert_int_equal(report_set_source(&report, "a.yaml"), 0);
	report_add(&report, REPORT_ERROR, 10, 2, "third");
	report_add(&report, REPORT_WARNING, 2, 11, "second %d", 2);
	report_add(&report, REPORT_ERROR, 2, 3, "first");
	report_add(&report, REPORT_INFO, 10, 2, "fourth");
	assert_int_equal(report_error(&report, -EPERM, "no place"), -EPERM);
	expect_text(&report, "error: no place\na.yaml:2:3: error: first\na.yaml:2:11: warning: second 2\n"
			     "a.yaml:10:2: error: third\na.yaml:10:2: info: fourth\n");
	assert_int_equal(report.errors, 3);
	report_free(&report);
	assert_int_equal(report.errors, 0);
	report_add(NULL, REPORT_ERROR, 0, 0, "dropped");
	assert_int_equal(report_error(NULL, -EPERM, "dropped"), -EPERM);
}

/* A text that was cut in a character, or that somebody put an escape sequence into. */
static void texts_are_printable(void **state)
{
	struct report report = {};

	(void)state;
	report_add(&report, REPORT_ERROR, 0, 0, "\"%.2s\" and %s and %s", "a\xc3\xa9", "\x1b[31m", "\xc3\xa9\n");
	assert_string_equal(report.entries[0].text, "\"a?\" and ?[31m and \xc3\xa9?");
	report_add(&report, REPORT_ERROR, 0, 0, "%0*d", 100000, 7);
	assert_int_equal(strlen(report.entries[1].text), 2000);
	assert_string_equal(report.entries[1].text + 1995, "00...");
	report_free(&report);
}

static void a_prefix_tells_of_what(void **state)
{
	struct report report = {};

	(void)state;
	report_add(&report, REPORT_WARNING, 2, 3, "shares are off");
	report_add(&report, REPORT_ERROR, 0, 0, "too small");
	report_prefix(&report, "pool \"web\"");
	expect_text(&report, "error: pool \"web\": too small\n-:2:3: warning: pool \"web\": shares are off\n");
	report_free(&report);
}

static void moving_keeps_the_counts(void **state)
{
	struct report from = {}, to = {};

	(void)state;
	for (int i = 0; i < REPORT_ENTRIES_MAX + 5; i++)
		report_add(&from, i % 2 ? REPORT_ERROR : REPORT_WARNING, 1, 1, "entry %d", i);
	assert_int_equal(from.count, REPORT_ENTRIES_MAX);
	assert_int_equal(from.dropped, 5);
	report_add(&to, REPORT_ERROR, 0, 0, "one");
	report_move(&to, &from);
	assert_int_equal(from.count, 0);
	assert_int_equal(to.count, REPORT_ENTRIES_MAX);
	assert_int_equal(to.dropped, 6);
	assert_int_equal(to.errors, 1 + (REPORT_ENTRIES_MAX + 5) / 2);
	report_free(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_sorted_by_place),
		cmocka_unit_test(texts_are_printable),
		cmocka_unit_test(a_prefix_tells_of_what),
		cmocka_unit_test(moving_keeps_the_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
