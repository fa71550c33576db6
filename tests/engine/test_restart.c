/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Start, restart, lost pins, lost or damaged state, and changes that the system refuses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "view.h"

static struct want two_pools(void)
{
	struct want want = want_simple(12);

	want.pools[1] = want.pools[0];
	want.pools[1].slots = 1021;
	want.pools[1].algorithm = "minimal";
	want.services[1].present = true;
	want.services[1].pool = 1;
	return want;
}

/* Adoption: with next hops unknown yet, known again, and published once more: not one write. */
static void test_adoption_writes_nothing(void **state)
{
	struct fixture *f = *state;
	struct want want = two_pools();
	struct view before, after;
	char *text, *again;
	size_t length;

	assert_int_equal(apply(f, &want), 0);
	know(f, 3);
	/* Give the table with a history one. */
	for (uint32_t i = 0; i < 12; i++) {
		want.pools[1].backends[i].weight = 1 + random_below(30);
		want.pools[0].backends[i].weight = 1 + random_below(30);
		assert_int_equal(apply(f, &want), 0);
	}
	text = fixture_read_state(f, &length);
	assert_true(view_read(f, &before));
	for (int round = 0; round < 3; round++) {
		fixture_close(f);
		fixture_open(f);
		assert_non_null(engine_model(f->engine));
		assert_int_equal(engine_publish(f->engine, NULL), 0);
		if (round)
			know(f, 3);
		assert_true(view_read(f, &after));
		assert_true(view_equal(&before, &after));
		view_free(&after);
		again = fixture_read_state(f, &length);
		assert_string_equal(text, again);
		free(again);
	}
	assert_int_equal(backend_info(f, "p0", "b03").reachable, true);
	assert_true(backend_info(f, "p0", "b03").slots > 0);
	view_free(&before);
	free(text);
}

/* A reboot: ids, epochs and phases go on; nothing has slots until its next hop is known on the new maps. */
static void test_lost_pins(void **state)
{
	struct fixture *f = *state;
	struct want want = two_pools();
	struct engine_pool_info before, after;
	struct view view;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	before = pool_info(f, "p0");
	fixture_close(f);
	fixture_lose_pins(f);
	fixture_open(f);
	assert_non_null(engine_model(f->engine));
	assert_false(pool_info(f, "p0").published);
	know(f, 0); /* the caller's batch: no epoch is spent on "none known" */
	after = pool_info(f, "p0");
	assert_int_equal(after.epoch, before.epoch);
	assert_int_equal(after.phase, before.phase + 1);
	assert_int_equal(after.digest, before.digest);
	assert_true(view_read(f, &view));
	view_check(&view);
	view_check_state(f, &view);
	view_free(&view);

	fixture_close(f);
	fixture_lose_pins(f);
	fixture_open(f);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	assert_int_equal(backend_info(f, "p0", "b03").slots, 0);
	assert_int_equal(backend_info(f, "p0", "b03").reachable, false);
	assert_int_equal(pool_info(f, "p0").epoch, before.epoch + 1);
	know(f, 0);
	assert_int_equal(pool_info(f, "p0").epoch, before.epoch + 2);
}

/* The pins go while the engine runs, as when the loader rebuilds them: it opens them again by itself. */
static void test_pins_lost_under_way(void **state)
{
	struct fixture *f = *state;
	struct want want = two_pools();
	struct engine_pool_info before;
	struct view view;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	before = pool_info(f, "p0");
	fixture_lose_pins(f);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	assert_int_equal(pool_info(f, "p0").epoch, before.epoch);
	assert_int_equal(pool_info(f, "p0").digest, before.digest);
	assert_true(view_read(f, &view));
	view_check(&view);
	view_check_state(f, &view);
	view_free(&view);
}

/* The state is lost and the maps are not: traffic goes on until a document comes, and epochs go on after it. */
static void test_lost_state(void **state)
{
	struct fixture *f = *state;
	struct want want = two_pools();
	struct view before, after;
	char path[128];
	uint64_t epoch;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	epoch = pool_info(f, "p0").epoch;
	fixture_close(f);
	snprintf(path, sizeof(path), "%s/state.json", f->state_dir);
	assert_int_equal(unlink(path), 0);
	assert_true(view_read(f, &before));
	fixture_open(f);
	assert_null(engine_model(f->engine));
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	assert_true(view_read(f, &after));
	assert_true(view_equal(&before, &after));
	view_free(&after);
	assert_int_equal(apply(f, &want), 0);
	/* The old tables named the old ids until the new ones were in force: none was taken. */
	for (uint32_t i = 0; i < 12; i++) {
		char name[8];

		snprintf(name, sizeof(name), "b%02u", i);
		assert_false(before.backends[backend_info(f, "p0", name).id].state & 1);
		assert_false(before.backends[backend_info(f, "p1", name).id].state & 1);
	}
	view_free(&before);
	know(f, 0);
	assert_true(pool_info(f, "p0").epoch > epoch);
	assert_true(view_read(f, &after));
	view_check(&after);
	view_check_state(f, &after);
	view_free(&after);
}

