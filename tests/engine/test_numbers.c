/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capacities, ids, generations and counters: what is refused, kept, and given again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "addr.h"
#include "view.h"

static void expect_refused(struct fixture *f, const struct want *want, const char *sentence)
{
	struct model *model = model_of(want);
	struct report report = {};
	struct view before, after;
	size_t length;
	char *was = fixture_read_state(f, &length), *is;

	assert_true(view_read(f, &before));
	assert_int_equal(engine_apply(f->engine, model, &(struct engine_change){.document_tag = 99}, &report), -ENOSPC);
	assert_true(report.errors >= 1);
	if (!strstr(report.entries[report.count - 1].text, sentence))
		fail_msg("%s", report.entries[report.count - 1].text);
	report_free(&report);
	model_free(model);
	assert_true(view_read(f, &after));
	assert_true(view_equal(&before, &after));
	is = fixture_read_state(f, &length);
	assert_string_equal(was, is);
	assert_int_equal(engine_document_tag(f->engine), 0);
	view_free(&before);
	view_free(&after);
	free(was);
	free(is);
}

/* The small instance: 8 service entries, 4 addresses, 3 pools, 6 backends. */
static void test_capacities(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(6), more;
	char sentence[160];

	for (int i = 1; i < 3; i++) {
		want.pools[i] = want_simple(0).pools[0];
		want.services[i].present = true;
		want.services[i].ports = 3;
	}
	assert_int_equal(apply(f, &want), 0); /* all that fits */
	know(f, 0);

	more = want;
	more.pools[3] = want_simple(0).pools[0];
	snprintf(sentence, sizeof(sentence), "`shunt-loader upgrade --pools 4 --instance %s`", f->instance);
	expect_refused(f, &more, sentence);
	more = want;
	more.pools[1].backends[9] = (struct want_backend){true, 1, 77};
	snprintf(sentence, sizeof(sentence),
		 "7 backends exceed the capacity of 6: grow it with "
		 "`shunt-loader upgrade --backends 8 --instance %s`",
		 f->instance);
	expect_refused(f, &more, sentence);
	more = want;
	more.services[3].present = true;
	snprintf(sentence, sizeof(sentence), "`shunt-loader upgrade --services 16 --instance %s`", f->instance);
	expect_refused(f, &more, sentence);
	more = want;
	for (int i = 0; i < 5; i++) {
		more.services[i].present = true;
		more.services[i].ports = 0;
	}
	snprintf(sentence, sizeof(sentence), "`shunt-loader upgrade --addresses 8 --instance %s`", f->instance);
	expect_refused(f, &more, sentence);
	assert_int_equal(apply(f, &want), 0);
}

/* Six ids in use: another address for one of them needs a seventh. */
static void test_no_id_to_change(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(6);

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	want.pools[0].backends[2].address = 200;
	expect_refused(f, &want, "make the change in two steps");
	want.pools[0].backends[2].present = false;
	assert_int_equal(apply(f, &want), 0);
	want.pools[0].backends[2].present = true;
	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	assert_true(backend_info(f, "p0", "b02").slots > 0);
}

static void set_sources(struct fixture *f, const char *source)
{
	for (uint32_t i = 0; i < 6; i++) {
		struct engine_nexthop nexthop;
		union shunt_address address;
		char text[32];

		snprintf(text, sizeof(text), "10.9.0.%u", i + 1);
		assert_int_equal(addr_parse(text, &address), 0);
		nexthop = nexthop_of(&address, 0);
		assert_int_equal(addr_parse(source, &nexthop.source), 0);
		assert_int_equal(engine_set_nexthop(f->engine, &address, &nexthop), 0);
	}
}

static bool says(const struct report *report, const char *sentence)
{
	for (size_t i = 0; i < report->count; i++) {
		if (strstr(report->entries[i].text, sentence))
			return true;
	}
	return false;
}

static uint32_t count_source(struct fixture *f, uint8_t last)
{
	struct view view;
	uint32_t n = 0;

	assert_true(view_read(f, &view));
	view_check(&view);
	view_check_state(f, &view);
	for (uint32_t id = 0; id < 6; id++)
		n += (view.backends[id].state & 1) && view.backends[id].outer[15] == last;
	view_free(&view);
	return n;
}

