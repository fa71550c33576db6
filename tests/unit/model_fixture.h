/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Models to test with: random ones, and the comparison of two.  Include after cmocka.h. */
#ifndef SHUNT_MODEL_FIXTURE_H
#define SHUNT_MODEL_FIXTURE_H

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "model.h"

/* xorshift64: the same numbers on every run. */
static inline uint64_t fixture_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static inline unsigned int fixture_below(uint64_t *seed, unsigned int n)
{
	return (unsigned int)(fixture_random(seed) % n);
}

static inline char *fixture_name(const char *prefix, unsigned int number)
{
	char *name;

	assert_true(asprintf(&name, "%s%u", prefix, number) > 0);
	return name;
}

static inline union shunt_address fixture_address(const char *text)
{
	union shunt_address addr;

	assert_int_equal(addr_parse(text, &addr), 0);
	return addr;
}

static inline union shunt_address fixture_random_address(uint64_t *seed, unsigned int net, unsigned int host)
{
	char text[ADDR_TEXT_MAX];

	if (fixture_below(seed, 2))
		snprintf(text, sizeof(text), "10.%u.%u.%u", net, host / 250, host % 250 + 1);
	else
		snprintf(text, sizeof(text), "fd00:%x::%x", net, host + 1);
	return fixture_address(text);
}

static inline void fixture_random_pool(uint64_t *seed, struct model *model, unsigned int number)
{
	static const uint32_t primes[] = {251, 509, 4099, 65537};
	static const char *const algorithms[] = {"maglev", "minimal", "rendezvous", "ring"};
	struct model_pool pool = {
		.name = fixture_name("pool-", number),
		.algorithm = strdup(algorithms[fixture_below(seed, 4)]),
		.slots = primes[fixture_below(seed, 4)],
		.connections = number % MODEL_NR_CONNECTIONS,
		.settle = MODEL_DURATION_MIN + 7654321 * number,
		.learn = MODEL_DURATION_MIN + 321 * number,
		.drain_timeout = MODEL_DURATION_MAX - 7654321 * number,
		.slow_start = number % 2 ? MODEL_DURATION_MIN + 4321 * number : 0,
	};
	bool v4 = false, v6 = false;

	for (unsigned int i = fixture_below(seed, 20); i > 0; i--) {
		struct model_backend backend = {
			.name = fixture_name("Backend_", i),
			.address = fixture_random_address(seed, number, i),
			.weight = fixture_below(seed, 4) ? fixture_below(seed, 100) : fixture_below(seed, 65536),
		};

		v4 |= addr_is_v4(&backend.address);
		v6 |= !addr_is_v4(&backend.address);
		assert_int_equal(model_add_backend(&pool, &backend), 0);
	}
	pool.encapsulation = (enum model_encapsulation)fixture_below(seed, MODEL_NR_ENCAPSULATIONS);
	if (pool.encapsulation == MODEL_GUE) {
		pool.gue_port = (uint16_t)fixture_below(seed, 65536);
		pool.udp6_checksum = (enum model_udp6_checksum)fixture_below(seed, MODEL_NR_UDP6_CHECKSUMS);
	}
	if (v4 && pool.encapsulation != MODEL_L2 && fixture_below(seed, 2))
		model_source_parse(fixture_below(seed, 2) ? "192.168.0.1" : "192.168.0.0/24", &pool.source4);
	if (v6 && pool.encapsulation != MODEL_L2 && fixture_below(seed, 2))
		model_source_parse(fixture_below(seed, 2) ? "2001:db8:ffff::1" : "2001:db8:ffff::/64", &pool.source6);
	assert_int_equal(model_add_pool(model, &pool), 0);
}

static inline void fixture_random_service(uint64_t *seed, struct model *model, unsigned int number)
{
	struct model_service service = {
		.name = fixture_name("service.", number),
		.address = fixture_random_address(seed, 200, number),
		.protocol = fixture_below(seed, 2) ? IPPROTO_TCP : IPPROTO_UDP,
		.any_port = fixture_below(seed, 4) == 0,
		.pool = strdup(model->pools[fixture_below(seed, (unsigned int)model->n_pools)].name),
		.hash = fixture_below(seed, SHUNT_NR_HASH_MODES),
		.unknown_port = fixture_below(seed, MODEL_UNKNOWN_PASS), /* drop or refuse */
		.echo = fixture_below(seed, MODEL_NR_ECHOS),
	};
	unsigned int port = 1;

	while (!service.any_port && (!service.n_ports || fixture_below(seed, 4))) {
		unsigned int first = port + fixture_below(seed, 1000), last = first;

		if (fixture_below(seed, 2))
			last += fixture_below(seed, 500);
		if (last > 65535)
			break;
		service.ports = realloc(service.ports, (service.n_ports + 1) * sizeof(*service.ports));
		assert_non_null(service.ports);
		service.ports[service.n_ports++] = (struct model_ports){(uint16_t)first, (uint16_t)last};
		port = last + 1;
	}
	assert_int_equal(model_add_service(model, &service), 0);
}

