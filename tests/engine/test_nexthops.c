/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ways to backends: who may have slots, what one word moves, and the headers made ready. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "addr.h"
#include "view.h"

static union shunt_address address_of(uint32_t n)
{
	union shunt_address address;
	char text[32];

	snprintf(text, sizeof(text), "10.9.%u.%u", n / 250, n % 250 + 1);
	assert_int_equal(addr_parse(text, &address), 0);
	return address;
}

static void set(struct fixture *f, uint32_t n, const struct engine_nexthop *nexthop)
{
	union shunt_address address = address_of(n);

	assert_int_equal(engine_set_nexthop(f->engine, &address, nexthop), 0);
}

static struct engine_nexthop way_of(uint32_t n, uint32_t epoch)
{
	union shunt_address address = address_of(n);

	return nexthop_of(&address, epoch);
}

static void publish(struct fixture *f)
{
	struct view view;

	assert_int_equal(engine_publish(f->engine, NULL), 0);
	assert_true(view_read(f, &view));
	view_check(&view);
	view_check_state(f, &view);
	view_free(&view);
}

static const struct engine_nexthop unknown = {.why = "neighbour 10.9.0.1 does not answer"};

/* Slots only once known; then for good, whatever netlink says later, also over a restart. */
static void test_gating(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct engine_nexthop way;
	struct view before, after;

	assert_int_equal(apply(f, &want), 0);
	for (uint32_t i = 0; i < 3; i++) {
		way = way_of(i, 0);
		set(f, i, &way);
	}
	set(f, 3, &unknown);
	publish(f);
	assert_true(backend_info(f, "p0", "b00").slots >= 83); /* three share 251 */
	assert_int_equal(backend_info(f, "p0", "b03").slots, 0);
	assert_int_equal(backend_info(f, "p0", "b03").quota, 0);
	assert_int_equal(backend_info(f, "p0", "b03").reachable, false);
	assert_string_equal(backend_info(f, "p0", "b03").nexthop.why, unknown.why);
	way = way_of(3, 0);
	set(f, 3, &way);
	assert_int_equal(backend_info(f, "p0", "b03").slots, 0); /* only remembered */
	publish(f);
	assert_true(backend_info(f, "p0", "b03").slots >= 62);

	assert_true(view_read(f, &before));
	for (uint32_t i = 0; i < 4; i++)
		set(f, i, &unknown);
	publish(f);
	assert_int_equal(backend_info(f, "p0", "b00").nexthop.known, false);
	assert_string_equal(backend_info(f, "p0", "b00").nexthop.why, unknown.why);
	assert_memory_equal(backend_info(f, "p0", "b00").nexthop.mac, way_of(0, 0).mac, 6);
	fixture_close(f);
	fixture_open(f);
	publish(f);
	for (uint32_t i = 0; i < 4; i++)
		set(f, i, &unknown);
	publish(f);
	assert_true(view_read(f, &after));
	assert_true(view_equal(&before, &after));
	assert_int_equal(backend_info(f, "p0", "b00").reachable, true);
	view_free(&before);
	view_free(&after);
}

/* Known before the document that brings it: slots at once. */
static void test_known_ahead(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(2);
	struct engine_nexthop way = way_of(0, 0);

	set(f, 0, &way);
	way = way_of(1, 0);
	set(f, 1, &way);
	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(pool_info(f, "p0").epoch, 1);
	assert_true(backend_info(f, "p0", "b01").slots >= 125);
	/* And forgotten once no backend has it. */
	want.pools[0].backends[1].address = 5;
	assert_int_equal(apply(f, &want), 0);
	want.pools[0].backends[1].address = 1;
	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(backend_info(f, "p0", "b01").slots, 0);
}

static uint32_t differences(const uint64_t *a, const uint64_t *b)
{
	uint32_t n = 0;

	for (int i = 0; i < VIEW_BACKENDS; i++)
		n += a[i] != b[i];
	return n;
}

/* 24 backends behind three gateways: a gateway's new MAC is one word, and nothing else. */
static void test_one_word(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(24);
	struct view before, after;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	for (uint32_t epoch = 1; epoch < 20; epoch++) {
		assert_true(view_read(f, &before));
		for (uint32_t i = 0; i < 24; i++) {
			struct engine_nexthop way = way_of(i, epoch);

			if (way.mac[5] == epoch % 3)
				set(f, i, &way);
		}
		publish(f);
		assert_true(view_read(f, &after));
		assert_int_equal(differences(before.nexthops, after.nexthops), 1);
		assert_memory_equal(before.backends, after.backends, sizeof(before.backends));
		assert_memory_equal(before.ifaces, after.ifaces, sizeof(before.ifaces));
		assert_int_equal(view_table(&before, 0)->inner, view_table(&after, 0)->inner);
		view_free(&before);
		view_free(&after);
	}
}

