/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "utf8.h"

static void printable_text_is_taken(void **state)
{
	static const char *const texts[] = {"",
					    "abc ~",
					    "\xc2\xa0",
					    "\xdf\xbf",
					    "\xe0\xa0\x80",
					    "\xed\x9f\xbf",
					    "\xee\x80\x80",
					    "\xef\xbf\xbf",
					    "\xf0\x90\x80\x80",
					    "\xf4\x8f\xbf\xbf"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		assert_int_equal(utf8_bad(texts[i], strlen(texts[i]), ""), strlen(texts[i]));
}

static void other_bytes_are_found(void **state)
{
	static const char *const texts[] = {
		"ab\x1b",
		"ab\x7f",
		"ab\n",
		"ab\xc2\x80", /* C0, DEL, C1 */
		"ab\xc2\x9f",
		"ab\x80",
		"ab\xbf",
		"ab\xc1\xbf", /* lone continuation, overlong */
		"ab\xe0\x9f\xbf",
		"ab\xed\xa0\x80",
		"ab\xf0\x8f\xbf\xbf",
		"ab\xf4\x90\x80\x80", /* surrogate, too large */
		"ab\xf8\x88\x80",
		"ab\xff",
		"ab\xc3",
		"ab\xe2\x82",
		"ab\xe2\x28\xa1",
		"ab\xc3\x28",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		size_t length = strlen(texts[i]);
		char *exact = malloc(length);

		memcpy(exact, texts[i], length);
		assert_int_equal(utf8_bad(exact, length, ""), 2);
		free(exact);
	}
	assert_int_equal(utf8_bad("a\0b", 3, "\t"), 1);
	assert_int_equal(utf8_bad("a\tb\n", 4, "\t"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printable_text_is_taken),
		cmocka_unit_test(other_bytes_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
