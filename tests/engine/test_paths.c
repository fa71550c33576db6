/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The paths behind us: whom errors are about, in the maps, and path MTUs that they lowered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "addr.h"
#include "view.h"

#define TEN_MINUTES_MS 600000u

/* Elements of a map, walked by system calls. */
static uint32_t count(int fd)
{
	char keys[2][32], *key = NULL;
	uint32_t n = 0;

	while (!bpf_map_get_next_key(fd, key, keys[n & 1]))
		key = keys[n++ & 1];
	return n;
}

static bool has_source(struct fixture *f, const char *text)
{
	struct shunt_prefix prefix, key;
	char keys[2][sizeof(key)], *at = NULL;
	int fd = engine_maps(f->engine)->outer_sources;

	assert_int_equal(prefix_parse(text, &prefix), 0);
	/* By the walk: a lookup also finds a shorter prefix. */
	for (uint32_t n = 0; !bpf_map_get_next_key(fd, at, keys[n & 1]); n++) {
		at = keys[n & 1];
		if (!memcmp(at, &prefix, sizeof(prefix)))
			return true;
	}
	return false;
}

static struct shunt_endpoint endpoint_of(struct fixture *f, const char *text)
{
	struct shunt_endpoint endpoint = {};
	union shunt_address address;

	assert_int_equal(addr_parse(text, &address), 0);
	bpf_map_lookup_elem(engine_maps(f->engine)->endpoints, &address, &endpoint);
	return endpoint;
}

static uint32_t sources(struct fixture *f)
{
	return count(engine_maps(f->engine)->outer_sources);
}

static uint32_t endpoints(struct fixture *f)
{
	return count(engine_maps(f->engine)->endpoints);
}

/* p0: by IPv4 and IPv6, from configured sources; p1: the first of these too, from the host's preferred source. */
static struct want two_pools(void)
{
	struct want want = want_simple(3);

	want.pools[0].backends[3] = (struct want_backend){true, 1, 1u << 31};
	want.pools[0].encapsulation = "type: ipip, source: [10.77.0.0/20, 'fd00:77::1']";
	want.pools[1] = want_simple(1).pools[0];
	want.pools[1].encapsulation = "type: gue";
	want.services[1].present = true;
	want.services[1].pool = 1;
	return want;
}

static void check_two_pools(struct fixture *f)
{
	struct shunt_endpoint shared = endpoint_of(f, "10.9.0.1");
	uint32_t a = backend_info(f, "p0", "b00").id, b = backend_info(f, "p1", "b00").id;

	assert_int_equal(sources(f), 3);
	assert_true(has_source(f, "10.77.0.0/20") && has_source(f, "fd00:77::1") && has_source(f, "10.9.255.1"));
	assert_int_equal(endpoints(f), 4);
	assert_int_equal(shared.count, 2);
	assert_true(shared.id[0] == (a < b ? a : b) && shared.id[1] == (a < b ? b : a));
	assert_int_equal(endpoint_of(f, "10.9.0.2").count, 1);
	assert_int_equal(endpoint_of(f, "10.9.0.2").id[0], backend_info(f, "p0", "b01").id);
	assert_int_equal(endpoint_of(f, "fd00:9::1").id[0], backend_info(f, "p0", "b03").id);
}

static void test_filled_and_emptied(void **state)
{
	struct fixture *f = *state;
	struct want want = two_pools();

	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(sources(f) + endpoints(f), 0); /* no way is known: nobody is sent to */
	know(f, 0);
	check_two_pools(f);
	want.pools[0].backends[1].present = false;
	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(endpoint_of(f, "10.9.0.2").count, 0);
	assert_int_equal(endpoints(f), 3);
	/* The other pool keeps its backend of the same address, and its source. */
	want.pools[0] = want_simple(2).pools[0];
	want.pools[0].encapsulation = "type: l2";
	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	assert_int_equal(endpoints(f), 1);
	assert_int_equal(endpoint_of(f, "10.9.0.1").count, 1);
	assert_int_equal(endpoint_of(f, "10.9.0.1").id[0], backend_info(f, "p1", "b00").id);
	assert_int_equal(sources(f), 1);
	assert_true(has_source(f, "10.9.255.1"));
	/* Another source is another entry of the same backend. */
	want.pools[1].encapsulation = "type: gue, source: [10.77.7.7]";
	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(sources(f), 1);
	assert_true(has_source(f, "10.77.7.7"));
	assert_int_equal(endpoint_of(f, "10.9.0.1").count, 1);
	assert_int_equal(endpoint_of(f, "10.9.0.1").id[0], backend_info(f, "p1", "b00").id);
}