/* No two entries in use say the same. */
static void check_shared(const struct view *view)
{
	for (uint32_t i = 0; i < view->maps.meta.backends; i++) {
		uint32_t a = view->backends[i].state >> 16 & 0xffff;

		for (uint32_t j = 0; j < i; j++) {
			uint32_t b = view->backends[j].state >> 16 & 0xffff;

			if (view->backends[i].state & view->backends[j].state & 1)
				assert_true(a == b || view->nexthops[a] != view->nexthops[b]);
		}
	}
}

static void check_words(struct fixture *f, uint32_t n, const struct engine_nexthop *ways)
{
	struct view view;

	publish(f);
	assert_true(view_read(f, &view));
	for (uint32_t i = 0; i < n; i++) {
		struct engine_backend_info info;
		uint64_t word;
		char name[8];

		snprintf(name, sizeof(name), "b%02u", i);
		info = backend_info(f, "p0", name);
		word = view.nexthops[view.backends[info.id].state >> 16 & 0xffff];
		assert_memory_equal(&word, ways[i].mac, 6);
		assert_int_equal(view.ifaces[word >> 48].ifindex, ways[i].ifindex);
		assert_memory_equal(view.ifaces[word >> 48].mac, ways[i].source_mac, 6);
		assert_int_equal(view.backends[info.id].state >> 32 & 0xffff, ways[i].mtu);
	}
	check_shared(&view);
	view_free(&view);
}

/* One of many leaves their common way: the word of the others is not touched, not even for a moment. */
static void test_split(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(9);
	struct view before, after;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	for (uint32_t i = 0; i < 9; i += 4) {
		struct engine_nexthop way = way_of(i, 5 + i);
		uint32_t id;
		char name[8];

		snprintf(name, sizeof(name), "b%02u", i);
		id = backend_info(f, "p0", name).id;
		assert_true(view_read(f, &before));
		set(f, i, &way);
		publish(f);
		assert_true(view_read(f, &after));
		for (uint32_t n = 0; n < VIEW_BACKENDS; n++)
			assert_true(!before.nexthops[n] || before.nexthops[n] == after.nexthops[n]);
		assert_true(before.backends[id].state != after.backends[id].state);
		after.backends[id].state = before.backends[id].state;
		assert_memory_equal(before.backends, after.backends, sizeof(before.backends));
		view_free(&before);
		view_free(&after);
	}
}

/* Splits, merges, swaps and chains of ways, at random: each backend has what it was told, in the same table. */
static void test_random_ways(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(24);
	struct engine_nexthop ways[24];
	uint32_t inner = 0;

	assert_int_equal(apply(f, &want), 0);
	for (int round = 0; round < 120; round++) {
		uint32_t kind = random_below(4);

		for (uint32_t i = 0; i < 24; i++) {
			struct engine_nexthop way = way_of(i, 0);

			if (round && kind && random_below(kind == 1 ? 2 : 8))
				continue;
			way.mac[4] = (uint8_t)random_below(4);
			way.mac[5] = (uint8_t)(kind == 2 ? 1 : random_below(3));
			way.ifindex = way.source_mac[5] = (uint8_t)(7 + random_below(2));
			way.mtu = 1280 + random_below(3) * 100;
			ways[i] = way;
			set(f, i, &way);
		}
		if (kind == 3) { /* swap two gateways */
			for (uint32_t i = 0; i < 24; i++) {
				ways[i].mac[4] ^= 1;
				set(f, i, &ways[i]);
			}
		}
		check_words(f, 24, ways);
		if (round % 30 == 29) {
			fixture_close(f);
			fixture_open(f);
			check_words(f, 24, ways);
		}
		if (!round) {
			struct view view;

			assert_true(view_read(f, &view));
			inner = view_table(&view, 0)->inner;
			view_free(&view);
		}
	}
	struct view view;

	assert_true(view_read(f, &view));
	assert_int_equal(view_table(&view, 0)->inner, inner); /* no way moved a slot or an id */
	view_free(&view);
}

