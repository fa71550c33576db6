/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state file: all of it comes back, damage anywhere is found, and a refused write leaves the old file. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "document.h"
#include "file_fixture.h"
#include "state.h"

struct fixture {
	char root[64], dir[96], file[160], new_file[160];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	/* In memory where that is possible: thousands of small files would wait for the disk. */
	snprintf(f->root, sizeof(f->root), "%s/shunt-state-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(f->root))
		return -1;
	snprintf(f->dir, sizeof(f->dir), "%s/a/b", f->root);
	snprintf(f->file, sizeof(f->file), "%s/" STATE_FILE, f->dir);
	snprintf(f->new_file, sizeof(f->new_file), "%s/" STATE_FILE ".new", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[128];

	unlink(f->file);
	unlink(f->new_file);
	rmdir(f->new_file);
	rmdir(f->dir);
	snprintf(path, sizeof(path), "%s/a", f->root);
	rmdir(path);
	if (rmdir(f->root))
		return -1;
	free(f);
	return 0;
}

static const char document[] =
	"{version: 1, hash-key: 000102030405060708090a0b0c0d0e0f, pools: ["
	"{name: api, table: {algorithm: minimal, size: 251}, encapsulation: {type: ipip, source: [192.0.2.1]},"
	" backends: [{name: a1, address: 10.0.0.1, weight: 0}, {name: a2, address: 10.0.0.2, weight: 65535}]},"
	"{name: web, table: {algorithm: maglev, size: 65537}, backends: ["
	"{name: w1, address: 'fd00::1', weight: 3}]}], services: ["
	"{name: any, address: 192.0.2.11, protocol: udp, ports: any, pool: api, hash: source},"
	"{name: www, address: '2001:db8::10', protocol: tcp, ports: [80, 8000-8099], pool: web}]}";

static struct model *parse(const char *text)
{
	struct report report = {};
	struct model *model;

	assert_int_equal(document_parse(text, strlen(text), &model, &report), 0);
	report_free(&report);
	return model;
}

static void make_state(struct state *state)
{
	struct model *model = parse(document);

	assert_int_equal(state_init(state, model), 0);
	state->revision = 41;
	state->document_tag = 0xfedcba9876543210ull;
	state->epoch_floor = 17;
	state->origin = (struct origin){1700000000, 1000, 77, true, "ada", "more \"weight\""};
	state->pending = (struct state_pending){40, 1700000300, 300};
	state->pools[0] = (struct state_pool){5, 3, 1ull << 40, 0x00c0ffee00c0ffeeull, state->pools[0].backends};
	state->pools[1] = (struct state_pool){65534, UINT32_MAX, 9, UINT64_MAX, state->pools[1].backends};
	state->pools[0].backends[0] = (struct state_backend){.id = 0, .generation = 15};
	state->pools[0].backends[1] = (struct state_backend){.id = 0x7ffe};
	state->pools[1].backends[0] = (struct state_backend){.id = 7, .generation = 1};
	state->counters[0] = 65535;
	state->counters[1] = 0;
}

static void drop(struct state *state)
{
	struct model *model = state->model;

	state_free(state);
	model_free(model);
}

static void assert_same(const struct state *a, const struct state *b)
{
	json_t *x = model_json(a->model, MODEL_WITH_KEY), *y = model_json(b->model, MODEL_WITH_KEY);

	assert_true(json_equal(x, y));
	json_decref(x);
	json_decref(y);
	assert_int_equal(a->revision, b->revision);
	assert_int_equal(a->document_tag, b->document_tag);
	assert_int_equal(a->epoch_floor, b->epoch_floor);
	assert_memory_equal(&a->pending, &b->pending, sizeof(a->pending));
	assert_int_equal(a->origin.time, b->origin.time);
	assert_int_equal(a->origin.uid, b->origin.uid);
	assert_int_equal(a->origin.pid, b->origin.pid);
	assert_int_equal(a->origin.forced, b->origin.forced);
	assert_string_equal(a->origin.user, b->origin.user);
	assert_string_equal(a->origin.why, b->origin.why);
	for (size_t i = 0; i < a->model->n_pools; i++) {
		const struct state_pool *p = &a->pools[i], *q = &b->pools[i];

		assert_int_equal(p->index, q->index);
		assert_int_equal(p->phase, q->phase);
		assert_int_equal(p->epoch, q->epoch);
		assert_int_equal(p->digest, q->digest);
		assert_memory_equal(p->backends, q->backends,
				    a->model->pools[i].n_backends * sizeof(struct state_backend));
	}
	assert_memory_equal(a->counters, b->counters, a->model->n_services * sizeof(*a->counters));
}

static void test_round_trip(void **arg)
{
	struct fixture *f = *arg;
	struct state state, back;
	struct stat stat_of;

	assert_int_equal(state_load(f->dir, &back, NULL), -ENOENT);
	make_state(&state);
	state.pools[0].backends[0].draining = 1700000000;
	state.pools[0].backends[0].maintenance = true;
	state.pools[0].backends[1].ramp = 1700000000123;
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	assert_int_equal(state_load(f->dir, &back, NULL), 0);
	assert_same(&state, &back);
	assert_true(back.model->has_key);
	assert_memory_equal(back.model->key, state.model->key, MODEL_KEY_BYTES);
	assert_int_equal(stat(f->file, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 07777, 0600);
	assert_int_equal(stat(f->dir, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 07777, 0700);
	assert_int_equal(access(f->new_file, F_OK), -1);
	drop(&back);

	/* A key that came from a file is kept beside the file's name. */
	state.model->key_file = strdup("/etc/shunt/hash.key");
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	assert_int_equal(state_load(f->dir, &back, NULL), 0);
	assert_same(&state, &back);
	assert_string_equal(back.model->key_file, "/etc/shunt/hash.key");
	assert_true(back.model->has_key);
	drop(&back);
	drop(&state);
	assert_int_equal(state_remove(f->dir), 0);
	assert_int_equal(state_remove(f->dir), 0);
	assert_int_equal(state_load(f->dir, &back, NULL), -ENOENT);
}

/* A file as the first release wrote it, kept in the repository: to be read for ever. */
static void test_format_1(void **arg)
{
	struct state state, back;

	(void)arg;
	make_state(&state);
	state.origin = (struct origin){};
	state.pending = (struct state_pending){};
	assert_int_equal(state_load("tests/golden/state-1", &back, NULL), 0);
	assert_same(&state, &back);
	drop(&state);
	drop(&back);
}

/* The second format, which added the change and what waits to be confirmed. */
static void test_format_2(void **arg)
{
	struct state state, back;

	(void)arg;
	make_state(&state);
	assert_int_equal(state_load("tests/golden/state-2", &back, NULL), 0);
	assert_same(&state, &back);
	drop(&state);
	drop(&back);
}

/* The state that is replaced stays as a revision, whole; the oldest go. */
static void test_revisions(void **arg)
{
	struct fixture *f = *arg;
	struct state state, back;
	char path[160];

	make_state(&state);
	for (state.revision = 1; state.revision <= STATE_REVISIONS_KEPT + 3; state.revision++) {
		if (state.revision > 1)
			assert_int_equal(state_keep_revision(f->dir, state.revision - 1, NULL), 0);
		assert_int_equal(state_save(f->dir, &state, NULL), 0);
	}
	assert_int_equal(state_keep_revision(f->dir, state.revision - 1, NULL), 0);
	assert_int_equal(state_keep_revision(f->dir, state.revision - 1, NULL), 0);
	for (uint64_t i = 1; i < state.revision; i++) {
		assert_int_equal(state_has_revision(f->dir, i), i >= state.revision - STATE_REVISIONS_KEPT);
		if (state_has_revision(f->dir, i)) {
			assert_int_equal(state_load_revision(f->dir, i, &back, NULL), 0);
			assert_int_equal(back.revision, i);
			drop(&back);
		} else {
			assert_int_equal(state_load_revision(f->dir, i, &back, NULL), -ENOENT);
		}
		snprintf(path, sizeof(path), "%s/" STATE_REVISIONS "/%d.json", f->dir, (int)i);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/" STATE_REVISIONS, f->dir);
	assert_int_equal(rmdir(path), 0);
	drop(&state);
}

static void expect_damage(struct fixture *f, const char *what)
{
	struct report report = {};
	struct state out = {.revision = 1234};

	if (state_load(f->dir, &out, &report) != -EUCLEAN)
		fail_msg("not found: %s", what);
	assert_int_equal(out.revision, 1234);
	assert_int_equal(report.errors, 1);
	assert_non_null(strstr(report.entries[0].text, f->file));
	assert_non_null(strstr(report.entries[0].text, "To recover"));
	assert_null(strstr(report.entries[0].text, "000102030405"));
	report_free(&report);
}

/* Each byte changed in its lowest bit, in its highest, and to a space: each is found; so is each shorter file. */
static void test_damage(void **arg)
{
	struct fixture *f = *arg;
	struct state state;
	size_t length;
	char *text, what[64];

	make_state(&state);
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	drop(&state);
	text = read_all(f->file, &length);
	assert_in_range(length, 500, 5000);
	for (size_t i = 0; i < length; i++) {
		const char was = text[i], becomes[3] = {(char)(was ^ 1), (char)(was ^ 0x80), was == ' ' ? '\n' : ' '};

		for (int j = 0; j < 3; j++) {
			text[i] = becomes[j];
			write_all(f->file, text, length);
			snprintf(what, sizeof(what), "byte %zu of %zu, kind %d", i, length, j);
			expect_damage(f, what);
		}
		text[i] = was;
	}
	for (size_t i = 0; i < length; i++) {
		write_all(f->file, text, i);
		snprintf(what, sizeof(what), "cut to %zu of %zu bytes", i, length);
		expect_damage(f, what);
	}
	text[length] = '\n';
	write_all(f->file, text, length + 1);
	expect_damage(f, "one byte more");
	free(text);
}

static void test_other_format(void **arg)
{
	struct fixture *f = *arg;
	struct report report = {};
	struct state state;
	size_t length;
	char *text;

	make_state(&state);
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	drop(&state);
	text = read_all(f->file, &length);
	assert_memory_equal(text, "{\"shunt-state\":2,", 17);
	text[15] = '3';
	write_all(f->file, text, length);
	free(text);
	assert_int_equal(state_load(f->dir, &state, &report), -EUCLEAN);
	assert_non_null(strstr(report.entries[0].text, "it has format 3, and this program reads formats 1 to 2"));
	report_free(&report);
}

/* A well-formed file whose numbers are not those of its model is refused too. */
static void test_wrong_numbers(void **arg)
{
	struct fixture *f = *arg;
	struct state state;

	make_state(&state);
	state.pools[0].backends[0].generation = 16;
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	expect_damage(f, "generation 16");
	state.pools[0].backends[0].generation = 15;
	state.pools[0].backends[0].id = SHUNT_BACKENDS_MAX;
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	expect_damage(f, "id 0x7fff");
	state.pools[0].backends[0].id = 0;
	state.counters[1] = SHUNT_SERVICES_MAX;
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	expect_damage(f, "counter 65536");
	drop(&state);
}

static void test_not_a_file(void **arg)
{
	struct fixture *f = *arg;
	struct state state;

	make_state(&state);
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	assert_int_equal(unlink(f->file), 0);
	assert_int_equal(mkdir(f->file, 0700), 0);
	expect_damage(f, "a folder");
	assert_int_equal(rmdir(f->file), 0);
	drop(&state);
}

/* Something that cannot be overwritten stands where the new file would be written. */
static void test_refused_write(void **arg)
{
	struct fixture *f = *arg;
	struct report report = {};
	struct state state, back;

	make_state(&state);
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	assert_int_equal(mkdir(f->new_file, 0700), 0);
	state.revision = 42;
	assert_int_equal(state_save(f->dir, &state, &report), -EISDIR);
	assert_non_null(strstr(report.entries[0].text, "the change is refused"));
	report_free(&report);
	assert_int_equal(state_load(f->dir, &back, NULL), 0);
	assert_int_equal(back.revision, 41);
	drop(&back);
	drop(&state);
}

/* A real file system without room: a small tmpfs over the folder. */
static void test_disk_full(void **arg)
{
	struct fixture *f = *arg;
	char filler[160], *zeros = calloc(1, 1 << 17);
	struct state state, back;
	int fd;

	make_state(&state);
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	if (mount("tmpfs", f->dir, "tmpfs", 0, "size=64k,mode=0700")) {
		drop(&state);
		free(zeros);
		skip(); /* needs root */
	}
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	snprintf(filler, sizeof(filler), "%s/filler", f->dir);
	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	assert_true(write(fd, zeros, 1 << 17) > 0);
	close(fd);
	state.revision = 42;
	assert_int_equal(state_save(f->dir, &state, NULL), -ENOSPC);
	assert_int_equal(access(f->new_file, F_OK), -1);
	assert_int_equal(state_load(f->dir, &back, NULL), 0);
	assert_int_equal(back.revision, 41);
	drop(&back);
	assert_int_equal(mount(NULL, f->dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_int_equal(state_save(f->dir, &state, NULL), -EROFS);
	assert_int_equal(state_load(f->dir, &back, NULL), 0);
	drop(&back);
	assert_int_equal(umount(f->dir), 0);
	drop(&state);
	free(zeros);
}

/* Whenever the writer is killed, the file is one of those it wrote, whole. */
static void test_killed_writer(void **arg)
{
	struct fixture *f = *arg;
	struct state state, back;
	uint64_t last = 0;

	make_state(&state);
	state.revision = 1;
	assert_int_equal(state_save(f->dir, &state, NULL), 0);
	for (int round = 0; round < 30; round++) {
		pid_t child = fork();

		if (!child) {
			for (;; state.revision++)
				state_save(f->dir, &state, NULL);
		}
		usleep((useconds_t)(1000 + round * 331));
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_int_equal(state_load(f->dir, &back, NULL), 0);
		assert_true(back.revision >= last);
		last = state.revision = back.revision;
		drop(&back);
	}
	assert_true(last > 30);
	drop(&state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_round_trip),	  TEST(test_format_1),	   TEST(test_format_2),	     TEST(test_revisions),
		TEST(test_damage),	  TEST(test_other_format), TEST(test_wrong_numbers), TEST(test_not_a_file),
		TEST(test_refused_write), TEST(test_disk_full),	   TEST(test_killed_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
