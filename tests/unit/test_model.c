/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model_fixture.h"

static void a_copy_is_equal_and_apart(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct model *model = fixture_random_model(seed), *copy = NULL;

		model->key_file = strdup("/etc/shunt/hash.key");
		model->pools[0].place.line = 7;
		assert_int_equal(model_copy(model, &copy), 0);
		assert_same_model(model, copy);
		for (size_t i = 0; i < model->n_pools; i++) {
			assert_ptr_not_equal(model->pools[i].name, copy->pools[i].name);
			if (model->pools[i].n_backends)
				model->pools[i].backends[0].weight++;
		}
		model_free(model);
		assert_string_equal(copy->pools[0].name, "pool-1");
		assert_int_equal(copy->pools[0].place.line, 0);
		model_free(copy);
	}
	model_free(NULL);
}

static void names_stay_sorted_and_unique(void **state)
{
	struct model_pool pool = {};
	uint64_t seed = 3;
	bool there[64] = {};

	(void)state;
	for (int step = 0; step < 2000; step++) {
		unsigned int number = fixture_below(&seed, 64);
		struct model_backend backend = {.name = fixture_name("b", number), .weight = number};

		if (fixture_below(&seed, 2)) {
			int ret = model_add_backend(&pool, &backend);

			assert_int_equal(ret, there[number] ? -EEXIST : 0);
			there[number] = true;
			if (ret)
				free(backend.name);
		} else {
			assert_int_equal(model_del_backend(&pool, backend.name), there[number] ? 0 : -ENOENT);
			there[number] = false;
			free(backend.name);
		}
		for (size_t i = 1; i < pool.n_backends; i++)
			assert_true(strcmp(pool.backends[i - 1].name, pool.backends[i].name) < 0);
	}
	for (unsigned int i = 0; i < 64; i++) {
		char *name = fixture_name("b", i);
		const struct model_backend *found = model_backend(&pool, name);

		assert_int_equal(found != NULL, there[i]);
		assert_true(!found || found->weight == i);
		free(name);
	}
	model_pool_clear(&pool);
}

static void pools_and_services_come_and_go(void **state)
{
	struct model *model = fixture_random_model(7);
	struct model_pool pool = {.name = strdup("a-pool"), .algorithm = strdup("maglev"), .slots = 251};
	struct model_service service = {.name = strdup("z"), .pool = strdup("a-pool"), .any_port = true};
	size_t pools = model->n_pools, services = model->n_services;

	(void)state;
	assert_int_equal(model_add_pool(model, &pool), 0);
	assert_int_equal(model_add_pool(model, &pool), -EEXIST);
	assert_int_equal(model_add_service(model, &service), 0);
	assert_int_equal(model_add_service(model, &service), -EEXIST);
	assert_ptr_equal(model_pool(model, "a-pool"), &model->pools[0]);
	assert_ptr_equal(model_service(model, "z"), &model->services[services]);
	assert_null(model_pool(model, "a-poo"));
	assert_int_equal(model_del_pool(model, "a-pool"), 0);
	assert_int_equal(model_del_pool(model, "a-pool"), -ENOENT);
	assert_int_equal(model_del_service(model, "z"), 0);
	assert_int_equal(model_del_service(model, "z"), -ENOENT);
	assert_true(model->n_pools == pools && model->n_services == services);
	model_free(model);
}

static void ports_are_read_and_written(void **state)
{
	static const char *const good[][2] = {{"80", "80"},
					      {"80,443,8000-8099", "80,443,8000-8099"},
					      {"8000-8099,443,80", "80,443,8000-8099"},
					      {"1-65535", "1-65535"},
					      {"7-7", "7"},
					      {"any", "any"}};
	static const char *const bad[] = {"",	      "0",	"65536", "80,",	   ",80",	"80,80",
					  "80-90,85", "90-80",	"80-",	 "-80",	   "80 ,443",	"+80",
					  "080",      "any,80", "http",	 "80--90", "4294967376"};
	static const size_t entries[] = {1, 102, 102, 65535, 1, 1};
	struct model_service service = {};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		char *text;

		assert_int_equal(model_ports_parse(good[i][0], &service), 0);
		text = model_ports_text(&service);
		assert_string_equal(text, good[i][1]);
		assert_int_equal(model_service_entries(&service), entries[i]);
		free(text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (model_ports_parse(bad[i], &service) != -EINVAL)
			fail_msg("\"%s\" parses", bad[i]);
		assert_true(service.any_port && !service.n_ports);
	}
	model_service_clear(&service);
}

