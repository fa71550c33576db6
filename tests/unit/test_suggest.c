/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "suggest.h"

static const char *nearest(const char *word)
{
	static const char *const words[] = {"name", "address", "protocol", "ports", "pool", "hash", "unknown-port"};
	struct suggestion near = {};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		suggest(&near, word, words[i]);
	return near.best ? near.best : "";
}

static void misspelt_words_find_theirs(void **state)
{
	(void)state;
	assert_string_equal(nearest("adress"), "address");
	assert_string_equal(nearest("addresse"), "address");
	assert_string_equal(nearest("addrses"), "address");
	assert_string_equal(nearest("port"), "ports");
	assert_string_equal(nearest("pools"), "pool"); /* one edit; "ports" is two */
	assert_string_equal(nearest("nmae"), "name");
	assert_string_equal(nearest("unknown_port"), "unknown-port");
}

static void other_words_find_none(void **state)
{
	static const char long_word[] = "addressaddressaddressaddressaddressaddressaddressaddressaddressad";
	struct suggestion near = {};

	(void)state;
	assert_string_equal(nearest("weight"), "");
	assert_string_equal(nearest("lame-duck"), "");
	assert_string_equal(nearest(""), "");
	assert_string_equal(nearest("meta"), "");
	suggest(&near, long_word, long_word);
	assert_null(near.best);
}

static void a_suggestion_is_a_clause(void **state)
{
	struct suggestion near = {};
	char text[SUGGEST_TEXT_MAX];

	(void)state;
	assert_string_equal(suggest_text(&near, text), "");
	suggest(&near, "poll", "pool");
	assert_string_equal(suggest_text(&near, text), " (did you mean \"pool\"?)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misspelt_words_find_theirs),
		cmocka_unit_test(other_words_find_none),
		cmocka_unit_test(a_suggestion_is_a_clause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
