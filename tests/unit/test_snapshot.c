/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The service snapshot: what is built is found by a probe written here from the layout alone, and nothing else is. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "snapshot.h"

#define TCP 6
#define UDP 17

static const struct snapshot_capacity full = {16384, 65536};

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 32) * n >> 32);
}

/* ---- the independent probe: bytes and arithmetic from the documented layout ---- */

static uint64_t load64(const uint8_t *p)
{
	uint64_t x;

	memcpy(&x, p, 8);
	return x;
}

static uint32_t load32(const uint8_t *p)
{
	uint32_t x;

	memcpy(&x, p, 4);
	return x;
}

static void two_buckets(uint64_t hash, uint32_t buckets, uint64_t out[2])
{
	unsigned __int128 first = hash >> 32, second = ((hash ^ (hash >> 29)) * 0x9e3779b97f4a7c15ull) >> 32;

	out[0] = (uint64_t)(first * buckets / 4294967296u);
	out[1] = (uint64_t)(second * buckets / 4294967296u);
}

static uint64_t address_hash(const uint8_t *value, const uint8_t address[16])
{
	uint64_t seed = load64(value + 16);

	return (load64(address + 8) ^ seed) * 0x9e3779b97f4a7c15ull + (load64(address) ^ seed) * 0xd6e8feb86659fd93ull;
}

static const uint8_t *probe_address(const uint8_t *value, const uint8_t address[16])
{
	uint64_t bucket[2];

	two_buckets(address_hash(value, address), full.addresses, bucket);
	for (int i = 0; i < 4; i++) {
		const uint8_t *entry = value + 128 + bucket[i / 2] * 64 + (uint64_t)(i % 2) * 32;

		if (load32(entry + 16) && !memcmp(entry, address, 16))
			return entry;
	}
	return NULL;
}

static const uint8_t *probe_service(const uint8_t *value, const uint8_t *address, uint16_t port, uint8_t protocol)
{
	uint64_t key = (uint64_t)load32(address + 16) << 32 | (uint64_t)htons(port) << 8 | protocol;
	const uint8_t *services = value + 128 + full.addresses * 64ull;
	uint64_t bucket[2];

	two_buckets((address_hash(value, address) ^ (uint32_t)key) * 0xd6e8feb86659fd93ull, full.services / 2, bucket);
	for (int i = 0; i < 8; i++) {
		const uint8_t *entry = services + bucket[i / 4] * 64 + (uint64_t)(i % 4) * 16;

		if (load64(entry) == key)
			return entry;
	}
	return NULL;
}

/* ---- content ---- */

static void content_init(struct snapshot_content *c, size_t n_addresses, size_t n_services)
{
	*c = (struct snapshot_content){.revision = 7, .n_addresses = n_addresses, .n_services = n_services};
	c->addresses = calloc(n_addresses + 1, sizeof(*c->addresses));
	c->services = calloc(n_services + 1, sizeof(*c->services));
	assert_true(c->addresses && c->services);
	for (int i = 0; i < SHUNT_HASH_WORDS; i++)
		c->key.word[i] = 0x1000u + (uint32_t)i;
	c->key.final = 0x123456789abcdefull;
}

static union shunt_address v4(uint32_t host_order)
{
	union shunt_address a = {};

	a.byte[10] = a.byte[11] = 0xff;
	a.word[3] = htonl(host_order);
	return a;
}

static union shunt_address v6(uint64_t subnet, uint64_t host)
{
	union shunt_address a = {.byte = {0x20, 0x01, 0x0d, 0xb8}};

	for (int i = 0; i < 4; i++)
		a.byte[7 - i] = (uint8_t)(subnet >> 8 * i);
	for (int i = 0; i < 8; i++)
		a.byte[15 - i] = (uint8_t)(host >> 8 * i);
	return a;
}

static void set_service(struct snapshot_service *s, uint32_t address, uint16_t port, uint8_t protocol, uint32_t number)
{
	*s = (struct snapshot_service){
		address, port, protocol, (uint8_t)(number % 3), (uint8_t)(number / 3 % 3), (uint16_t)(number % 1021),
		number};
}

static void *build(const struct snapshot_content *c)
{
	void *value = malloc(snapshot_size(&full));

	assert_non_null(value);
	memset(value, 0xa5, snapshot_size(&full));
	assert_int_equal(snapshot_build(c, &full, value, NULL), 0);
	return value;
}

