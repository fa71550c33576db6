/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model_diff.h"
#include "model_fixture.h"
#include "model_parts.h"

#define MODELS 200

/* What random models do not have, because it goes with some algorithms and settings only. */
static void give_rare_members(struct model *model, uint64_t seed)
{
	const struct model_health health = model_health_default();
	struct model_pool *pool = &model->pools[seed % model->n_pools];

	pool->balance_percent = seed % 3 ? 100 + (uint32_t)seed : 0;
	pool->vnodes = seed % 5 ? (uint32_t)seed : 0;
	pool->udp6_checksum = seed % 2 ? MODEL_UDP6_ZERO : MODEL_UDP6_COMPUTED;
	if (!pool->health && seed % 7)
		assert_int_equal(model_health_copy(&health, &pool->health), 0);
}

/* A text that was written piece by piece says what the objects say, in the same order. */
static void test_write(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < MODELS; seed++) {
		struct model *model = fixture_random_model(seed);
		struct text text = {};
		json_t *json;
		char *whole;

		give_rare_members(model, seed);
		json = model_json(model, MODEL_WITH_KEY);
		model_write(model, &text);
		assert_false(text.failed);
		whole = json_dumps(json, JSON_COMPACT);
		assert_int_equal(strlen(whole), text.length);
		assert_memory_equal(whole, text.at, text.length);
		free(whole);
		json_decref(json);
		text_free(&text);
		model_free(model);
	}
}

/* A document has a key or a key file: where the key is known, its file is left out. */
static void test_write_key_file(void **state)
{
	struct model *model = fixture_random_model(1);
	struct text text = {};
	json_t *json;

	(void)state;
	model->key_file = strdup("/etc/shunt/hash.key");
	model_write(model, &text);
	json = json_loadb(text.at, text.length, 0, NULL);
	assert_null(json_object_get(json, "hash-key-file"));
	assert_non_null(json_object_get(json, "hash-key"));
	json_decref(json);
	text_free(&text);
	model_free(model);
}

static json_t *only_row(const struct model *from, const struct model *to)
{
	json_t *rows = model_diff(from, to), *row;

	assert_int_equal(json_array_size(rows), 1);
	row = json_incref(json_array_get(rows, 0));
	json_decref(rows);
	return row;
}

static void expect(const struct model *from, const struct model *to, const char *kind, const char *name,
		   const char *member)
{
	json_t *row = only_row(from, to), *members = json_object_get(row, "members");

	assert_string_equal(json_string_value(json_object_get(row, "change")), "changed");
	assert_string_equal(json_string_value(json_object_get(row, "kind")), kind);
	assert_string_equal(json_string_value(json_object_get(row, "name")), name);
	assert_int_equal(json_array_size(members), 1);
	assert_string_equal(json_string_value(json_object_get(json_array_get(members, 0), "member")), member);
	json_decref(row);
}

static struct model *two_of(uint64_t seed, struct model **copy)
{
	struct model *model = fixture_random_model(seed);

	assert_int_equal(model_copy(model, copy), 0);
	return model;
}

static void test_diff_of_services(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < MODELS; seed++) {
		struct model *copy, *model = two_of(seed, &copy);
		json_t *none = model_diff(model, copy);

		assert_int_equal(json_array_size(none), 0);
		json_decref(none);
		for (size_t i = 0; i < copy->n_services; i++) {
			struct model_service *service = &copy->services[i], before = *service;

			service->address.byte[15] ^= 1;
			expect(model, copy, "service", service->name, "address");
			*service = before;
			service->protocol = service->protocol == IPPROTO_TCP ? IPPROTO_UDP : IPPROTO_TCP;
			expect(model, copy, "service", service->name, "protocol");
			*service = before;
			service->hash = (service->hash + 1) % SHUNT_NR_HASH_MODES;
			expect(model, copy, "service", service->name, "hash");
			*service = before;
			service->unknown_port = (service->unknown_port + 1) % MODEL_NR_UNKNOWN_PORTS;
			expect(model, copy, "service", service->name, "unknown-port");
			*service = before;
			service->echo = (service->echo + 1) % MODEL_NR_ECHOS;
			expect(model, copy, "service", service->name, "echo");
			*service = before;
			service->pool = (char *)"another";
			expect(model, copy, "service", service->name, "pool");
			*service = before;
			if (service->n_ports) {
				service->any_port = true;
				expect(model, copy, "service", service->name, "ports");
				*service = before;
				service->ports[0].last++;
				expect(model, copy, "service", service->name, "ports");
				service->ports[0].last--;
			}
		}
		model_free(model);
		model_free(copy);
	}
}

static void test_diff_of_backends(void **state)
{
	char name[2 * MODEL_NAME_MAX + 2];

	(void)state;
	for (uint64_t seed = 0; seed < MODELS; seed++) {
		struct model *copy, *model = two_of(seed, &copy);

		for (size_t i = 0; i < copy->n_pools; i++) {
			for (size_t j = 0; j < copy->pools[i].n_backends; j++) {
				struct model_backend *backend = &copy->pools[i].backends[j];

				snprintf(name, sizeof(name), "%s/%s", copy->pools[i].name, backend->name);
				backend->weight++;
				expect(model, copy, "backend", name, "weight");
				backend->weight--;
				backend->address.byte[15] ^= 1;
				expect(model, copy, "backend", name, "address");
				backend->address.byte[15] ^= 1;
			}
		}
		model_free(model);
		model_free(copy);
	}
}

static void expect_both_ways(const struct model *less, const struct model *more, const char *kind, const char *name)
{
	const char *const changes[] = {"added", "removed"};

	for (int i = 0; i < 2; i++) {
		json_t *row = i ? only_row(more, less) : only_row(less, more);

		assert_string_equal(json_string_value(json_object_get(row, "change")), changes[i]);
		assert_string_equal(json_string_value(json_object_get(row, "kind")), kind);
		assert_string_equal(json_string_value(json_object_get(row, "name")), name);
		json_decref(row);
	}
}

static void test_diff_of_what_comes_and_goes(void **state)
{
	char name[2 * MODEL_NAME_MAX + 2];

	(void)state;
	for (uint64_t seed = 0; seed < MODELS; seed++) {
		struct model *copy, *model = two_of(seed, &copy);
		struct model_pool *pool = &copy->pools[seed % copy->n_pools];

		if (pool->n_backends) {
			snprintf(name, sizeof(name), "%s/%s", pool->name, pool->backends[0].name);
			model_del_backend(pool, pool->backends[0].name);
			expect_both_ways(copy, model, "backend", name);
		}
		model_free(copy);
		assert_int_equal(model_copy(model, &copy), 0);
		if (copy->n_services) {
			snprintf(name, sizeof(name), "%s", copy->services[copy->n_services - 1].name);
			model_del_service(copy, name);
			expect_both_ways(copy, model, "service", name);
		}
		model_free(model);
		model_free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_write_key_file),
		cmocka_unit_test(test_diff_of_services),
		cmocka_unit_test(test_diff_of_backends),
		cmocka_unit_test(test_diff_of_what_comes_and_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
