/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What holds for every algorithm, and what rendezvous, ring, jump and modulo promise. */
#include "table_fixture.h"

static void every_algorithm(void (*check)(const struct table_algorithm *algorithm))
{
	for (size_t i = 0; i < table_n_algorithms; i++)
		check(&table_algorithms[i]);
}

static void check_order(const struct table_algorithm *algorithm)
{
	struct members m = members_numbered(30, 0, 4);
	struct built t = build(algorithm->name, &m, 251, NULL, 0);
	uint64_t digest = built_digest(&m, &t);
	uint32_t *count = counts(&m, &t);

	for (size_t i = 0; i < m.n; i++)
		assert_true(m.array[i].weight || !count[i]);
	for (uint32_t slot = 0; slot < t.slots; slot++)
		assert_int_not_equal(t.owner[slot], TABLE_NONE);
	for (int i = 0; i < 10; i++) {
		struct built other;

		members_shuffle(&m);
		other = build(algorithm->name, &m, 251, NULL, 0);
		assert_int_equal(built_digest(&m, &other), digest);
		built_free(&other);
	}
	free(count);
	built_free(&t);
	members_free(&m);
}

static void order_never_matters(void **state)
{
	(void)state;
	every_algorithm(check_order);
}

static void check_refusals(const struct table_algorithm *algorithm)
{
	struct table_member twice[] = {{.name = "b", .weight = 1}, {.name = "b"}};
	struct table_member heavy[] = {{.name = "a", .weight = 65536}};
	struct table_params good = {.slots = 101}, even = {.slots = 100}, large = {.slots = 1048583};
	struct report report = {};
	uint16_t owner[101];

	assert_int_equal(algorithm->build(twice, 2, &good, NULL, owner, &report), -EINVAL);
	assert_int_equal(algorithm->build(heavy, 1, &good, NULL, owner, &report), -EINVAL);
	assert_int_equal(algorithm->build(heavy, 0, &even, NULL, owner, &report), -EINVAL);
	assert_int_equal(algorithm->build(heavy, 0, &large, NULL, owner, &report), -EINVAL);
	assert_int_equal(report.errors, 4);
	report_free(&report);
	assert_int_equal(algorithm->build(NULL, 0, &good, NULL, owner, &report), 0);
	assert_int_equal(report.count, 0);
	for (uint32_t slot = 0; slot < 101; slot++)
		assert_int_equal(owner[slot], TABLE_NONE);
}

static void bad_input_is_refused(void **state)
{
	(void)state;
	every_algorithm(check_refusals);
}

static void check_memory(const struct table_algorithm *algorithm)
{
	static const size_t sizes[][2] = {{2, 101}, {100, 101}, {1000, 65537}, {100, 1048573}};

	for (size_t i = 0; i < 4; i++) {
		struct members m = members_numbered(sizes[i][0], 1, 3);
		uint32_t slots = (uint32_t)sizes[i][1];
		struct built previous = build("maglev", &m, slots, NULL, 0), t;
		struct table table = built_table(&m, &previous);

		(void)table_memory_peak();
		t = build(algorithm->name, &m, slots, &table, i == 2 ? 105 : 0);
		assert_true(table_memory_peak() + slots * sizeof(*t.owner) < 16 * slots + 256 * m.n);
		built_free(&t);
		built_free(&previous);
		members_free(&m);
	}
}

static void memory_is_bounded(void **state)
{
	(void)state;
	every_algorithm(check_memory);
	assert_int_equal(table_memory_peak(), 0); /* nothing is kept */
}

static void only_comparisons_are_for_the_simulator_only(void **state)
{
	(void)state;
	assert_false(table_algorithm("maglev")->simulator_only);
	assert_false(table_algorithm("minimal")->simulator_only);
	assert_true(table_algorithm("minimal")->history);
	assert_false(table_algorithm("rendezvous")->simulator_only);
	assert_false(table_algorithm("ring")->simulator_only);
	assert_true(table_algorithm("jump")->simulator_only);
	assert_true(table_algorithm("modulo")->simulator_only);
	assert_null(table_algorithm("random"));
}