/* Each entry is found with its content. */
static void check_all_found(const struct snapshot_content *c, const uint8_t *value)
{
	for (size_t i = 0; i < c->n_services; i++) {
		const struct snapshot_service *s = &c->services[i];
		const uint8_t *address = probe_address(value, c->addresses[s->address].address.byte), *entry;

		assert_non_null(address);
		entry = probe_service(value, address, s->port, s->protocol);
		assert_non_null(entry);
		assert_int_equal(load32(entry + 8), s->counter);
		assert_int_equal(entry[12] | entry[13] << 8, s->pool);
		assert_int_equal(entry[14], s->table_class);
		assert_int_equal(entry[15], s->hash_mode);
	}
	for (size_t i = 0; i < c->n_addresses; i++) {
		const uint8_t *entry = probe_address(value, c->addresses[i].address.byte);

		assert_non_null(entry);
		assert_int_equal(load32(entry + 20) & 1, c->addresses[i].flags & 1);
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- tests ---- */

static void test_empty(void **state)
{
	struct snapshot_content c, back;
	struct shunt_snapshot *value;

	(void)state;
	content_init(&c, 0, 0);
	value = build(&c);
	assert_int_equal(value->abi, SHUNT_ABI);
	assert_int_equal(value->revision, 7);
	assert_memory_equal(&value->key, &c.key, sizeof(c.key));
	assert_null(probe_address((uint8_t *)value, v4(0xc000020a).byte));
	assert_int_equal(snapshot_read(value, &full, &back), 0);
	assert_int_equal(back.n_addresses + back.n_services, 0);
	snapshot_free(&back);
	snapshot_free(&c);
	free(value);
}

static void test_flags(void **state)
{
	struct snapshot_content c;
	uint8_t *value;

	(void)state;
	content_init(&c, 3, 3);
	c.settings = SHUNT_SETTING_TTL_ANSWER;
	c.error_interval = 4711;
	c.error_burst = 3;
	c.addresses[0].address = v4(0xc000020a);
	c.addresses[0].pool = 9;
	c.addresses[1].address = v6(1, 1);
	c.addresses[1].flags = SHUNT_ADDRESS_UNKNOWN_PASS;
	c.addresses[2] =
		(struct snapshot_address){v4(0xc000020b), SHUNT_ADDRESS_ECHO_FORWARD | SNAPSHOT_DERIVED, 5, 2, 70000};
	set_service(&c.services[0], 0, 80, TCP, 1);
	set_service(&c.services[1], 1, 0, UDP, 2);
	set_service(&c.services[2], 2, 0, TCP, 3);
	value = build(&c);
	assert_int_equal(load32(value + 28), SHUNT_SETTING_TTL_ANSWER);
	assert_int_equal(load32(value + 32), 4711);
	assert_int_equal(load32(value + 36), 3);
	check_all_found(&c, value);
	assert_int_equal(load32(probe_address(value, c.addresses[0].address.byte) + 20), 0);
	assert_int_equal(load32(probe_address(value, c.addresses[1].address.byte) + 20),
			 SHUNT_ADDRESS_UNKNOWN_PASS | SHUNT_ADDRESS_ANY_UDP);
	assert_int_equal(load32(probe_address(value, c.addresses[2].address.byte) + 20),
			 SHUNT_ADDRESS_ECHO_FORWARD | SHUNT_ADDRESS_ANY_TCP);
	/* Where pings go is there only where they go somewhere. */
	assert_int_equal(load64(probe_address(value, c.addresses[0].address.byte) + 24), 0);
	assert_int_equal(load32(probe_address(value, c.addresses[2].address.byte) + 24), 70000);
	assert_int_equal(load32(probe_address(value, c.addresses[2].address.byte) + 28), 5 | 2 << 16);
	free(value);
	snapshot_free(&c);
}

static void check_single(const struct snapshot_content *c, uint32_t four, uint32_t six)
{
	struct shunt_snapshot *value = build(c);

	assert_int_equal(value->single_pool[0], four);
	assert_int_equal(value->single_pool[1], six);
	free(value);
}

/* A pool is named where it is the only one of its family, and its table of the middle class. */
static void test_single_pool(void **state)
{
	struct snapshot_content c;

	(void)state;
	content_init(&c, 3, 4);
	c.addresses[0].address = v4(0xc000020a);
	c.addresses[1].address = v6(1, 1);
	c.addresses[2].address = v4(0xc000020b);
	c.n_services = 0;
	check_single(&c, SHUNT_POOLS_MAX, SHUNT_POOLS_MAX);
	for (uint32_t i = 0; i < 4; i++) {
		set_service(&c.services[i], i % 3, (uint16_t)(80 + i), TCP, i);
		c.services[i].table_class = SHUNT_TABLE_M;
		c.services[i].pool = i == 1 ? 6 : 4;
	}
	c.n_services = 4;
	check_single(&c, 4, 6);
	c.services[1].table_class = SHUNT_TABLE_S;
	check_single(&c, 4, SHUNT_POOLS_MAX);
	c.services[3].pool = 0;
	check_single(&c, SHUNT_POOLS_MAX, SHUNT_POOLS_MAX);
	c.n_services = 1;
	c.services[0].pool = 0;
	check_single(&c, 0, SHUNT_POOLS_MAX);
	snapshot_free(&c);
}

/* The worst shapes an operator has: addresses in a row, one per /64, and all ports of few addresses. */
static void test_full_capacity(void **state)
{
	(void)state;
	for (int shape = 0; shape < 4; shape++) {
		struct snapshot_content c, back;
		double start, took;
		void *value;

		content_init(&c, full.addresses, full.services);
		for (uint32_t i = 0; i < full.addresses; i++)
			c.addresses[i].address = shape == 0   ? v4(0x0a000000 + i)
						 : shape == 1 ? v6(i, 1)
						 : shape == 2
							 ? v6(0, i + 1)
							 : v6(random_below(~0u), (uint64_t)i << 32 | random_below(~0u));
		for (uint32_t i = 0; i < full.services; i++)
			set_service(&c.services[i], shape ? i / 4 : i / 65535,
				    (uint16_t)(shape ? i % 4 + 1 : i % 65535 + 1), shape ? TCP : UDP, i);
		start = seconds();
		value = build(&c);
		took = seconds() - start;
		assert_true(took < 1.0);
		check_all_found(&c, value);
		assert_int_equal(snapshot_read(value, &full, &back), 0);
		assert_int_equal(back.n_addresses, full.addresses);
		assert_int_equal(back.n_services, full.services);
		check_all_found(&back, value);
		snapshot_free(&back);
		snapshot_free(&c);
		free(value);
	}
}

static void random_content(struct snapshot_content *c)
{
	size_t n = 1 + random_below(200), m = random_below(800);

	content_init(c, n, m);
	for (size_t i = 0; i < n; i++) {
		uint32_t r = random_below(1u << 20) << 8 | (uint32_t)i; /* distinct by the low byte */

		c->addresses[i].address = random_below(2) ? v4(r) : v6(random_below(~0u), r);
		c->addresses[i].flags = random_below(2);
	}
	for (size_t i = 0; i < m; i++)
		set_service(&c->services[i], random_below((uint32_t)n), (uint16_t)(i < 20 ? 0 : i),
			    (uint8_t)(random_below(2) ? TCP : UDP), random_below(~0u));
}

static void shuffle(struct snapshot_content *c, struct snapshot_content *out)
{
	uint32_t *where = calloc(c->n_addresses, sizeof(*where));

	content_init(out, c->n_addresses, c->n_services);
	for (uint32_t i = 0; i < c->n_addresses; i++)
		where[i] = i;
	for (uint32_t i = (uint32_t)c->n_addresses; i > 1; i--) {
		uint32_t j = random_below(i), t = where[i - 1];

		where[i - 1] = where[j];
		where[j] = t;
	}
	for (size_t i = 0; i < c->n_addresses; i++)
		out->addresses[where[i]] = c->addresses[i];
	for (size_t i = 0; i < c->n_services; i++) {
		out->services[i] = c->services[c->n_services - 1 - i];
		out->services[i].address = where[out->services[i].address];
	}
	free(where);
}

static bool has_duplicate(const struct snapshot_content *c)
{
	for (size_t i = 0; i < c->n_services; i++) {
		for (size_t j = 0; j < i; j++) {
			const struct snapshot_service *a = &c->services[i], *b = &c->services[j];

			if (a->address == b->address && a->port == b->port && a->protocol == b->protocol)
				return true;
		}
	}
	return false;
}

static void test_random(void **state)
{
	uint8_t *value = malloc(snapshot_size(&full));

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct snapshot_content c, shuffled, back;
		uint8_t *again, *rebuilt;
		int ret;

		random_content(&c);
		ret = snapshot_build(&c, &full, value, NULL);
		assert_int_equal(ret, has_duplicate(&c) ? -EINVAL : 0);
		if (ret) {
			snapshot_free(&c);
			continue;
		}
		check_all_found(&c, value);
		for (int i = 0; i < 200; i++) {
			union shunt_address a = v4(0xf0000000 + random_below(1u << 28));
			const uint8_t *address;

			assert_null(probe_address(value, a.byte));
			address = probe_address(value, c.addresses[random_below((uint32_t)c.n_addresses)].address.byte);
			assert_null(probe_service(value, address, (uint16_t)(1000 + random_below(60000)), TCP));
		}
		shuffle(&c, &shuffled);
		again = build(&shuffled);
		assert_memory_equal(value, again, snapshot_size(&full));
		assert_int_equal(snapshot_read(value, &full, &back), 0);
		rebuilt = build(&back);
		assert_memory_equal(value, rebuilt, snapshot_size(&full));
		snapshot_free(&c);
		snapshot_free(&shuffled);
		snapshot_free(&back);
		free(again);
		free(rebuilt);
	}
	free(value);
}

/* Small capacities, all of it used, and what is read back fits a larger one. */
static void test_other_capacities(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 64; n++) {
		struct snapshot_capacity small = {n, n};
		struct snapshot_content c, back;
		void *value = malloc(snapshot_size(&small)), *large;

		content_init(&c, n, n);
		for (uint32_t i = 0; i < n; i++) {
			c.addresses[i].address = v4(0xc6336400 + i);
			set_service(&c.services[i], i, 443, TCP, i);
		}
		assert_int_equal(snapshot_build(&c, &small, value, NULL), 0);
		assert_int_equal(snapshot_read(value, &small, &back), 0);
		large = build(&back);
		check_all_found(&c, large);
		snapshot_free(&c);
		snapshot_free(&back);
		free(value);
		free(large);
	}
}

