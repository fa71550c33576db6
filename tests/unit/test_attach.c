/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of pinned links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "attach_internal.h"

static void names_come_back(void **state)
{
	struct attach_link link = {
		.instance = "abcdefghijklmnopqrstuvwxyz-1234", .netns = UINT64_MAX, .ifindex = UINT32_MAX};
	struct attach_link back;
	char pin[sizeof(link.pin)];

	(void)state;
	for (int i = 0; i < 4; i++) {
		link.role = i & 1 ? PROGRAM_DECAP : PROGRAM_LB;
		link.frags = i & 2;
		attach_pin_path(&link, pin);
		memset(&back, 0, sizeof(back));
		assert_true(attach_parse_pin(strrchr(pin, '/') + 1, &back));
		assert_true(back.netns == link.netns && back.ifindex == link.ifindex);
		assert_true(back.role == link.role && back.frags == link.frags);
	}
	assert_string_equal(pin, SHUNT_PIN_ROOT "/abcdefghijklmnopqrstuvwxyz-1234/links/"
						"18446744073709551615-4294967295-decap-frags");
}

static void other_names_are_left_alone(void **state)
{
	const char *const names[] = {"",
				     ".",
				     "1-2-lb",
				     "1-2-lb-",
				     "1-2-lb-plain-x",
				     "1-2-lb-plainx",
				     "x-2-lb-plain",
				     "1--lb-plain",
				     "1-2-router-plain",
				     "1-2-lb-multi",
				     "1-2-plain-lb",
				     "eth0"};
	struct attach_link link = {.ifindex = 7};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(attach_parse_pin(names[i], &link));
	assert_int_equal(link.ifindex, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_come_back),
		cmocka_unit_test(other_names_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
