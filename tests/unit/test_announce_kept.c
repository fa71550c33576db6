/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is kept of announcements: all of it comes back, damage anywhere is found, and a refused write changes nothing.
 */
#include <errno.h>
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

#include "addr.h"
#include "announce_kept.h"
#include "file_fixture.h"

struct fixture {
	char dir[64], file[96], blocker[96];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "%s/shunt-kept-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(f->dir))
		return -1;
	snprintf(f->file, sizeof(f->file), "%s/" ANNOUNCE_FILE, f->dir);
	snprintf(f->blocker, sizeof(f->blocker), "%s/" ANNOUNCE_FILE ".new", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int ret;

	unlink(f->file);
	ret = rmdir(f->dir);
	free(f);
	return ret;
}

static union shunt_address some_up[2];

static struct announce_kept some(void)
{
	struct announce_kept kept = {.tables = {100, UINT32_MAX}, .n_tables = 2, .n_interfaces = 2};

	addr_parse("192.0.2.10", &some_up[0]);
	addr_parse("2001:db8::10", &some_up[1]);
	kept.drained = (struct origin){.time = 1790000000, .uid = 7, .pid = 8, .user = "op", .why = "new \"disks\""};
	snprintf(kept.hook, sizeof(kept.hook), "tell-bgp.sh");
	kept.up = some_up;
	kept.n_up = 2;
	kept.interfaces[0] = (struct announce_interface){"eth0", ATTACH_NATIVE};
	kept.interfaces[1] = (struct announce_interface){"eth1", ATTACH_GENERIC};
	return kept;
}

static void assert_same(const struct announce_kept *a, const struct announce_kept *b)
{
	assert_int_equal(a->n_tables, b->n_tables);
	assert_memory_equal(a->tables, b->tables, a->n_tables * sizeof(*a->tables));
	assert_int_equal(a->drained.time, b->drained.time);
	assert_int_equal(a->drained.uid, b->drained.uid);
	assert_string_equal(a->drained.why, b->drained.why);
	assert_string_equal(a->hook, b->hook);
	assert_int_equal(a->n_up, b->n_up);
	if (a->n_up)
		assert_memory_equal(a->up, b->up, a->n_up * sizeof(*a->up));
	assert_int_equal(a->n_interfaces, b->n_interfaces);
	for (size_t i = 0; i < a->n_interfaces; i++) {
		assert_string_equal(a->interfaces[i].name, b->interfaces[i].name);
		assert_int_equal(a->interfaces[i].mode, b->interfaces[i].mode);
	}
}

static void save(const struct fixture *f, const struct announce_kept *kept)
{
	assert_int_equal(announce_kept_save(f->dir, kept, NULL), 0);
}

static void test_all_comes_back(void **state)
{
	struct announce_kept kept = some(), found;
	const struct announce_kept nothing = {};

	assert_int_equal(announce_kept_load(((struct fixture *)*state)->dir, &found, NULL), 0);
	assert_same(&nothing, &found);
	free(found.up);
	save(*state, &kept);
	assert_int_equal(announce_kept_load(((struct fixture *)*state)->dir, &found, NULL), 0);
	assert_same(&kept, &found);
	free(found.up);
	save(*state, &nothing);
	assert_int_equal(announce_kept_load(((struct fixture *)*state)->dir, &found, NULL), 0);
	assert_same(&nothing, &found);
	free(found.up);
}

static void expect_damage(const struct fixture *f, const char *text, size_t length)
{
	struct announce_kept found = {.n_tables = 9};
	struct report report = {};

	write_all(f->file, text, length);
	assert_int_equal(announce_kept_load(f->dir, &found, &report), -EUCLEAN);
	assert_int_equal(found.n_tables, 9);
	assert_non_null(strstr(report_first(&report, ""), "is damaged"));
	report_free(&report);
}

static void test_every_flipped_byte_and_every_cut_is_found(void **state)
{
	const struct fixture *f = *state;
	struct announce_kept kept = some(), found;
	size_t length;
	char *text;

	save(f, &kept);
	text = read_all(f->file, &length);
	for (size_t i = 0; i < length; i++) {
		for (int bit = 0; bit < 8; bit++) {
			text[i] ^= (char)(1 << bit);
			expect_damage(f, text, length);
			text[i] ^= (char)(1 << bit);
		}
		expect_damage(f, text, i);
	}
	write_all(f->file, text, length);
	assert_int_equal(announce_kept_load(f->dir, &found, NULL), 0);
	free(found.up);
	free(text);
}

static void test_a_refused_write_changes_nothing(void **state)
{
	const struct fixture *f = *state;
	struct announce_kept kept = some(), other = {}, found;
	struct report report = {};

	save(f, &kept);
	assert_int_equal(mkdir(f->blocker, 0700), 0);
	assert_int_equal(announce_kept_save(f->dir, &other, &report), -EISDIR);
	assert_non_null(strstr(report_first(&report, ""), "cannot write"));
	assert_int_equal(rmdir(f->blocker), 0);
	assert_int_equal(announce_kept_load(f->dir, &found, NULL), 0);
	assert_same(&kept, &found);
	free(found.up);
	report_free(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_all_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_every_flipped_byte_and_every_cut_is_found, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_refused_write_changes_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
