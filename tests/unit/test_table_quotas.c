/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "table_fixture.h"

static uint32_t quota[TABLE_MEMBERS_MAX];

/* Quotas of members named a, b, c ... with these weights. */
static int quotas(const uint32_t *weights, size_t n, uint32_t slots, struct report *report)
{
	static char names[300][4];
	static struct table_member members[300];

	for (size_t i = 0; i < n; i++) {
		snprintf(names[i], sizeof(names[i]), "%c%c", (char)('a' + i / 26), (char)('a' + i % 26));
		members[i] = (struct table_member){.name = names[i], .weight = weights[i]};
	}
	return table_quotas(members, n, slots, quota, report);
}

static void proportional_weights_are_exact(void **state)
{
	static const uint32_t weights[] = {1, 2, 4}, halves[] = {1, 1, 1}, zero[] = {0, 5, 0};

	(void)state;
	/* 9362.43, 18724.86, 37449.71: two slots are left for the two largest remainders. */
	assert_int_equal(quotas(weights, 3, 65537, NULL), 0);
	assert_int_equal(quota[0], 9362);
	assert_int_equal(quota[1], 18725);
	assert_int_equal(quota[2], 37450);
	/* Equal remainders go by name. */
	assert_int_equal(quotas(halves, 3, 101, NULL), 0);
	assert_int_equal(quota[0], 34);
	assert_int_equal(quota[1], 34);
	assert_int_equal(quota[2], 33);
	assert_int_equal(quotas(zero, 3, 101, NULL), 0);
	assert_int_equal(quota[0], 0);
	assert_int_equal(quota[1], 101);
	assert_int_equal(quota[2], 0);
}

static void every_positive_weight_has_a_slot(void **state)
{
	static const uint32_t extreme[] = {1, 65535}, three[] = {1024, 1024, 5}, chain[] = {1, 1, 3, 65535};

	(void)state;
	assert_int_equal(quotas(extreme, 2, 65537, NULL), 0);
	assert_int_equal(quota[0], 1);
	assert_int_equal(quota[1], 65536);
	assert_int_equal(quotas(extreme, 2, 2, NULL), 0);
	assert_int_equal(quota[0], 1);
	assert_int_equal(quota[1], 1);
	assert_int_equal(quotas(three, 3, 101, NULL), 0);
	assert_int_equal(quota[2], 1);
	assert_int_equal(quota[0] + quota[1], 100);
	assert_int_equal(quotas(chain, 4, 5, NULL), 0);
	assert_int_equal(quota[0] + quota[1] + quota[2], 3);
	assert_int_equal(quota[3], 2);
}

static void more_backends_than_slots_are_refused(void **state)
{
	static uint32_t weights[300];
	struct report report = {};

	(void)state;
	for (size_t i = 0; i < 300; i++)
		weights[i] = 1;
	assert_int_equal(quotas(weights, 300, 251, &report), -E2BIG);
	assert_int_equal(report.errors, 1);
	assert_non_null(strstr(report.entries[0].text, "300 backends"));
	assert_non_null(strstr(report.entries[0].text, " 307"));
	assert_non_null(strstr(report.entries[0].text, " 30011"));
	report_free(&report);
	weights[0] = 0; /* those of weight 0 need none */
	for (size_t i = 0; i < 49; i++)
		weights[i] = 0;
	assert_int_equal(quotas(weights, 300, 251, &report), 0);
	assert_int_equal(quota[48], 0);
	assert_int_equal(quota[49], 1);
	report_free(&report);
}

static void shares_off_by_more_than_a_percent_are_warned_of(void **state)
{
	static const uint32_t weights[] = {1, 2, 4}, small[] = {1, 1000, 65535}, tiny[] = {1, 65535, 65535};
	struct report report = {};

	(void)state;
	assert_int_equal(quotas(weights, 3, 65537, &report), 0);
	assert_int_equal(report.count, 0);
	assert_int_equal(quotas(weights, 3, 101, &report), 0);
	assert_int_equal(report.count, 1);
	assert_int_equal(report.entries[0].level, REPORT_WARNING);
	assert_non_null(strstr(report.entries[0].text, "size of 701 keeps"));
	report_free(&report);
	assert_int_equal(quotas(weights, 3, 701, &report), 0);
	assert_int_equal(report.count, 0);
	assert_int_equal(quotas(small, 3, 65537, &report), 0);
	assert_int_equal(report.count, 1);
	assert_non_null(strstr(report.entries[0].text, "no table size is large enough"));
	report_free(&report);
	assert_int_equal(quotas(tiny, 3, 65537, &report), 0);
	assert_int_equal(report.count, 1);
	report_free(&report);
}

static void bad_members_and_sizes_are_named(void **state)
{
	struct table_member twice[] = {{.name = "b", .weight = 1}, {.name = "a", .weight = 1}, {.name = "b"}};
	struct table_member heavy[] = {{.name = "a", .weight = 65536}};
	struct report report = {};

	(void)state;
	assert_int_equal(table_quotas(twice, 3, 101, quota, &report), -EINVAL);
	assert_non_null(strstr(report.entries[0].text, "\"b\""));
	assert_int_equal(table_quotas(heavy, 1, 101, quota, &report), -EINVAL);
	assert_non_null(strstr(report.entries[1].text, "65536"));
	assert_int_equal(table_quotas(heavy, 1, 100, quota, &report), -EINVAL);
	assert_non_null(strstr(report.entries[2].text, "97 and 101"));
	assert_int_equal(table_quotas(heavy, 1, 1048574, quota, &report), -EINVAL);
	assert_non_null(strstr(report.entries[3].text, "1048573"));
	assert_int_equal(table_quotas(NULL, 0, 101, quota, &report), 0);
	report_free(&report);
}

static void primes(void **state)
{
	uint32_t below, above;

	(void)state;
	assert_false(table_is_prime(0));
	assert_false(table_is_prime(1));
	assert_true(table_is_prime(2));
	assert_false(table_is_prime(65535));
	assert_true(table_is_prime(65537));
	assert_true(table_is_prime(1048573));
	assert_true(table_is_prime(4294967291u));
	assert_false(table_is_prime(4294836225u)); /* 65535 squared */
	table_nearest_primes(65536, &below, &above);
	assert_int_equal(below, 65521);
	assert_int_equal(above, 65537);
	table_nearest_primes(0, &below, &above);
	assert_int_equal(below, 0);
	assert_int_equal(above, 2);
	table_nearest_primes(1048573, &below, &above);
	assert_int_equal(below, 1048571);
	assert_int_equal(above, 0);
	table_nearest_primes(UINT32_MAX, &below, &above);
	assert_int_equal(below, 1048573);
	assert_int_equal(above, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proportional_weights_are_exact),
		cmocka_unit_test(every_positive_weight_has_a_slot),
		cmocka_unit_test(more_backends_than_slots_are_refused),
		cmocka_unit_test(shares_off_by_more_than_a_percent_are_warned_of),
		cmocka_unit_test(bad_members_and_sizes_are_named),
		cmocka_unit_test(primes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