static void random_models_pass_the_check(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 200; seed++) {
		struct model *model = fixture_random_model(seed);
		struct report report = {};
		char *text;
		int ret = model_check(model, NULL, 0, &report);

		text = report_text(&report);
		if (ret)
			fail_msg("seed %u: %s", (unsigned int)seed, text);
		free(text);
		report_free(&report);
		model_free(model);
	}
}

/* What only a verb can bring about, because the reader of documents has an error of its own for it. */
static void verbs_are_judged_too(void **state)
{
	struct model *model = fixture_random_model(1);
	struct model_pool pool = {.name = strdup("v"), .algorithm = strdup("maglev"), .slots = 251};
	struct model_backend heavy = {.name = strdup("heavy"), .address = fixture_address("10.9.0.1"), .weight = 65536};
	struct model_service none = {.name = strdup("none"), .pool = strdup("v"), .protocol = IPPROTO_ICMP};
	struct report report = {};
	char *text;

	(void)state;
	none.address = fixture_address("192.0.2.77");
	assert_int_equal(model_add_backend(&pool, &heavy), 0);
	assert_int_equal(model_add_pool(model, &pool), 0);
	assert_int_equal(model_add_service(model, &none), 0);
	model->has_key = false;
	assert_int_equal(model_check(model, NULL, 0, &report), -EINVAL);
	text = report_text(&report);
	assert_non_null(strstr(text, "error: backend \"v/heavy\": weight 65536 is out of range: use 0 to 65535\n"));
	assert_non_null(strstr(text, "error: service \"none\" has no port: list ports, or say \"any\"\n"));
	assert_non_null(strstr(text, "error: service \"none\": protocol 1 is not balanced: use tcp or udp\n"));
	assert_non_null(strstr(text, "error: there is no hash key"));
	assert_int_equal(report.errors, 4);
	free(text);
	report_free(&report);
	model_free(model);
}

static void warnings_of_others_are_no_failure(void **state)
{
	struct model *model = fixture_random_model(2);
	struct report report = {};

	(void)state;
	report_add(&report, REPORT_ERROR, 0, 0, "an error from before");
	assert_int_equal(model_check(model, NULL, 0, &report), 0);
	assert_int_equal(report.count, 1);
	report_free(&report);
	model_free(model);
}

/* A pool with a source of each family gets its backends one by one. */
static void backends_of_two_families_come_in_any_order(void **state)
{
	struct model *model = fixture_random_model(1);
	struct model_pool pool = {.name = strdup("dual"), .algorithm = strdup("maglev"), .slots = 251};
	struct model_backend v4 = {.name = strdup("b4"), .address = fixture_address("10.9.0.1"), .weight = 1};
	struct model_backend v6 = {.name = strdup("b6"), .address = fixture_address("fd00:9::1"), .weight = 1};
	struct report report = {};

	(void)state;
	assert_int_equal(model_source_parse("10.9.0.254", &pool.source4), 0);
	assert_int_equal(model_source_parse("fd00:9::fe", &pool.source6), 0);
	assert_int_equal(model_add_pool(model, &pool), 0);
	assert_int_equal(model_check(model, NULL, 0, &report), 0);
	assert_int_equal(model_add_backend(model_pool(model, "dual"), &v6), 0);
	assert_int_equal(model_check(model, NULL, 0, &report), 0);
	assert_int_equal(model_add_backend(model_pool(model, "dual"), &v4), 0);
	assert_int_equal(model_check(model, NULL, 0, &report), 0);
	assert_int_equal(report.count, 0);
	model_free(model);
}