/* A path MTU is one store into the state word; beyond 16 bits it is the most that fits. */
static void test_mtu(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(2);
	struct engine_nexthop way = way_of(0, 0);
	struct view before, after;
	uint32_t id;

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	id = backend_info(f, "p0", "b00").id;
	assert_true(view_read(f, &before));
	way.mtu = 1400;
	set(f, 0, &way);
	publish(f);
	assert_true(view_read(f, &after));
	assert_int_equal(after.backends[id].state, (before.backends[id].state & 0xffffffff) | 1400ull << 32);
	after.backends[id].state = before.backends[id].state;
	assert_true(view_equal(&before, &after));
	view_free(&after);
	way.mtu = 70000;
	set(f, 0, &way);
	publish(f);
	assert_true(view_read(f, &after));
	assert_int_equal(after.backends[id].state >> 32, 65535);
	view_free(&after);
	view_free(&before);
}

/* Interfaces come and go under new indexes for ever; an entry in use never changes. */
static void test_interfaces(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(2);
	struct engine_nexthop still = way_of(0, 0), ways[2];
	struct view view;
	uint32_t at = 0;

	assert_int_equal(apply(f, &want), 0);
	ways[0] = still;
	set(f, 0, &still);
	for (uint32_t i = 0; i < 600; i++) {
		ways[1] = way_of(1, 0);
		ways[1].ifindex = 1000 + i;
		set(f, 1, &ways[1]);
		if (i % 50 && i < 250) {
			assert_int_equal(engine_publish(f->engine, NULL), 0);
			continue;
		}
		check_words(f, 2, ways);
		assert_true(view_read(f, &view));
		if (!i)
			while (view.ifaces[at].ifindex != still.ifindex)
				at++;
		assert_int_equal(view.ifaces[at].ifindex, still.ifindex);
		view_free(&view);
	}
}

static void test_refused_ways(void **state)
{
	struct fixture *f = *state;
	union shunt_address address = address_of(0);
	struct engine_nexthop way = way_of(0, 0);

	way.ifindex = 0;
	assert_int_equal(engine_set_nexthop(f->engine, &address, &way), -EINVAL);
	way = way_of(0, 0);
	memset(way.mac, 0, 6);
	assert_int_equal(engine_set_nexthop(f->engine, &address, &way), -EINVAL);
}

static void write_entry(FILE *out, const struct view *view, uint32_t id, const char *kind, const char *source,
			const char *destination)
{
	const uint8_t *bytes = (const uint8_t *)&view->backends[id];

	fprintf(out, "%s %s %s ", kind, source, destination);
	for (int i = 0; i < 64; i++)
		fprintf(out, "%02x", bytes[i]);
	fprintf(out, "\n");
}

/* kind: what headers.py reads; document: the same for shunt. */
static const struct {
	const char *kind, *document;
	bool source;
} encapsulations[] = {
	{"ipip 0 computed", "type: ipip", true},
	{"ipip 0 computed", "type: ipip", false},
	{"gue 6080 computed", "type: gue", true},
	{"gue 6080 computed", "type: gue, udp6-checksum: computed", false},
	{"gue 5555 zero", "type: gue, port: 5555, udp6-checksum: zero", true},
	{"gue 65535 zero", "type: gue, port: 65535, udp6-checksum: zero", false},
	{"l2 0 computed", "type: l2", false},
};

/* An address of 10.128/9 or fd00:8000::/17, or a prefix of a random length. */
static void random_sources(char *source4, char *source6, size_t size)
{
	uint32_t length = 9 + random_below(24), base = (0x0a800000 | random_below(0x7fffff)) & ~0u << (32 - length);
	uint32_t word = 0x8000 + random_below(0x8000), bits = 32 + random_below(96);

	snprintf(source4, size, "%u.%u.%u.%u/%u", base >> 24, base >> 16 & 255, base >> 8 & 255, base & 255, length);
	snprintf(source6, size, "fd00:%x::/%u", word, bits);
	if (random_below(2))
		snprintf(source4, size, "10.200.%u.%u", random_below(250), 1 + random_below(250));
	if (random_below(2))
		snprintf(source6, size, "fd00:%x::%x:%x", word, random_below(0x10000), 1 + random_below(0xffff));
}

static void write_pool(struct fixture *f, FILE *out, const char *kind, const char *source4, const char *source6)
{
	const struct model_pool *pool = &engine_model(f->engine)->pools[0];
	char text[ADDR_TEXT_MAX];
	struct view view;

	assert_true(view_read(f, &view));
	view_check(&view);
	for (size_t i = 0; i < pool->n_backends; i++) {
		struct engine_backend_info info = backend_info(f, "p0", pool->backends[i].name);

		write_entry(out, &view, info.id, kind, addr_is_v4(&pool->backends[i].address) ? source4 : source6,
			    addr_format(&pool->backends[i].address, text));
	}
	view_free(&view);
}

