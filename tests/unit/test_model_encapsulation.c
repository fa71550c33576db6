/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "model.h"

static void overhead_is_the_longest_header(void **state)
{
	static const struct {
		enum model_encapsulation type;
		uint32_t v4, v6;
	} cases[] = {{MODEL_IPIP, 20, 40}, {MODEL_GUE, 20 + 8 + 4 + 20, 40 + 8 + 4 + 20}, {MODEL_L2, 0, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct model_pool pool = {.encapsulation = cases[i].type};

		assert_int_equal(model_overhead(&pool, true), cases[i].v4);
		assert_int_equal(model_overhead(&pool, false), cases[i].v6);
	}
}

static void sources_are_read_and_written(void **state)
{
	static const struct {
		const char *text, *canonical;
		unsigned int bits;
		bool v4;
	} cases[] = {{"10.0.0.1", "10.0.0.1", 0, true},		{"10.0.0.1/32", "10.0.0.1", 0, true},
		     {"10.0.0.0/8", "10.0.0.0/8", 24, true},	{"::ffff:10.0.0.1", "10.0.0.1", 0, true},
		     {"fd00::1", "fd00::1", 0, false},		{"fd00:0::/64", "fd00::/64", 64, false},
		     {"fd00::80/121", "fd00::80/121", 7, false}};
	char text[ADDR_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct model_source source = {};

		assert_int_equal(model_source_parse(cases[i].text, &source), 0);
		assert_true(source.given);
		assert_string_equal(model_source_text(&source, text), cases[i].canonical);
		assert_int_equal(model_source_bits(&source), cases[i].bits);
		assert_int_equal(model_source_is_v4(&source), cases[i].v4);
	}
}

static void what_is_no_source_leaves_the_output(void **state)
{
	static const char *const cases[] = {"", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "name", "fd00::1/64"};
	struct model_source source = {.prefix.length = 7};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(model_source_parse(cases[i], &source), -EINVAL);
		assert_false(source.given);
		assert_int_equal(source.prefix.length, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overhead_is_the_longest_header),
		cmocka_unit_test(sources_are_read_and_written),
		cmocka_unit_test(what_is_no_source_leaves_the_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