/* A state file from a backup: older than the maps.  Its model comes back, its numbers do not. */
static void test_old_state(void **state)
{
	struct fixture *f = *state;
	struct want want = two_pools();
	struct view view;
	char path[128], *old;
	size_t length;
	uint64_t epoch;
	FILE *file;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	old = fixture_read_state(f, &length);
	for (uint32_t i = 0; i < 30; i++) {
		want.pools[0].backends[i % 12].address = 100 + i; /* the old ids go to others */
		want.pools[0].backends[i % 12].weight = 2 + i;
		assert_int_equal(apply(f, &want), 0);
		know(f, 0);
	}
	epoch = pool_info(f, "p0").epoch;
	assert_true(epoch >= 30);
	fixture_close(f);
	snprintf(path, sizeof(path), "%s/state.json", f->state_dir);
	file = fopen(path, "w");
	assert_int_equal(fwrite(old, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
	free(old);
	fixture_open(f);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	know(f, 0);
	assert_true(pool_info(f, "p0").epoch > epoch);
	assert_true(backend_info(f, "p0", "b00").slots > 0);
	assert_true(view_read(f, &view));
	view_check(&view);
	view_check_state(f, &view);
	view_free(&view);
}

static void test_damaged_state(void **state)
{
	struct fixture *f = *state;
	const struct engine_options options = {
		.instance = f->instance, .state_dir = f->state_dir, .capacities = f->capacities};
	struct want want = two_pools();
	struct view before, after;
	struct report report = {};
	struct engine *engine;
	char path[128];
	FILE *file;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	fixture_close(f);
	assert_true(view_read(f, &before));
	snprintf(path, sizeof(path), "%s/state.json", f->state_dir);
	file = fopen(path, "r+");
	fseek(file, 300, SEEK_SET);
	fputc('!', file);
	fclose(file);
	assert_int_equal(engine_open(&options, &engine, &report), -EUCLEAN);
	assert_non_null(strstr(report.entries[0].text, "To recover"));
	report_free(&report);
	assert_true(view_read(f, &after));
	assert_true(view_equal(&before, &after));
	view_free(&before);
	view_free(&after);
}

/* What the model and the tables are, in one number to compare. */
static char *everything(struct fixture *f, struct view *view)
{
	json_t *model = model_json(engine_model(f->engine), MODEL_WITH_KEY);
	char *text = json_dumps(model, JSON_COMPACT);

	json_decref(model);
	assert_true(view_read(f, view));
	view_check(view);
	return text;
}

/* A state folder that cannot be written: refused before anything took effect. */
static void test_unwritable_state(void **state)
{
	struct fixture *f = *state;
	struct want want = two_pools(), other = want;
	struct report report = {};
	struct view before, after;
	struct model *model;
	char *was, *is;

	assert_int_equal(mount("tmpfs", f->state_dir, "tmpfs", 0, "size=1m,mode=0700"), 0);
	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	was = everything(f, &before);
	assert_int_equal(mount(NULL, f->state_dir, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	other.pools[0].backends[0].weight = 99;
	model = model_of(&other);
	assert_int_equal(engine_apply(f->engine, model, NULL, &report), -EROFS);
	assert_non_null(strstr(report.entries[report.count - 1].text, "the change is refused"));
	report_free(&report);
	is = everything(f, &after);
	assert_string_equal(was, is);
	assert_true(view_equal(&before, &after));
	assert_int_equal(mount(NULL, f->state_dir, NULL, MS_REMOUNT, NULL), 0);
	assert_int_equal(engine_apply(f->engine, model, NULL, NULL), 0);
	fixture_close(f);
	assert_int_equal(umount(f->state_dir), 0);
	view_free(&before);
	view_free(&after);
	free(was);
	free(is);
}

/* The kernel refuses half way: the old model stays, on disk too, and the numbers that were tried are used up. */
static void test_refused_publication(void **state)
{
	struct fixture *f = *state;
	char inner[160], away[160];
	struct want want = two_pools(), other = want;
	struct report report = {};
	struct model *model;
	struct view view;
	uint64_t epoch;
	char *was, *is;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	epoch = pool_info(f, "p0").epoch;
	was = everything(f, &view);
	view_free(&view);
	snprintf(inner, sizeof(inner), "%s/inner", engine_maps(f->engine)->dir);
	snprintf(away, sizeof(away), "%s/away", engine_maps(f->engine)->dir);
	assert_int_equal(rename(inner, away), 0);
	other.pools[0].backends[0].weight = 99;
	other.pools[2] = other.pools[0];
	other.services[2].present = true;
	other.services[2].pool = 2;
	model = model_of(&other);
	assert_true(engine_apply(f->engine, model, &(struct engine_change){.document_tag = 77}, &report) < 0);
	assert_true(report.errors > 0);
	report_free(&report);
	assert_int_equal(rename(away, inner), 0);
	is = everything(f, &view);
	view_free(&view);
	assert_string_equal(was, is);
	assert_int_equal(engine_document_tag(f->engine), 0);

	/* A daemon that starts now has the old model too. */
	fixture_close(f);
	fixture_open(f);
	free(is);
	is = everything(f, &view);
	view_free(&view);
	assert_string_equal(was, is);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	assert_true(view_read(f, &view));
	view_check(&view);
	view_check_state(f, &view);
	view_free(&view);

	know(f, 0);
	assert_int_equal(engine_apply(f->engine, model, &(struct engine_change){.document_tag = 77}, NULL), 0);
	assert_true(pool_info(f, "p0").epoch > epoch);
	assert_int_equal(engine_document_tag(f->engine), 77);
	assert_true(view_read(f, &view));
	view_check_state(f, &view);
	view_free(&view);
	free(was);
	free(is);
}

/* A new pool's table is in force, and yet its publication fails: its pin cannot be renamed over a folder. */
static void test_half_published(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(5), other = want;
	struct model *model;
	struct view view;
	uint64_t epoch;
	char pin[160];

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	epoch = pool_info(f, "p0").epoch;
	snprintf(pin, sizeof(pin), "%s/inner/pool-%u-s", engine_maps(f->engine)->dir, pool_info(f, "p0").index + 1);
	assert_int_equal(mkdir(pin, 0700), 0);
	other.pools[1] = other.pools[0];
	model = model_of(&other);
	assert_true(engine_apply(f->engine, model, NULL, NULL) < 0);
	assert_int_equal(pool_info(f, "p0").epoch, epoch);
	assert_true(view_read(f, &view));
	view_check(&view);
	view_free(&view);
	assert_int_equal(rmdir(pin), 0);

	/* The next publication takes it away, and the pool begins above what was seen of it. */
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	assert_true(view_read(f, &view));
	view_check(&view);
	view_check_state(f, &view);
	view_free(&view);
	assert_int_equal(engine_apply(f->engine, model, NULL, NULL), 0);
	assert_int_equal(pool_info(f, "p1").epoch, 2);
	assert_int_equal(pool_info(f, "p0").epoch, epoch);
}

/* The very first document is refused half way: afterwards there is none. */
static void test_refused_first(void **state)
{
	struct fixture *f = *state;
	char inner[160], away[160];
	struct want want = two_pools();
	struct model *model = model_of(&want);
	size_t length;

	snprintf(inner, sizeof(inner), "%s/inner", engine_maps(f->engine)->dir);
	snprintf(away, sizeof(away), "%s/away", engine_maps(f->engine)->dir);
	assert_int_equal(rename(inner, away), 0);
	assert_true(engine_apply(f->engine, model, &(struct engine_change){.document_tag = 77}, NULL) < 0);
	assert_null(engine_model(f->engine));
	assert_null(fixture_read_state(f, &length));
	assert_int_equal(rename(away, inner), 0);
	assert_int_equal(engine_apply(f->engine, model, &(struct engine_change){.document_tag = 77}, NULL), 0);
	know(f, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_adoption_writes_nothing), TEST(test_lost_pins),
		TEST(test_pins_lost_under_way),	    TEST(test_lost_state),
		TEST(test_damaged_state),	    TEST(test_old_state),
		TEST(test_unwritable_state),	    TEST(test_refused_publication),
		TEST(test_refused_first),	    TEST(test_half_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