/* Each encapsulation, with configured and preferred sources of both families, judged by headers.py. */
static void test_headers(void **state)
{
	struct fixture *f = *state;
	char path[] = "/tmp/shunt-headers-XXXXXX", command[128];
	FILE *out = fdopen(mkstemp(path), "w");
	size_t n = sizeof(encapsulations) / sizeof(*encapsulations);

	assert_non_null(out);
	for (uint32_t round = 0; round < 6 * n; round++) {
		char source4[48], source6[48], text[192];
		struct want want = want_simple(WANT_BACKENDS);

		random_sources(source4, source6, sizeof(source4));
		for (uint32_t i = 0; i < WANT_BACKENDS; i++)
			want.pools[0].backends[i].address = random_below(60000) | (uint32_t)(i % 2) << 31;
		snprintf(text, sizeof(text), "%s, source: [%s, '%s']", encapsulations[round % n].document, source4,
			 source6);
		want.pools[0].encapsulation =
			encapsulations[round % n].source ? text : encapsulations[round % n].document;
		assert_int_equal(apply(f, &want), 0);
		know(f, 0);
		if (encapsulations[round % n].source)
			write_pool(f, out, encapsulations[round % n].kind, source4, source6);
		else
			write_pool(f, out, encapsulations[round % n].kind, "10.9.255.1", "fd00:9::ffff:1");
	}
	assert_int_equal(fclose(out), 0);
	snprintf(command, sizeof(command), "/usr/bin/python3 tests/engine/headers.py %s", path);
	assert_int_equal(system(command), 0);
	unlink(path);
}

/* By MAC addresses alone, who is behind a gateway has no slots, whatever was known before. */
static void test_l2_gateway(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(2);
	struct engine_nexthop way = way_of(1, 0), on_link = way_of(0, 0);
	uint64_t epoch;

	want.pools[0].encapsulation = "type: l2";
	/* Another pool has a way to the same address, which may lead through a gateway. */
	want.pools[1] = (struct want_pool){.present = true, .algorithm = "maglev", .slots = 251};
	want.pools[1].backends[1] = want.pools[0].backends[1];
	assert_int_equal(apply(f, &want), 0);
	set(f, 0, &on_link);
	for (int round = 0; round < 3; round++) {
		way.gateway = round != 1;
		set(f, 1, &way);
		publish(f);
		assert_int_equal(backend_info(f, "p0", "b00").slots, way.gateway ? 251 : 126);
		assert_int_equal(backend_info(f, "p0", "b01").reachable, !way.gateway);
		assert_int_equal(backend_info(f, "p0", "b01").nexthop.known, !way.gateway);
		assert_string_equal(backend_info(f, "p0", "b01").nexthop.why,
				    way.gateway ? "it is behind a gateway, and l2 needs it on the link" : "");
		/* The maps do not say whether a way leads through a gateway. */
		epoch = pool_info(f, "p0").epoch;
		fixture_close(f);
		fixture_open(f);
		publish(f);
		assert_int_equal(backend_info(f, "p0", "b00").slots, way.gateway ? 251 : 126);
		assert_int_equal(pool_info(f, "p0").epoch, epoch);
		set(f, 0, &on_link);
	}
}

/* The same address by another encapsulation is another backend: packets on their way see the old entry whole. */
static void test_other_encapsulation(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(1);
	uint32_t id;

	for (size_t i = 0; i < sizeof(encapsulations) / sizeof(*encapsulations); i++) {
		want.pools[0].encapsulation = encapsulations[i].document;
		assert_int_equal(apply(f, &want), 0);
		know(f, 0);
		if (i && encapsulations[i].kind != encapsulations[i - 1].kind)
			assert_int_not_equal(backend_info(f, "p0", "b00").id, id);
		id = backend_info(f, "p0", "b00").id;
		assert_int_equal(backend_info(f, "p0", "b00").slots, 251);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_gating),
		TEST(test_known_ahead),
		TEST(test_one_word),
		TEST(test_random_ways),
		TEST(test_split),
		TEST(test_mtu),
		TEST(test_interfaces),
		TEST(test_refused_ways),
		TEST(test_headers),
		TEST(test_l2_gateway),
		TEST(test_other_encapsulation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