static void a_balance_caps_shares(void **state)
{
	static const char *const names[] = {"rendezvous", "ring"};
	static const uint32_t balances[] = {100, 105, 150, UINT32_MAX};

	(void)state;
	for (int i = 0; i < 8; i++) {
		struct members m = members_numbered(100, 1, i % 3 * 20 + 1);
		struct built t = build(names[i % 2], &m, 4099, NULL, balances[i / 2]);
		uint32_t *count = counts(&m, &t), *quota = calloc(m.n, sizeof(*quota)), slots = 0;

		assert_int_equal(table_quotas(m.array, m.n, 4099, quota, NULL), 0);
		for (size_t k = 0; k < m.n; k++) {
			assert_true(count[k] * 100 <= (uint64_t)quota[k] * balances[i / 2] ||
				    (balances[i / 2] > 100 && count[k] == quota[k] + 1));
			slots += count[k];
		}
		assert_int_equal(slots, 4099);
		free(quota);
		free(count);
		built_free(&t);
		members_free(&m);
	}
}

/* Few tokens leave some backends none in front: their slots are still given out. */
static void a_ring_with_hidden_members_keeps_its_caps(void **state)
{
	struct members m = members_numbered(200, 1, 1);
	struct table_params params = {.slots = 211, .balance_percent = 100, .vnodes = 1};
	struct built t = {malloc(211 * sizeof(*t.owner)), 211};
	uint32_t *count;

	(void)state;
	assert_int_equal(table_algorithm("ring")->build(m.array, m.n, &params, NULL, t.owner, NULL), 0);
	count = counts(&m, &t);
	for (size_t i = 0; i < m.n; i++)
		assert_in_range(count[i], 1, 2);
	free(count);
	built_free(&t);
	members_free(&m);
}

static void a_bad_balance_is_refused(void **state)
{
	struct members m = members_numbered(300, 1, 1);
	struct table_params low = {.slots = 251, .balance_percent = 99}, high = {.slots = 251, .balance_percent = 105};
	struct report report = {};
	uint16_t owner[251];

	(void)state;
	assert_int_equal(table_algorithm("ring")->build(m.array, 3, &low, NULL, owner, &report), -EINVAL);
	assert_non_null(strstr(report.entries[0].text, "at least 100"));
	assert_int_equal(table_algorithm("rendezvous")->build(m.array, m.n, &high, NULL, owner, &report), -E2BIG);
	report_free(&report);
	members_free(&m);
}

static void members_without_a_slot_are_warned_of(void **state)
{
	static const char *const names[] = {"rendezvous", "ring"};
	struct members m = members_numbered(300, 1, 1);
	struct table_params params = {.slots = 251};
	uint16_t owner[251];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct report report = {};

		assert_int_equal(table_algorithm(names[i])->build(m.array, m.n, &params, NULL, owner, &report), 0);
		assert_int_equal(report.count, 1);
		assert_int_equal(report.entries[0].level, REPORT_WARNING);
		assert_non_null(strstr(report.entries[0].text, "own no slot"));
		report_free(&report);
	}
	members_free(&m);
}

static void a_ring_of_too_many_tokens_is_refused(void **state)
{
	struct members m = members_numbered(10, 65535, 65535);
	struct table_params params = {.slots = 251};
	struct report report = {};
	uint16_t owner[251];

	(void)state;
	assert_int_equal(table_algorithm("ring")->build(m.array, m.n, &params, NULL, owner, &report), -E2BIG);
	assert_non_null(strstr(report.entries[0].text, "fewer virtual nodes"));
	report_free(&report);
	members_free(&m);
}

/* Slots of a member that leaves go elsewhere; no other slot moves. */
static void only_slots_of_who_leaves_move(void **state)
{
	static const char *const names[] = {"rendezvous", "ring"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct members m = members_numbered(30, 1, 100), rest = members_without(&m, 7);
		struct built all = build(names[i], &m, 65537, NULL, 0), left = build(names[i], &rest, 65537, NULL, 0);

		for (uint32_t slot = 0; slot < 65537; slot++)
			assert_true(all.owner[slot] == 7 ||
				    m.array[all.owner[slot]].name == rest.array[left.owner[slot]].name);
		built_free(&all);
		built_free(&left);
		members_free(&rest);
		members_free(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_never_matters),
		cmocka_unit_test(bad_input_is_refused),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(only_comparisons_are_for_the_simulator_only),
		cmocka_unit_test(a_balance_caps_shares),
		cmocka_unit_test(a_ring_with_hidden_members_keeps_its_caps),
		cmocka_unit_test(a_bad_balance_is_refused),
		cmocka_unit_test(members_without_a_slot_are_warned_of),
		cmocka_unit_test(a_ring_of_too_many_tokens_is_refused),
		cmocka_unit_test(only_slots_of_who_leaves_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
