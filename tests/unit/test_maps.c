/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The pinned maps on the real kernel (root), each test in an instance of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "maps_internal.h"

static const struct maps_capacities small = {.services = 8, .addresses = 4, .pools = 4, .backends = 16, .flows = 64};

struct fixture {
	char instance[32];
	char dir[PIN_PATH_MAX];
	struct report report;
	struct maps maps;
};

static int setup(void **state)
{
	static unsigned int count;
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->instance, sizeof(f->instance), "unit-%d-%u", getpid(), count++);
	maps_set_dir(f->instance, &set_lb, "", f->dir);
	*state = f;
	return maps_open(f->instance, &small, &f->maps, &f->report);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char path[PIN_PATH_MAX];

	maps_close(&f->maps);
	snprintf(path, sizeof(path), SHUNT_PIN_ROOT "/%s", f->instance);
	maps_remove_tree(path);
	snprintf(path, sizeof(path), "/run/shunt/%s.lock", f->instance);
	unlink(path);
	report_free(&f->report);
	free(f);
	return 0;
}

static bool reported(const struct report *report, const char *part)
{
	for (size_t i = 0; i < report->count; i++)
		if (strstr(report->entries[i].text, part))
			return true;
	return false;
}

static void fill(const struct fixture *f, void *value, uint64_t epoch)
{
	memset(value, 0, maps_inner_size(&f->maps, MAPS_TABLE_S));
	((struct shunt_table *)value)->epoch = epoch;
}

static uint64_t epoch_in_force(const struct fixture *f, uint32_t pool)
{
	void *value = malloc(maps_inner_size(&f->maps, MAPS_TABLE_S));
	uint64_t epoch = UINT64_MAX;

	if (!maps_inner_read(&f->maps, MAPS_TABLE_S, pool, value))
		epoch = ((struct shunt_table *)value)->epoch;
	free(value);
	return epoch;
}

