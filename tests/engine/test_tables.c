/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is published: one table for one membership, exact quotas, epochs that tell changes of owners. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view.h"

static void check_all(const struct fixture *f)
{
	struct view view;

	assert_true(view_read(f, &view));
	view_check(&view);
	view_check_state(f, &view);
	view_free(&view);
}

/* 100 orders of input, with another membership in between, so that each is built: one digest, the same slots. */
static void test_order_is_nothing(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(20), other;
	uint64_t digest = 0, epoch = 0;
	uint16_t slots[251];

	for (uint32_t i = 0; i < 20; i++)
		want.pools[0].backends[i].weight = 1 + i * i;
	want.pools[1] = want.pools[0];
	want.pools[1].slots = 4093;
	other = want;
	other.pools[0].backends[3].weight = other.pools[1].backends[3].weight = 500;
	for (int round = 0; round < 100; round++) {
		struct view view;

		assert_int_equal(engine_apply(f->engine, model_of_shuffled(&want), NULL, NULL), 0);
		if (!round)
			know(f, 0);
		assert_true(view_read(f, &view));
		if (!round) {
			digest = pool_info(f, "p0").digest;
			memcpy(slots, view_table(&view, pool_info(f, "p0").index)->owner, sizeof(slots));
		}
		assert_int_equal(pool_info(f, "p0").digest, digest);
		assert_memory_equal(view_table(&view, pool_info(f, "p0").index)->owner, slots, sizeof(slots));
		assert_true(pool_info(f, "p0").epoch == (round ? epoch + 2 : pool_info(f, "p0").epoch));
		epoch = pool_info(f, "p0").epoch;
		view_free(&view);
		assert_int_equal(engine_apply(f->engine, model_of_shuffled(&other), NULL, NULL), 0);
		assert_true(pool_info(f, "p0").digest != digest);
	}
}

/*
 * Largest remainder, by its definition: each backend has the floor of its exact share or one more, all slots are
 * given, and none that got one more had a smaller remainder than one that did not.
 */
static void check_quotas(const struct view_table *table, const struct want_pool *pool, struct fixture *f)
{
	uint32_t slots[VIEW_BACKENDS] = {}, sum = 0;
	uint64_t total = 0, least_up = UINT64_MAX, most_down = 0;

	for (uint32_t i = 0; i < table->header.slots; i++)
		slots[table->owner[i]]++;
	for (uint32_t i = 0; i < WANT_BACKENDS; i++)
		total += pool->backends[i].present ? pool->backends[i].weight : 0;
	for (uint32_t i = 0; i < WANT_BACKENDS; i++) {
		struct engine_backend_info info;
		uint64_t exact, rest;
		char name[8];

		if (!pool->backends[i].present)
			continue;
		snprintf(name, sizeof(name), "b%02u", i);
		info = backend_info(f, "p0", name);
		exact = (uint64_t)pool->backends[i].weight * table->header.slots / total;
		rest = (uint64_t)pool->backends[i].weight * table->header.slots % total;
		assert_true(slots[info.id] == exact || slots[info.id] == exact + 1);
		if (slots[info.id] > exact)
			least_up = rest < least_up ? rest : least_up;
		else
			most_down = rest > most_down ? rest : most_down;
		assert_int_equal(info.slots, slots[info.id]);
		assert_int_equal(info.quota, slots[info.id]);
		sum += slots[info.id];
	}
	assert_true(least_up >= most_down);
	assert_int_equal(sum, table->header.slots);
}

static void test_exact_quotas(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < 40; round++) {
		struct want want = want_simple(2 + random_below(WANT_BACKENDS - 1));
		struct view view;

		want.pools[0].slots = 4093;
		want.pools[0].algorithm = round % 2 ? "minimal" : "maglev";
		for (uint32_t i = 0; i < WANT_BACKENDS; i++)
			want.pools[0].backends[i].weight = 1 + random_below(100);
		assert_int_equal(apply(f, &want), 0);
		know(f, 0);
		assert_true(view_read(f, &view));
		check_quotas(view_table(&view, pool_info(f, "p0").index), &want.pools[0], f);
		view_free(&view);
	}
}