/* The address of a service turns up on an interface: what has nothing to do with it can still be changed. */
static void what_is_wrong_in_force_forbids_no_change(void **state)
{
	struct model *in_force = fixture_random_model(9), *model = NULL;
	struct model_local local = {.interface = "eth0"};
	struct report report = {};

	(void)state;
	assert_true(in_force->n_services > 1);
	local.address = in_force->services[0].address;
	assert_int_equal(model_copy(in_force, &model), 0);
	assert_int_equal(model_check(model, &local, 1, &report), -EINVAL);
	report_free(&report);
	assert_int_equal(model_check_change(model, in_force, &local, 1, &report), 0);
	assert_int_equal(report.errors, 0);
	assert_int_equal(report.count, 1);
	assert_int_equal(report.entries[0].level, REPORT_WARNING);
	report_free(&report);

	model->services[1].address = local.address;
	assert_int_equal(model_check_change(model, in_force, &local, 1, &report), -EINVAL);
	assert_true(report.errors >= 1 && report.count > report.errors);
	report_free(&report);
	assert_int_equal(model_check_change(in_force, NULL, &local, 1, &report), -EINVAL);
	report_free(&report);
	model_free(model);
	model_free(in_force);
}

static void coarse_shares_are_warned_of(void **state)
{
	struct model_pool pool = {.name = strdup("p"), .algorithm = strdup("maglev"), .slots = 13};
	struct model *model = fixture_random_model(1);
	struct report report = {};
	char *text;

	(void)state;
	while (model->n_pools)
		model_del_pool(model, model->pools[0].name);
	for (unsigned int i = 1; i <= 3; i++) {
		struct model_backend backend = {.name = fixture_name("b", i), .weight = i};

		assert_int_equal(model_add_backend(&pool, &backend), 0);
	}
	pool.slots_place = (struct model_place){3, 9};
	assert_int_equal(model_add_pool(model, &pool), 0);
	assert_int_equal(model_warn(model, &report), 0);
	text = report_text(&report);
	/* of 13 slots the weights 1, 2, 3 should have 2.17, 4.33 and 6.5 and get 2, 4 and 7 */
	assert_string_equal(text,
			    "-:3:9: warning: pool \"p\": 3 of 3 shares are off by more than 1 % (\"b1\" by 7.6 %) "
			    "with 13 slots: a table size of 601 keeps all within 1 %\n");
	free(text);
	report_free(&report);
	model_pool(model, "p")->slots = 601;
	assert_int_equal(model_warn(model, &report), 0);
	assert_int_equal(report.count, 0);
	model_free(model);
}

static void this_host_has_a_loopback_address(void **state)
{
	const union shunt_address loopback = fixture_address("127.0.0.1");
	struct model_local *locals = NULL;
	size_t count, found = 0;

	(void)state;
	assert_int_equal(model_locals(&locals, &count), 0);
	for (size_t i = 0; i < count; i++) {
		if (!addr_equal(&locals[i].address, &loopback))
			continue;
		found++;
		assert_true(locals[i].loopback);
		assert_string_equal(locals[i].interface, "lo");
	}
	assert_int_equal(found, 1);
	free(locals);
}

static void the_key_is_exported_only_where_asked(void **state)
{
	struct model *model = fixture_random_model(4);
	char *text;
	json_t *json;

	(void)state;
	memset(model->key, 0xa5, sizeof(model->key));
	json = model_json(model, MODEL_WITHOUT_KEY);
	text = json_dumps(json, 0);
	assert_null(strstr(text, "a5a5"));
	assert_null(strstr(text, "hash-key"));
	free(text);
	json_decref(json);
	json = model_json(model, MODEL_WITH_KEY);
	assert_string_equal(json_string_value(json_object_get(json, "hash-key")), "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5");
	json_decref(json);
	model_free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_is_equal_and_apart),
		cmocka_unit_test(names_stay_sorted_and_unique),
		cmocka_unit_test(pools_and_services_come_and_go),
		cmocka_unit_test(ports_are_read_and_written),
		cmocka_unit_test(random_models_pass_the_check),
		cmocka_unit_test(verbs_are_judged_too),
		cmocka_unit_test(warnings_of_others_are_no_failure),
		cmocka_unit_test(backends_of_two_families_come_in_any_order),
		cmocka_unit_test(what_is_wrong_in_force_forbids_no_change),
		cmocka_unit_test(coarse_shares_are_warned_of),
		cmocka_unit_test(this_host_has_a_loopback_address),
		cmocka_unit_test(the_key_is_exported_only_where_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
