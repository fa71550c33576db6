/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "table_fixture.h"

static struct table_diff changed(const struct members *before, const struct built *old, const struct members *after,
				 const struct built *new)
{
	struct table a = built_table(before, old), b = built_table(after, new);
	struct table_diff diff;

	assert_int_equal(table_diff(&a, &b, &diff), 0);
	return diff;
}

/* Build `after` from `old` and expect the minimum, and exact quotas. */
static struct built step(const struct members *before, const struct built *old, const struct members *after)
{
	struct table previous = built_table(before, old);
	struct built new = build("minimal", after, old->slots, &previous, 0);
	struct table_diff diff = changed(before, old, after, &new);
	uint32_t *quota = calloc(after->n, sizeof(*quota)), *count = counts(after, &new);

	assert_int_equal(diff.excess, 0);
	assert_int_equal(table_quotas(after->array, after->n, old->slots, quota, NULL), 0);
	assert_memory_equal(quota, count, after->n * sizeof(*quota));
	free(quota);
	free(count);
	table_diff_free(&diff);
	return new;
}

static void the_first_table_is_the_canonical_one(void **state)
{
	struct members m = members_numbered(50, 1, 9);
	struct built maglev = build("maglev", &m, 4099, NULL, 0), minimal = build("minimal", &m, 4099, NULL, 0);
	struct built other = build("maglev", &m, 251, NULL, 0), resized;
	struct table previous = built_table(&m, &other);

	(void)state;
	assert_memory_equal(maglev.owner, minimal.owner, 4099 * sizeof(*maglev.owner));
	resized = build("minimal", &m, 4099, &previous, 0);
	assert_memory_equal(maglev.owner, resized.owner, 4099 * sizeof(*maglev.owner));
	built_free(&resized);
	built_free(&other);
	built_free(&maglev);
	built_free(&minimal);
	members_free(&m);
}

static void nothing_moves_while_nothing_changes(void **state)
{
	struct members m = members_numbered(20, 1, 5), smaller = members_without(&m, 3);
	struct built full = build("minimal", &m, 4099, NULL, 0), less = step(&m, &full, &smaller),
		     same = step(&smaller, &less, &smaller);

	(void)state;
	assert_memory_equal(less.owner, same.owner, 4099 * sizeof(*less.owner));
	built_free(&full);
	built_free(&less);
	built_free(&same);
	members_free(&smaller);
	members_free(&m);
}

static void leaving_and_coming_back_restores_the_canonical_table(void **state)
{
	for (uint32_t high = 1; high <= 100; high += 99) {
		struct members m = members_numbered(100, 1, high);
		struct built full = build("minimal", &m, 65537, NULL, 0);

		(void)state;
		for (size_t gone = 0; gone < m.n; gone += 9) {
			struct members rest = members_without(&m, gone);
			struct built less = step(&m, &full, &rest), back = step(&rest, &less, &m);

			assert_memory_equal(full.owner, back.owner, 65537 * sizeof(*full.owner));
			built_free(&less);
			built_free(&back);
			members_free(&rest);
		}
		built_free(&full);
		members_free(&m);
	}
}

/* Also across renumbering: owners are known by name. */
static void order_of_members_does_not_matter(void **state)
{
	struct members m = members_numbered(40, 1, 7), rest = members_without(&m, 11);
	struct built full = build("minimal", &m, 4099, NULL, 0), less = step(&m, &full, &rest), shuffled;
	uint64_t digest = built_digest(&rest, &less);

	(void)state;
	members_shuffle(&rest);
	shuffled = step(&m, &full, &rest);
	assert_int_equal(built_digest(&rest, &shuffled), digest);
	built_free(&full);
	built_free(&less);
	built_free(&shuffled);
	members_free(&rest);
	members_free(&m);
}

static double drift(const struct members *m, const struct built *t)
{
	struct built canonical = build("maglev", m, t->slots, NULL, 0);
	uint32_t differ = 0;

	for (uint32_t slot = 0; slot < t->slots; slot++)
		differ += canonical.owner[slot] != t->owner[slot];
	built_free(&canonical);
	return (double)differ / t->slots;
}

static void five_hundred_changes_drift_less_than_12_percent(void **state)
{
	struct members m = members_numbered(100, 4, 4);
	struct built t = build("minimal", &m, 65537, NULL, 0);
	double most = 0;

	(void)state;
	srand(500);
	for (int change = 0; change < 500; change++) {
		struct table previous = built_table(&m, &t);
		struct built next;
		double now;

		/* Leave, come back, or another weight. */
		m.array[(size_t)rand() % m.n].weight = (uint32_t)(rand() % 3) * 4;
		next = build("minimal", &m, t.slots, &previous, 0);
		built_free(&t);
		t = next;
		now = drift(&m, &t);
		if (now > most)
			most = now;
	}
	print_message("drift: %.2f %% at most\n", most * 100);
	assert_true(most < 0.12);
	built_free(&t);
	members_free(&m);
}

static void unknown_names_and_missing_owners_are_orphans(void **state)
{
	struct members m = members_numbered(5, 1, 1);
	uint16_t owner[101];
	struct table_member others[] = {{.name = "gone", .weight = 1}, {.name = "web3", .weight = 1}};
	struct table previous = {others, 2, 101, owner};
	struct built t;
	uint32_t kept = 0;

	(void)state;
	for (uint32_t slot = 0; slot < 101; slot++)
		owner[slot] = slot % 4 == 0 ? 0 : slot % 4 == 1 ? 1 : slot % 4 == 2 ? TABLE_NONE : 77;
	t = build("minimal", &m, 101, &previous, 0);
	for (uint32_t slot = 0; slot < 101; slot++)
		kept += owner[slot] == 1 && t.owner[slot] == 3;
	assert_int_equal(kept, 20); /* web3's quota: it had 25 */
	built_free(&t);
	members_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_table_is_the_canonical_one),
		cmocka_unit_test(nothing_moves_while_nothing_changes),
		cmocka_unit_test(leaving_and_coming_back_restores_the_canonical_table),
		cmocka_unit_test(order_of_members_does_not_matter),
		cmocka_unit_test(five_hundred_changes_drift_less_than_12_percent),
		cmocka_unit_test(unknown_names_and_missing_owners_are_orphans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