/* The epoch tells changes of owners by name; other rewrites count the phase; no rewrite counts nothing. */
static void test_epoch_and_phase(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct engine_pool_info before, now;
	struct view a, b;

	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(pool_info(f, "p0").epoch, 1); /* no next hop is known: owners are none */
	know(f, 0);
	before = pool_info(f, "p0");
	assert_int_equal(before.epoch, 2);
	assert_int_equal(before.phase, 0);

	/* The same shares: nothing is written. */
	for (int i = 0; i < 4; i++)
		want.pools[0].backends[i].weight = 7;
	assert_true(view_read(f, &a));
	assert_int_equal(apply(f, &want), 0);
	assert_true(view_read(f, &b));
	assert_true(view_equal(&a, &b));
	view_free(&a);
	view_free(&b);

	/* Another outer source: new ids, the same owners. */
	want.pools[0].encapsulation = "type: ipip, source: [10.9.255.77]";
	assert_int_equal(apply(f, &want), 0);
	now = pool_info(f, "p0");
	assert_int_equal(now.epoch, before.epoch);
	assert_int_equal(now.phase, 1);
	assert_int_equal(now.digest, before.digest);
	assert_int_equal(now.activated, before.activated);
	check_all(f);

	want.pools[0].backends[0].weight = 8;
	assert_int_equal(apply(f, &want), 0);
	now = pool_info(f, "p0");
	assert_int_equal(now.epoch, before.epoch + 1);
	assert_int_equal(now.phase, 0);
	assert_true(now.digest != before.digest);

	/* Back to the old owners: an old digest, and yet a new epoch. */
	want.pools[0].backends[0].weight = 7;
	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(pool_info(f, "p0").epoch, before.epoch + 2);
	assert_int_equal(pool_info(f, "p0").digest, before.digest);
}

/* A table of another size class comes first, then the services that name it, then the old one goes. */
static void test_size_class(void **state)
{
	static const uint32_t sizes[] = {4099, 65537, 251, 1048573, 65537, 4099};
	struct fixture *f = *state;
	struct want want = want_simple(5);
	uint64_t epoch = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		want.pools[0].slots = sizes[i];
		assert_int_equal(apply(f, &want), 0);
		know(f, 0);
		assert_true(pool_info(f, "p0").epoch > epoch);
		epoch = pool_info(f, "p0").epoch;
		check_all(f);
	}
}

/* A pool that is made again under its old name goes on above its old epochs; so does one with another name. */
static void test_pool_comes_back(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(3);
	uint64_t epoch;

	want.pools[1] = want.pools[0];
	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	for (int i = 0; i < 5; i++) {
		want.pools[1].backends[0].weight++;
		assert_int_equal(apply(f, &want), 0);
	}
	epoch = pool_info(f, "p1").epoch;
	assert_true(epoch >= 6);
	want.pools[1].present = false;
	assert_int_equal(apply(f, &want), 0);
	check_all(f);
	want.pools[1].present = true;
	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(pool_info(f, "p1").epoch, epoch + 1);
	want.pools[1].present = false;
	want.pools[2] = want.pools[1];
	want.pools[2].present = true;
	assert_int_equal(apply(f, &want), 0);
	assert_true(pool_info(f, "p2").epoch > epoch + 1);
}

struct owners {
	int8_t slot[1021]; /* number of the backend, -1: none */
};

static struct owners owners_of(struct fixture *f)
{
	int8_t number[VIEW_BACKENDS];
	struct owners owners;
	struct view view;

	memset(number, -1, sizeof(number));
	for (uint32_t i = 0; i < WANT_BACKENDS; i++) {
		struct engine_backend_info info;
		char name[8];

		snprintf(name, sizeof(name), "b%02u", i);
		if (!engine_backend_info(f->engine, "p0", name, &info))
			number[info.id] = (int8_t)i;
	}
	assert_true(view_read(f, &view));
	for (uint32_t i = 0; i < 1021; i++) {
		uint16_t id = view_table(&view, pool_info(f, "p0").index)->owner[i];

		owners.slot[i] = (int8_t)(id == SHUNT_BACKEND_NONE ? -1 : number[id]);
	}
	view_free(&view);
	return owners;
}

/* The builder with a history is given the table in force, by name: no more slots move than must, also after a start. */
static void test_history(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(12);
	struct owners before, after;

	want.pools[0].slots = 1021;
	want.pools[0].algorithm = "minimal";
	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	for (uint32_t round = 0; round < 40; round++) {
		struct want_backend *backend = &want.pools[0].backends[random_below(12)];
		int had[WANT_BACKENDS + 1] = {}, has[WANT_BACKENDS + 1] = {}, moved = 0, minimum = 0;

		before = owners_of(f);
		if (round % 4 == 3) { /* other ids for all, the same owners */
			want.pools[0].encapsulation = round % 8 == 3 ? "type: ipip, source: [10.9.255.7]" : NULL;
		} else if (round % 4 == 2) {
			backend->present = !backend->present;
		} else {
			backend->weight = 1 + random_below(9);
		}
		if (round % 5 == 4) {
			fixture_close(f);
			fixture_open(f);
		}
		assert_int_equal(apply(f, &want), 0);
		know(f, 0);
		after = owners_of(f);
		for (uint32_t i = 0; i < 1021; i++) {
			had[before.slot[i] + 1]++;
			has[after.slot[i] + 1]++;
			moved += before.slot[i] != after.slot[i];
		}
		for (int i = 0; i <= WANT_BACKENDS; i++)
			minimum += has[i] > had[i] ? has[i] - had[i] : 0;
		assert_int_equal(moved, minimum);
		if (round % 4 == 3)
			assert_int_equal(moved, 0);
	}
}