static void expect_refused(const struct snapshot_content *c, const struct snapshot_capacity *capacity, int error,
			   const char *sentence)
{
	void *value = calloc(1, snapshot_size(capacity));
	struct report report = {};

	assert_int_equal(snapshot_build(c, capacity, value, &report), error);
	assert_int_equal(report.errors, 1);
	assert_non_null(strstr(report.entries[0].text, sentence));
	report_free(&report);
	free(value);
}

static void test_refusals(void **state)
{
	struct snapshot_content c;

	(void)state;
	content_init(&c, 3, 3);
	for (uint32_t i = 0; i < 3; i++) {
		c.addresses[i].address = v4(0xc000020a + i);
		set_service(&c.services[i], i, 80, TCP, i);
	}
	expect_refused(&c, &(struct snapshot_capacity){3, 2}, -ENOSPC, "shunt-loader upgrade --services 3");
	expect_refused(&c, &(struct snapshot_capacity){2, 3}, -ENOSPC, "shunt-loader upgrade --addresses 3");
	c.services[2].address = 3;
	expect_refused(&c, &full, -EINVAL, "address index 3 of 3");
	c.services[2].address = 0;
	expect_refused(&c, &full, -EINVAL, "192.0.2.10:80");
	c.services[2].address = 2;
	c.services[2].protocol = 1;
	expect_refused(&c, &full, -EINVAL, "protocol 1");
	c.services[2].protocol = TCP;
	c.addresses[2].address = c.addresses[0].address;
	expect_refused(&c, &full, -EINVAL, "192.0.2.10 is listed twice");
	snapshot_free(&c);
}