/* Whatever the maps had: after a restart, and on new pins, they have exactly what belongs there. */
static void test_restart(void **state)
{
	struct fixture *f = *state;
	struct want want = two_pools();
	struct shunt_endpoint wrong = {.count = 3, .id = {1, 2, 3}};
	union shunt_address address, stray;
	struct shunt_prefix prefix;
	const struct maps *maps;
	uint8_t one = 1;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	maps = engine_maps(f->engine);
	assert_int_equal(addr_parse("10.9.0.1", &address), 0);
	assert_int_equal(addr_parse("10.66.0.1", &stray), 0);
	assert_int_equal(bpf_map_update_elem(maps->endpoints, &address, &wrong, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(maps->endpoints, &stray, &wrong, BPF_ANY), 0);
	assert_int_equal(addr_parse("10.9.0.2", &address), 0);
	assert_int_equal(bpf_map_delete_elem(maps->endpoints, &address), 0);
	assert_int_equal(prefix_parse("10.0.0.0/8", &prefix), 0);
	assert_int_equal(bpf_map_update_elem(maps->outer_sources, &prefix, &one, BPF_ANY), 0);
	assert_int_equal(prefix_parse("10.9.255.1", &prefix), 0);
	assert_int_equal(bpf_map_delete_elem(maps->outer_sources, &prefix), 0);
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	check_two_pools(f);
	fixture_close(f);
	fixture_lose_pins(f);
	fixture_open(f);
	know(f, 0);
	check_two_pools(f);
}

/* All maps are full to the last element, and every backend is replaced by another. */
static void test_full_maps(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(6);

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	assert_int_equal(endpoints(f), 6);
	for (uint32_t round = 1; round < 5; round++) {
		for (uint32_t i = 0; i < 3; i++)
			want.pools[0].backends[i] = (struct want_backend){.present = false};
		assert_int_equal(apply(f, &want), 0);
		for (uint32_t i = 0; i < 3; i++)
			want.pools[0].backends[i] = (struct want_backend){true, 1, 10 * round + i};
		assert_int_equal(apply(f, &want), 0);
		know(f, 0);
		assert_int_equal(endpoints(f), 6);
	}
}

/* Of more backends behind one address than an element holds, those with the lowest ids. */
static void test_many_behind_one_address(void **state)
{
	struct fixture *f = *state;
	struct shunt_endpoint endpoint;
	char text[8192], *at = text;

	at += sprintf(at, "version: 1\npools:\n");
	for (int i = 0; i < 16; i++)
		at += sprintf(at,
			      "- {name: p%d, table: {algorithm: maglev, size: 251}, encapsulation: {type: ipip}, "
			      "backends: [{name: b00, address: 10.9.0.1}]}\n",
			      i);
	sprintf(at, "services: []\n");
	assert_int_equal(engine_apply(f->engine, model_of_text(text), NULL, NULL), 0);
	know(f, 0);
	endpoint = endpoint_of(f, "10.9.0.1");
	assert_int_equal(endpoints(f), 1);
	assert_int_equal(endpoint.count, SHUNT_ENDPOINT_BACKENDS);
	for (uint32_t i = 1; i < endpoint.count; i++)
		assert_true(endpoint.id[i - 1] < endpoint.id[i]);
	assert_true(endpoint.id[SHUNT_ENDPOINT_BACKENDS - 1] <= SHUNT_ENDPOINT_BACKENDS);
}

/* ---- path MTUs ---- */

/* As packets do it. */
static void lower(struct fixture *f, uint32_t id, uint32_t mtu, uint64_t now)
{
	const struct maps *maps = engine_maps(f->engine);
	struct shunt_path path;
	struct shunt_backend entry;

	assert_int_equal(bpf_map_lookup_elem(maps->backends, &id, &entry), 0);
	entry.state = (entry.state & ~(0xffffull << 32)) | (uint64_t)mtu << 32;
	assert_int_equal(bpf_map_update_elem(maps->backends, &id, &entry, BPF_ANY), 0);
	assert_int_equal(bpf_map_lookup_elem(maps->backend_path, &id, &path), 0);
	path.errors++;
	path.lowered = now * 1000000;
	assert_int_equal(bpf_map_update_elem(maps->backend_path, &id, &path, BPF_ANY), 0);
}

static uint64_t tick(struct fixture *f, uint64_t now)
{
	uint64_t next;

	assert_int_equal(engine_tick(f->engine, now, &next, NULL), 0);
	return next;
}

static void check_mtu(struct fixture *f, const char *backend, uint32_t mtu, bool lowered, uint64_t errors)
{
	struct engine_backend_info info = backend_info(f, "p0", backend);
	struct shunt_backend entry;

	assert_int_equal(bpf_map_lookup_elem(engine_maps(f->engine)->backends, &info.id, &entry), 0);
	assert_int_equal(entry.state >> 32 & 0xffff, mtu);
	assert_int_equal(info.mtu, mtu);
	assert_int_equal(info.mtu_lowered, lowered);
	assert_int_equal(info.path_errors, errors);
}

/* Publications and restarts keep it; after ten minutes the way's own is back, in the tick and not before. */
static void test_lowered_and_restored(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(2);
	uint64_t then = 5000000;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	lower(f, backend_info(f, "p0", "b00").id, 1400, then);
	know(f, 1);
	check_mtu(f, "b00", 1400, true, 1);
	check_mtu(f, "b01", 1500, false, 0);
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	check_mtu(f, "b00", 1400, true, 1);
	know(f, 1);
	check_mtu(f, "b00", 1400, true, 1);
	assert_true(tick(f, then + 1000) <= then + TEN_MINUTES_MS);
	lower(f, backend_info(f, "p0", "b00").id, 1300, then + 2000); /* a narrower one: the time begins anew */
	tick(f, then + 2000 + TEN_MINUTES_MS - 1);
	know(f, 1);
	check_mtu(f, "b00", 1300, true, 2);
	tick(f, then + 2000 + TEN_MINUTES_MS);
	check_mtu(f, "b00", 1500, false, 2);
	know(f, 1);
	check_mtu(f, "b00", 1500, false, 2);
}

/* A way that itself takes less counts, and no longer than it does. */
static void test_other_ways(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(1);
	struct engine_nexthop way;
	union shunt_address address;

	assert_int_equal(addr_parse("10.9.0.1", &address), 0);
	way = nexthop_of(&address, 0);
	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	lower(f, backend_info(f, "p0", "b00").id, 1400, 1000);
	for (uint32_t i = 0; i < 3; i++) {
		static const uint32_t ways[] = {9000, 1300, 1500}, in_force[] = {1400, 1300, 1500};

		way.mtu = ways[i];
		assert_int_equal(engine_set_nexthop(f->engine, &address, &way), 0);
		assert_int_equal(engine_publish(f->engine, NULL), 0);
		check_mtu(f, "b00", in_force[i], !i, 1);
	}
}

/* An id that goes to another backend starts without what was known of the one before. */
static void test_id_of_another(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(6);

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	for (uint32_t id = 0; id < 6; id++)
		lower(f, id, 1400, 1000);
	want.pools[0].backends[0].present = false;
	assert_int_equal(apply(f, &want), 0);
	want.pools[0].backends[6] = (struct want_backend){true, 1, 77};
	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	check_mtu(f, "b06", 1500, false, 0);
	check_mtu(f, "b01", 1400, true, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define SMALL(name) cmocka_unit_test_setup_teardown(name, fixture_setup_small, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_filled_and_emptied),	 TEST(test_restart),
		SMALL(test_full_maps),		 TEST(test_many_behind_one_address),
		TEST(test_lowered_and_restored), TEST(test_other_ways),
		SMALL(test_id_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