static bool exists(const struct fixture *f, const char *name)
{
	char path[PIN_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/" PIN_INNER "/%s", f->dir, name);
	return !access(path, F_OK);
}

static void instance_names(void **state)
{
	const char *const bad[] = {"", "A", "1a", "a.b", "a/b", "-a", "a_b", "abcdefghijklmnopqrstuvwxyz123456"};
	struct report report = {};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(maps_check_instance(bad[i], &report), -EINVAL);
	assert_int_equal(report.errors, sizeof(bad) / sizeof(bad[0]));
	assert_int_equal(maps_check_instance("a", NULL), 0);
	assert_int_equal(maps_check_instance("abcdefghijklmnopqrstuvwxyz-1234", NULL), 0);
	report_free(&report);
}

static void capacity_limits(void **state)
{
	struct maps_capacities want = {.backends = SHUNT_BACKENDS_MAX + 1, .pools = SHUNT_POOLS_MAX};
	struct shunt_meta meta = {};
	struct report report = {};

	(void)state;
	assert_int_equal(maps_check_capacities(&want, &meta, &report), -EINVAL);
	assert_int_equal(meta.pools, 0);
	assert_int_equal(report.errors, 1);
	assert_true(reported(&report, "--backends 32768: must be between 1 and 32767"));
	want.backends = 0;
	assert_int_equal(maps_check_capacities(&want, &meta, &report), 0);
	assert_int_equal(meta.backends, SHUNT_DEFAULT_BACKENDS);
	assert_int_equal(meta.pools, SHUNT_POOLS_MAX);
	report_free(&report);
}

static void opening_again_finds_the_same_maps(void **state)
{
	struct fixture *f = *state;
	struct maps again;

	assert_int_equal(maps_open(f->instance, NULL, &again, &f->report), 0);
	assert_int_equal(maps_id(again.backends), maps_id(f->maps.backends));
	assert_int_equal(again.meta.backends, 16);
	assert_int_equal(again.meta.serial, 1);
	assert_true(maps_current(&again));
	maps_close(&again);
	assert_int_equal(maps_open_existing(f->instance, &again, &f->report), 0);
	assert_string_equal(again.instance, f->instance);
	maps_close(&again);
}

static void another_capacity_names_the_upgrade(void **state)
{
	struct fixture *f = *state;
	struct maps_capacities want = {.backends = 17};
	struct maps again;

	assert_int_equal(maps_open(f->instance, &want, &again, &f->report), -ESTALE);
	assert_true(reported(&f->report, "--backends 17"));
	assert_true(maps_current(&f->maps));
}

static void missing_is_not_an_error(void **state)
{
	struct fixture *f = *state;
	struct maps maps;

	assert_int_equal(maps_open_existing("unit-missing", &maps, &f->report), -ENOENT);
	assert_int_equal(f->report.count, 0);
}

static void a_half_made_set_is_built_again(void **state)
{
	struct fixture *f = *state;
	char stage[PIN_PATH_MAX];
	struct maps maps;

	maps_close(&f->maps);
	maps_set_dir(f->instance, &set_lb, PIN_STAGE, stage);
	assert_int_equal(rename(f->dir, stage), 0);
	assert_int_equal(maps_open_existing(f->instance, &maps, &f->report), -ENOENT);
	assert_int_equal(maps_open(f->instance, &small, &f->maps, &f->report), 0);
	assert_int_not_equal(access(stage, F_OK), 0);
}

static void a_foreign_pin_is_refused(void **state)
{
	struct fixture *f = *state;
	char path[PIN_PATH_MAX + 32];
	struct maps maps;

	snprintf(path, sizeof(path), "%s/" SHUNT_MAP_BACKENDS, f->dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(bpf_obj_pin(f->maps.ifaces, path), 0);
	assert_int_equal(maps_open_existing(f->instance, &maps, &f->report), -EUCLEAN);
	assert_true(reported(&f->report, path));
}

static void values_come_back(void **state)
{
	struct fixture *f = *state;
	size_t size = maps_inner_size(&f->maps, MAPS_SNAPSHOT);
	uint8_t *value = malloc(size), *back = calloc(1, size);

	for (size_t i = 0; i < size; i++)
		value[i] = (uint8_t)(i * 7);
	assert_int_equal(maps_inner_read(&f->maps, MAPS_SNAPSHOT, 0, back), -ENOENT);
	assert_int_equal(maps_inner_publish(&f->maps, MAPS_SNAPSHOT, 0, value), 0);
	assert_int_equal(maps_inner_read(&f->maps, MAPS_SNAPSHOT, 0, back), 0);
	assert_memory_equal(value, back, size);
	free(value);
	free(back);
}

static void the_last_table_is_in_force(void **state)
{
	struct fixture *f = *state;
	void *value = malloc(maps_inner_size(&f->maps, MAPS_TABLE_S));

	for (uint64_t epoch = 1; epoch <= 5; epoch++) {
		fill(f, value, epoch);
		assert_int_equal(maps_inner_publish(&f->maps, MAPS_TABLE_S, 3, value), 0);
		assert_int_equal(epoch_in_force(f, 3), epoch);
	}
	assert_true(exists(f, "pool-3-s"));
	assert_false(exists(f, "pool-3-s-new"));
	assert_int_equal(maps_inner_publish(&f->maps, MAPS_TABLE_S, 4, value), -E2BIG);
	assert_false(exists(f, "pool-4-s-new"));
	assert_int_equal(maps_inner_remove(&f->maps, MAPS_TABLE_S, 3), 0);
	assert_int_equal(epoch_in_force(f, 3), UINT64_MAX);
	assert_false(exists(f, "pool-3-s"));
	free(value);
}

/* A crash after the outer map was updated: the new value is in force, under its staged name. */
static void a_crash_after_the_swap_keeps_the_new_value(void **state)
{
	struct fixture *f = *state;
	void *value = malloc(maps_inner_size(&f->maps, MAPS_TABLE_S));
	char now[PIN_PATH_MAX + 64], staged[PIN_PATH_MAX + 64];
	struct maps again;

	fill(f, value, 7);
	assert_int_equal(maps_inner_publish(&f->maps, MAPS_TABLE_S, 1, value), 0);
	snprintf(now, sizeof(now), "%s/" PIN_INNER "/pool-1-s", f->dir);
	snprintf(staged, sizeof(staged), "%s/" PIN_INNER "/pool-1-s-new", f->dir);
	assert_int_equal(rename(now, staged), 0);
	assert_int_equal(epoch_in_force(f, 1), 7);
	assert_int_equal(maps_open(f->instance, NULL, &again, &f->report), 0);
	maps_close(&again);
	assert_true(exists(f, "pool-1-s"));
	assert_false(exists(f, "pool-1-s-new"));
	assert_int_equal(epoch_in_force(f, 1), 7);
	free(value);
}

/* A crash before it: the old value stays, and the staged pin goes at the next publication. */
static void a_crash_before_the_swap_keeps_the_old_value(void **state)
{
	struct fixture *f = *state;
	void *value = malloc(maps_inner_size(&f->maps, MAPS_TABLE_S));
	char staged[PIN_PATH_MAX + 64];
	int fd;

	fill(f, value, 8);
	assert_int_equal(maps_inner_publish(&f->maps, MAPS_TABLE_S, 2, value), 0);
	fd = maps_create_inner(maps_inner_size(&f->maps, MAPS_TABLE_S));
	snprintf(staged, sizeof(staged), "%s/" PIN_INNER "/pool-2-s-new", f->dir);
	assert_int_equal(bpf_obj_pin(fd, staged), 0);
	close(fd);
	assert_int_equal(epoch_in_force(f, 2), 8);
	fill(f, value, 9);
	assert_int_equal(maps_inner_publish(&f->maps, MAPS_TABLE_S, 2, value), 0);
	assert_int_equal(epoch_in_force(f, 2), 9);
	assert_false(exists(f, "pool-2-s-new"));
	free(value);
}

static void publish_and_rename(const struct fixture *f, uint32_t pool)
{
	void *value = malloc(maps_inner_size(&f->maps, MAPS_TABLE_S));
	char now[PIN_PATH_MAX + 64], staged[PIN_PATH_MAX + 64];

	fill(f, value, pool);
	assert_int_equal(maps_inner_publish(&f->maps, MAPS_TABLE_S, pool, value), 0);
	snprintf(now, sizeof(now), "%s/" PIN_INNER "/pool-%u-s", f->dir, pool);
	snprintf(staged, sizeof(staged), "%s/" PIN_INNER "/pool-%u-s-new", f->dir, pool);
	assert_int_equal(rename(now, staged), 0);
	free(value);
}

/* A crash while a table is taken away: before the outer map was changed it stays, afterwards it is gone. */
static void a_crash_while_removing(void **state)
{
	struct fixture *f = *state;
	const uint32_t kept = 1, gone = 2;
	struct maps again;

	publish_and_rename(f, kept);
	publish_and_rename(f, gone);
	assert_int_equal(bpf_map_delete_elem(f->maps.tables[SHUNT_TABLE_S], &gone), 0);
	assert_int_equal(epoch_in_force(f, kept), kept);
	assert_int_equal(epoch_in_force(f, gone), UINT64_MAX);
	assert_int_equal(maps_open(f->instance, NULL, &again, &f->report), 0);
	maps_close(&again);
	assert_true(exists(f, "pool-1-s"));
	assert_false(exists(f, "pool-1-s-new"));
	assert_false(exists(f, "pool-2-s"));
	assert_false(exists(f, "pool-2-s-new"));
	assert_int_equal(epoch_in_force(f, kept), kept);
	assert_true(maps_inner_exists(&f->maps, MAPS_TABLE_S, kept));
	assert_false(maps_inner_exists(&f->maps, MAPS_TABLE_S, gone));
}

static void maps_of_a_replaced_set_publish_nothing(void **state)
{
	struct fixture *f = *state;
	void *value = calloc(1, maps_inner_size(&f->maps, MAPS_TABLE_S));
	struct maps other;

	assert_int_equal(maps_remove_tree(f->dir), 0);
	assert_false(maps_current(&f->maps));
	assert_int_equal(maps_open(f->instance, &small, &other, &f->report), 0);
	assert_false(maps_current(&f->maps));
	assert_int_equal(maps_inner_publish(&f->maps, MAPS_TABLE_S, 0, value), -ESTALE);
	assert_false(exists(f, "pool-0-s"));
	maps_close(&other);
	free(value);
}

static void the_lock_excludes(void **state)
{
	struct fixture *f = *state;
	int lock = maps_lock(f->instance, 0);

	assert_true(lock >= 0);
	assert_int_equal(maps_lock(f->instance, 20), -EBUSY);
	close(lock);
	lock = maps_lock(f->instance, 0);
	assert_true(lock >= 0);
	close(lock);
}

static void counters_add_up(void **state)
{
	struct fixture *f = *state;
	struct shunt_stats *cpu = calloc(f->maps.n_cpus, sizeof(*cpu)), sum;
	struct shunt_reasons *reasons = calloc(f->maps.n_cpus, sizeof(*reasons));
	uint64_t out[SHUNT_NR_REASONS];
	uint32_t key = 5, zero = 0;

	for (int i = 0; i < f->maps.n_cpus; i++) {
		cpu[i] = (struct shunt_stats){.packets = 1ull << 33, .bytes = 100};
		reasons[i].packets[SHUNT_FORWARD_TX] = 3;
	}
	assert_int_equal(bpf_map_update_elem(f->maps.backend_stats, &key, cpu, BPF_ANY), 0);
	assert_int_equal(maps_stats_read(&f->maps, f->maps.backend_stats, key, &sum), 0);
	assert_true(sum.packets == (uint64_t)f->maps.n_cpus << 33 && sum.bytes == 100u * f->maps.n_cpus);
	assert_int_equal(maps_stats_clear(&f->maps, f->maps.backend_stats, key), 0);
	assert_int_equal(maps_stats_read(&f->maps, f->maps.backend_stats, key, &sum), 0);
	assert_true(!sum.packets && !sum.bytes);
	assert_int_equal(maps_stats_read(&f->maps, f->maps.backend_stats, 16, &sum), -ENOENT);
	assert_int_equal(bpf_map_update_elem(f->maps.reasons, &zero, reasons, BPF_ANY), 0);
	assert_int_equal(maps_reasons_read(f->maps.reasons, f->maps.n_cpus, out), 0);
	assert_int_equal(out[SHUNT_FORWARD_TX], 3 * f->maps.n_cpus);
	assert_int_equal(out[SHUNT_DROP_TTL], 0);
	free(cpu);
	free(reasons);
}

static void memory_grows_by_what_is_published(void **state)
{
	struct fixture *f = *state;
	size_t size = maps_inner_size(&f->maps, MAPS_TABLE_M);
	uint64_t before, after, per_cpu;
	void *value = calloc(1, size);

	assert_int_equal(maps_memory(&f->maps, &before, &per_cpu), 0);
	assert_true(per_cpu >= f->maps.n_cpus * sizeof(struct shunt_reasons));
	assert_int_equal(maps_inner_publish(&f->maps, MAPS_TABLE_M, 0, value), 0);
	assert_int_equal(maps_memory(&f->maps, &after, &per_cpu), 0);
	assert_true(after >= before + size && after < before + size + 16384);
	free(value);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instance_names),
		cmocka_unit_test(capacity_limits),
		TEST(opening_again_finds_the_same_maps),
		TEST(another_capacity_names_the_upgrade),
		TEST(missing_is_not_an_error),
		TEST(a_half_made_set_is_built_again),
		TEST(a_foreign_pin_is_refused),
		TEST(values_come_back),
		TEST(the_last_table_is_in_force),
		TEST(a_crash_after_the_swap_keeps_the_new_value),
		TEST(a_crash_before_the_swap_keeps_the_old_value),
		TEST(a_crash_while_removing),
		TEST(maps_of_a_replaced_set_publish_nothing),
		TEST(the_lock_excludes),
		TEST(counters_add_up),
		TEST(memory_grows_by_what_is_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