/* The largest number of slots that one of 20 backends of equal weight has beyond its quota. */
static int most_beyond_quota(struct fixture *f, const char *table)
{
	struct want want = want_simple(20);
	struct model *model = model_of(&want);
	int most = 0;

	free(model->pools[0].algorithm);
	model->pools[0].algorithm = strdup("ring");
	assert_int_equal(
		sscanf(table, "balance %u vnodes %u", &model->pools[0].balance_percent, &model->pools[0].vnodes), 2);
	assert_int_equal(engine_apply(f->engine, model, 0, NULL), 0);
	know(f, 0);
	for (uint32_t i = 0; i < 20; i++) {
		struct engine_backend_info info;
		char name[8];

		snprintf(name, sizeof(name), "b%02u", i);
		info = backend_info(f, "p0", name);
		if ((int)info.slots - (int)info.quota > most)
			most = (int)info.slots - (int)info.quota;
	}
	return most;
}

/* Options of a table reach its builder, each change is a new table, and what was is so again after a start. */
static void test_options(void **state)
{
	struct fixture *f = *state;
	int rough = most_beyond_quota(f, "balance 0 vnodes 1"), fine = most_beyond_quota(f, "balance 0 vnodes 1000");
	uint64_t digest, epoch;

	assert_true(rough > 10);
	assert_true(fine < rough);
	assert_in_range(most_beyond_quota(f, "balance 110 vnodes 1"), 0, 1);
	digest = pool_info(f, "p0").digest;
	epoch = pool_info(f, "p0").epoch;
	fixture_close(f);
	fixture_open(f);
	assert_in_range(most_beyond_quota(f, "balance 110 vnodes 1"), 0, 1);
	assert_int_equal(pool_info(f, "p0").digest, digest);
	assert_int_equal(pool_info(f, "p0").epoch, epoch);
	check_all(f);
}

static struct model *many_pools(uint32_t n, uint32_t weight)
{
	struct model *model;
	size_t length;
	char *text;
	FILE *out = open_memstream(&text, &length);

	fprintf(out, "{version: 1, hash-key: 00112233445566778899aabbccddeeff, services: [], pools: [");
	for (uint32_t i = 0; i < n; i++)
		fprintf(out,
			"%s{name: pool%02u, table: {size: 1021}, backends: [{name: x, address: 10.9.1.%u, weight: %u}, "
			"{name: y, address: 10.9.2.1, weight: 3}]}",
			i ? ", " : "", i, i + 1, weight);
	fprintf(out, "]}");
	fclose(out);
	model = model_of_text(text);
	free(text);
	return model;
}

/* All pools that the instance has room for change at once, come and go: side by side, and each as by itself. */
static void test_many_pools(void **state)
{
	static const uint32_t numbers[] = {16, 1, 16, 9, 16};
	struct fixture *f = *state;

	for (uint32_t round = 0; round < 15; round++) {
		uint32_t n = numbers[round % 5];

		assert_int_equal(engine_apply(f->engine, many_pools(n, 1 + round), NULL, NULL), 0);
		know(f, 0);
		for (uint32_t i = 0; i < n; i++) {
			char name[16];

			snprintf(name, sizeof(name), "pool%02u", i);
			assert_int_equal(backend_info(f, name, "x").slots + backend_info(f, name, "y").slots, 1021);
			assert_int_equal(backend_info(f, name, "x").quota, backend_info(f, name, "x").slots);
		}
		check_all(f);
	}
}

static void test_no_backends(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(0);
	struct view view;

	want.pools[1] = want_simple(2).pools[0];
	want.pools[1].backends[0].weight = want.pools[1].backends[1].weight = 0;
	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	assert_true(view_read(f, &view));
	view_check(&view);
	for (int pool = 0; pool < 2; pool++) {
		const struct view_table *table = view_table(&view, pool_info(f, pool ? "p1" : "p0").index);

		for (uint32_t i = 0; i < 251; i++)
			assert_int_equal(table->owner[i], SHUNT_BACKEND_NONE);
	}
	view_free(&view);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_order_is_nothing), TEST(test_exact_quotas), TEST(test_epoch_and_phase), TEST(test_size_class),
		TEST(test_pool_comes_back),  TEST(test_no_backends),  TEST(test_many_pools),	  TEST(test_history),
		TEST(test_pool_comes_back),  TEST(test_no_backends),  TEST(test_many_pools),	  TEST(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
