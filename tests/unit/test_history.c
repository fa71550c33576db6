/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The history: it comes back, is bounded, and damage anywhere is found. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "file_fixture.h"
#include "history.h"

struct fixture {
	char dir[64], file[96], damaged[96];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "%s/shunt-history-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->file, sizeof(f->file), "%s/" HISTORY_FILE, f->dir);
	snprintf(f->damaged, sizeof(f->damaged), "%s/" HISTORY_FILE ".damaged", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->file);
	unlink(f->damaged);
	if (rmdir(f->dir))
		return -1;
	free(f);
	return 0;
}

static struct history *open_history(const struct fixture *f, struct report *report)
{
	struct history *history;

	assert_int_equal(history_open(f->dir, &history, report), 0);
	return history;
}

static void add(struct history *history, const char *pool, uint64_t number)
{
	assert_int_equal(history_add(history, pool, number, json_pack("{s:I}", "moved", (json_int_t)(number * 10))), 0);
}

static json_int_t moved(const struct history *history, const char *pool, uint64_t number)
{
	json_t *entry = history_find(history, pool, number);
	json_int_t value = entry ? json_integer_value(json_object_get(entry, "moved")) : -1;

	json_decref(entry);
	return value;
}

static size_t count(const struct history *history, const char *pool)
{
	json_t *list = history_list(history, pool);
	size_t n = json_array_size(list);

	json_decref(list);
	return n;
}

static void test_comes_back(void **state)
{
	struct fixture *f = *state;
	struct history *history = open_history(f, NULL);

	for (uint64_t i = 1; i <= 5; i++) {
		add(history, i % 2 ? "web" : "api", i);
		add(history, NULL, i);
		assert_int_equal(history_flush(history, NULL), 0);
	}
	add(history, "web", 9); /* not flushed: lost */
	history_close(history);
	history = open_history(f, NULL);
	assert_int_equal(count(history, "web"), 3);
	assert_int_equal(count(history, "api"), 2);
	assert_int_equal(count(history, NULL), 5);
	assert_int_equal(count(history, "none"), 0);
	assert_int_equal(moved(history, "web", 5), 50);
	assert_int_equal(moved(history, "web", 9), -1);
	assert_int_equal(moved(history, NULL, 2), 20);
	history_close(history);
}

static void test_one_of_the_same_number_is_replaced(void **state)
{
	struct history *history = open_history(*state, NULL);

	add(history, "web", 1);
	assert_int_equal(history_add(history, "web", 1, json_pack("{s:i}", "moved", 77)), 0);
	assert_int_equal(count(history, "web"), 1);
	assert_int_equal(moved(history, "web", 1), 77);
	history_close(history);
}

static void test_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct history *history = open_history(f, NULL);
	struct stat status;

	for (uint64_t i = 1; i <= 3000; i++) {
		add(history, "web", i);
		if (i % 10 == 0)
			add(history, NULL, i / 10);
		assert_int_equal(history_flush(history, NULL), 0);
	}
	assert_int_equal(count(history, "web"), HISTORY_EPOCHS);
	assert_int_equal(count(history, NULL), HISTORY_REVISIONS);
	history_close(history);
	assert_int_equal(stat(f->file, &status), 0);
	assert_true(status.st_size < 200000);
	history = open_history(f, NULL);
	assert_int_equal(count(history, "web"), HISTORY_EPOCHS);
	assert_int_equal(moved(history, "web", 3000), 30000);
	assert_int_equal(moved(history, "web", 3000 - HISTORY_EPOCHS), -1);
	history_close(history);
}

/* Each byte changed in three ways: it is told of, set aside, and what stands before is still there. */
static void test_damage(void **state)
{
	struct fixture *f = *state;
	struct history *history = open_history(f, NULL);
	size_t length;
	char *text;

	for (uint64_t i = 1; i <= 3; i++)
		add(history, "web", i);
	assert_int_equal(history_flush(history, NULL), 0);
	history_close(history);
	text = read_all(f->file, &length);
	for (size_t i = 0; i < length; i++) {
		const char was = text[i], becomes[3] = {(char)(was ^ 1), (char)(was ^ 0x80), was == ' ' ? '\n' : ' '};

		for (int j = 0; j < 3; j++) {
			struct report report = {};

			text[i] = becomes[j];
			write_all(f->file, text, length);
			history = open_history(f, &report);
			assert_int_equal(report.count, 1);
			assert_true(count(history, "web") < 3);
			for (size_t k = 1; k <= count(history, "web"); k++)
				assert_int_equal(moved(history, "web", k), 10 * k);
			add(history, "web", 8);
			assert_int_equal(history_flush(history, NULL), 0);
			history_close(history);
			report_free(&report);
			history = open_history(f, &report);
			assert_int_equal(report.count, 0);
			assert_int_equal(moved(history, "web", 8), 80);
			history_close(history);
			unlink(f->damaged);
		}
		text[i] = was;
	}
	free(text);
}

/* A crash while appending: what was whole stays, and the next append goes over the rest. */
static void test_cut_short(void **state)
{
	struct fixture *f = *state;
	struct history *history = open_history(f, NULL);
	size_t length;
	char *text;

	add(history, "web", 1);
	add(history, "web", 2);
	assert_int_equal(history_flush(history, NULL), 0);
	history_close(history);
	text = read_all(f->file, &length);
	for (size_t i = 20; i < length; i++) {
		write_all(f->file, text, i);
		history = open_history(f, NULL);
		assert_in_range(count(history, "web"), 0, 1);
		add(history, "web", 3);
		assert_int_equal(history_flush(history, NULL), 0);
		history_close(history);
		history = open_history(f, NULL);
		assert_int_equal(moved(history, "web", 3), 30);
		history_close(history);
	}
	assert_int_equal(access(f->damaged, F_OK), -1);
	free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_comes_back), TEST(test_one_of_the_same_number_is_replaced),
		TEST(test_is_bounded), TEST(test_damage),
		TEST(test_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