static void test_read_refuses_damage(void **state)
{
	struct snapshot_content c, back = {.revision = 99};
	struct shunt_snapshot *value;

	(void)state;
	content_init(&c, 2, 2);
	c.addresses[0].address = v4(0xc000020a);
	c.addresses[1].address = v4(0xc000020b);
	set_service(&c.services[0], 0, 80, TCP, 1);
	set_service(&c.services[1], 1, 80, TCP, 2);
	value = build(&c);
	value->abi++;
	assert_int_equal(snapshot_read(value, &full, &back), -EUCLEAN);
	value->abi--;
	value->addresses = 3;
	assert_int_equal(snapshot_read(value, &full, &back), -EUCLEAN);
	value->addresses = 1;
	assert_int_equal(snapshot_read(value, &full, &back), -EUCLEAN);
	value->addresses = 2;
	value->services = 1;
	assert_int_equal(snapshot_read(value, &full, &back), -EUCLEAN);
	value->services = UINT32_MAX;
	assert_int_equal(snapshot_read(value, &full, &back), -EUCLEAN);
	assert_int_equal(back.revision, 99);
	free(value);
	snapshot_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),	    cmocka_unit_test(test_flags),
		cmocka_unit_test(test_single_pool), cmocka_unit_test(test_full_capacity),
		cmocka_unit_test(test_random),	    cmocka_unit_test(test_other_capacities),
		cmocka_unit_test(test_refusals),    cmocka_unit_test(test_read_refuses_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