/* A model that model_check() takes on a host without these addresses.  The caller frees it. */
static inline struct model *fixture_random_model(uint64_t seed)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	seed = seed * 0x9e3779b97f4a7c15ull + 1;
	for (unsigned int i = fixture_below(&seed, 6) + 1; i > 0; i--)
		fixture_random_pool(&seed, model, i);
	for (unsigned int i = fixture_below(&seed, 12); i > 0; i--)
		fixture_random_service(&seed, model, i);
	model->settings = (struct model_settings){
		.ttl_exceeded = fixture_below(&seed, MODEL_NR_TTL_EXCEEDED),
		.too_big_without_df = fixture_below(&seed, MODEL_NR_TOO_BIG),
		.error_rate = fixture_below(&seed, MODEL_ERROR_RATE_MAX + 1),
	};
	model->has_key = true;
	for (int i = 0; i < MODEL_KEY_BYTES; i++)
		model->key[i] = (uint8_t)fixture_random(&seed);
	return model;
}

static inline void fixture_same_source(const struct model_source *a, const struct model_source *b)
{
	assert_int_equal(a->given, b->given);
	if (a->given)
		assert_memory_equal(&a->prefix, &b->prefix, sizeof(a->prefix));
}

static inline void assert_same_pool(const struct model_pool *a, const struct model_pool *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->algorithm, b->algorithm);
	assert_int_equal(a->slots, b->slots);
	assert_int_equal(a->balance_percent, b->balance_percent);
	assert_int_equal(a->vnodes, b->vnodes);
	assert_int_equal(a->encapsulation, b->encapsulation);
	assert_int_equal(a->gue_port, b->gue_port);
	assert_int_equal(a->udp6_checksum, b->udp6_checksum);
	fixture_same_source(&a->source4, &b->source4);
	fixture_same_source(&a->source6, &b->source6);
	assert_int_equal(a->n_backends, b->n_backends);
	for (size_t i = 0; i < a->n_backends; i++) {
		assert_string_equal(a->backends[i].name, b->backends[i].name);
		assert_true(addr_equal(&a->backends[i].address, &b->backends[i].address));
		assert_int_equal(a->backends[i].weight, b->backends[i].weight);
	}
}

static inline void assert_same_service(const struct model_service *a, const struct model_service *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->pool, b->pool);
	assert_true(addr_equal(&a->address, &b->address));
	assert_int_equal(a->protocol, b->protocol);
	assert_int_equal(a->any_port, b->any_port);
	assert_int_equal(a->hash, b->hash);
	assert_int_equal(a->unknown_port, b->unknown_port);
	assert_int_equal(a->echo, b->echo);
	assert_int_equal(a->n_ports, b->n_ports);
	for (size_t i = 0; i < a->n_ports; i++) {
		assert_int_equal(a->ports[i].first, b->ports[i].first);
		assert_int_equal(a->ports[i].last, b->ports[i].last);
	}
}

static inline void assert_same_model(const struct model *a, const struct model *b)
{
	assert_int_equal(!a->key_file, !b->key_file);
	if (a->key_file)
		assert_string_equal(a->key_file, b->key_file);
	assert_memory_equal(&a->settings, &b->settings, sizeof(a->settings));
	assert_int_equal(a->has_key, b->has_key);
	if (a->has_key)
		assert_memory_equal(a->key, b->key, MODEL_KEY_BYTES);
	assert_int_equal(a->n_pools, b->n_pools);
	for (size_t i = 0; i < a->n_pools; i++)
		assert_same_pool(&a->pools[i], &b->pools[i]);
	assert_int_equal(a->n_services, b->n_services);
	for (size_t i = 0; i < a->n_services; i++)
		assert_same_service(&a->services[i], &b->services[i]);
}

#endif