/* The host's source towards them moves: in rounds, with the ids that there are; or not at all, and it says so. */
static void test_source_moves_when_full(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(5);
	struct report report = {};

	assert_int_equal(apply(f, &want), 0);
	set_sources(f, "10.9.255.1");
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	assert_int_equal(count_source(f, 1), 5);
	set_sources(f, "10.9.255.2");
	assert_int_equal(engine_publish(f->engine, &report), 0);
	assert_false(says(&report, "former outer source"));
	report_free(&report);
	assert_int_equal(count_source(f, 2), 5);
	assert_int_equal(pool_info(f, "p0").epoch, 2);

	want.pools[0].backends[5] = (struct want_backend){true, 1, 5};
	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(count_source(f, 2), 6);
	set_sources(f, "10.9.255.3");
	assert_int_equal(engine_publish(f->engine, &report), 0);
	assert_true(says(&report, "6 backends keep their former outer source"));
	assert_int_equal(count_source(f, 2), 6);
	report_free(&report);
	want.pools[0].backends[5].present = false;
	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	assert_int_equal(count_source(f, 3), 5);
}

/* An id is given again only with the next generation, and with counters at zero. */
static void test_generations(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(3);
	uint32_t last[6], times[6] = {};
	int reused = 0;

	memset(last, 0xff, sizeof(last));
	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	for (uint32_t round = 0; round < 60; round++) {
		struct shunt_stats dirty[64] = {[0] = {round + 1, 100}};
		struct engine_backend_info info;

		want.pools[0].backends[round % 3].address = 10 + round;
		assert_int_equal(apply(f, &want), 0);
		know(f, 0);
		info = backend_info(f, "p0", (const char *[]){"b00", "b01", "b02"}[round % 3]);
		assert_true(info.reachable && info.slots > 0);
		assert_int_equal(info.stats.packets, 0);
		if (last[info.id] != UINT32_MAX) {
			assert_int_equal(info.generation, (last[info.id] + 1) & 0xf);
			reused++;
		}
		last[info.id] = info.generation;
		times[info.id]++;
		assert_int_equal(bpf_map_update_elem(engine_maps(f->engine)->backend_stats, &info.id, dirty, 0), 0);
		info = backend_info(f, "p0", (const char *[]){"b00", "b01", "b02"}[round % 3]);
		assert_int_equal(info.stats.packets, round + 1);
		if (round % 7 == 6) { /* generations live in the maps: also over a restart */
			fixture_close(f);
			fixture_open(f);
		}
	}
	assert_true(reused >= 50);
	for (int i = 0; i < 6; i++)
		assert_true(times[i] >= 5);
}

static void test_service_counters(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(2);
	const char *const names[] = {"s0", "s1", "s2", "s3"};

	want.services[0].present = false;
	for (uint32_t round = 0; round < 40; round++) {
		struct shunt_stats dirty[64] = {[0] = {7, 100}}, stats;
		uint32_t s = round % 4;

		want.services[s].present = true;
		want.services[s].ports = 1;
		want.services[(s + 2) % 4].present = false;
		assert_int_equal(apply(f, &want), 0);
		assert_int_equal(engine_service_stats(f->engine, names[s], &stats), 0);
		assert_int_equal(stats.packets, 0);
		for (uint32_t i = 0; i < 8; i++) {
			/* Whatever is dirty and not in use must not show up in a new service. */
			assert_int_equal(bpf_map_update_elem(engine_maps(f->engine)->service_stats, &i, dirty, 0), 0);
		}
		assert_int_equal(engine_service_stats(f->engine, names[s], &stats), 0);
		assert_int_equal(stats.packets, 7);
	}
	/* A service that moves to another address is the same service. */
	{
		struct shunt_stats stats;
		struct model *model = model_of_text(
			"{version: 1, hash-key: 00112233445566778899aabbccddeeff, pools: [{name: p0, backends: []}], "
			"services: [{name: s3, address: 192.0.2.99, protocol: udp, ports: [53], pool: p0}]}");

		assert_int_equal(engine_apply(f->engine, model, NULL, NULL), 0);
		assert_int_equal(engine_service_stats(f->engine, "s3", &stats), 0);
		assert_int_equal(stats.packets, 7);
	}
}

int main(void)
{
#define SMALL(name) cmocka_unit_test_setup_teardown(name, fixture_setup_small, fixture_teardown)
	const struct CMUnitTest tests[] = {
		SMALL(test_capacities),	 SMALL(test_no_id_to_change),  SMALL(test_source_moves_when_full),
		SMALL(test_generations), SMALL(test_service_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
