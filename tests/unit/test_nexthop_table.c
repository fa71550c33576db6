/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <linux/neighbour.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "addr.h"
#include "nexthop_table.h"

#define MANY 10000u

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 0xa}, mac_b[6] = {2, 0, 0, 0, 0, 0xb}, mac_if[6] = {2, 0, 0, 0, 0, 1};

static union shunt_address address(const char *text)
{
	union shunt_address out;

	assert_int_equal(addr_parse(text, &out), 0);
	return out;
}

static struct nexthop_link link_of(uint32_t ifindex, const char *name)
{
	struct nexthop_link link = {.ifindex = ifindex, .mtu = 1500, .up = true, .ethernet = true};

	memcpy(link.mac, mac_if, 6);
	snprintf(link.name, sizeof(link.name), "%s", name);
	return link;
}

static struct nexthop_table *new_table(void)
{
	struct nexthop_link link = link_of(3, "eth0");
	struct nexthop_table *table;

	assert_int_equal(nexthop_table_new(&table), 0);
	assert_int_equal(nexthop_table_link(table, &link), 0);
	return table;
}

static void watch(struct nexthop_table *table, const char *const *texts, size_t count)
{
	union shunt_address list[8];

	for (size_t i = 0; i < count; i++)
		list[i] = address(texts[i]);
	assert_int_equal(nexthop_table_watch(table, list, count), 0);
}

#define WATCH(table, ...)                                                                                              \
	watch(table, (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void expect(struct nexthop_table *table, uint64_t now, enum nexthop_question question, const char *text)
{
	unsigned int limit = 1000;
	union shunt_address got;
	uint32_t ifindex = 0;
	char buffer[ADDR_TEXT_MAX];

	assert_int_equal(nexthop_table_question(table, now, &limit, &ifindex, &got), question);
	if (question == NEXTHOP_NOTHING)
		return;
	assert_string_equal(addr_format(&got, buffer), text);
	if (question != NEXTHOP_ROUTE)
		assert_int_equal(ifindex, 3);
}

static void tell_route(struct nexthop_table *table, const char *to, const char *gateway)
{
	struct nexthop_route route = {.ifindex = 3, .has_gateway = gateway, .source = address("10.0.0.1")};
	union shunt_address target = address(to);

	if (gateway)
		route.gateway = address(gateway);
	assert_int_equal(nexthop_table_route(table, &target, &route), 0);
}

/* state 0: there is no entry. */
static void tell_neighbour(struct nexthop_table *table, const char *text, uint16_t state, bool managed,
			   const uint8_t *mac)
{
	struct nexthop_neighbour entry = {.ifindex = 3,
					  .address = address(text),
					  .state = state,
					  .exists = state,
					  .managed = managed,
					  .has_mac = mac};

	if (mac)
		memcpy(entry.mac, mac, 6);
	nexthop_table_neighbour(table, &entry);
}

/* The only change that waits. */
static struct engine_nexthop change_of(struct nexthop_table *table, const char *text)
{
	struct engine_nexthop way;
	union shunt_address got;
	char buffer[ADDR_TEXT_MAX];

	assert_true(nexthop_table_changed(table, &got, &way));
	assert_string_equal(addr_format(&got, buffer), text);
	return way;
}

static void no_change(struct nexthop_table *table)
{
	struct engine_nexthop way;
	union shunt_address got;

	assert_false(nexthop_table_changed(table, &got, &way));
}

static void test_resolves_through_a_gateway(void **state)
{
	struct nexthop_table *table = new_table();
	struct engine_nexthop way;

	(void)state;
	WATCH(table, "10.1.0.11");
	assert_int_equal(nexthop_table_pending(table), 1);
	expect(table, 1, NEXTHOP_ROUTE, "10.1.0.11");
	expect(table, 1, NEXTHOP_NOTHING, NULL);
	tell_route(table, "10.1.0.11", "10.0.0.254");
	expect(table, 1, NEXTHOP_GET, "10.0.0.254");
	tell_neighbour(table, "10.0.0.254", 0, false, NULL);
	expect(table, 1, NEXTHOP_CREATE, "10.0.0.254");
	tell_neighbour(table, "10.0.0.254", NUD_INCOMPLETE, true, NULL);
	way = change_of(table, "10.1.0.11");
	assert_false(way.known);
	assert_string_equal(way.why, "10.0.0.254 is being resolved");
	tell_neighbour(table, "10.0.0.254", NUD_REACHABLE, true, mac_a);
	way = change_of(table, "10.1.0.11");
	assert_true(way.known);
	assert_memory_equal(way.mac, mac_a, 6);
	assert_memory_equal(way.source_mac, mac_if, 6);
	assert_int_equal(way.mtu, 1500);
	assert_string_equal(way.why, "");
	assert_true(way.gateway);
	assert_int_equal(nexthop_table_pending(table), 0);
	assert_int_equal(nexthop_table_due(table), UINT64_MAX);
	nexthop_table_free(table);
}

static void test_one_question_for_all_behind_a_gateway(void **state)
{
	struct nexthop_table *table = new_table();
	union shunt_address *list = calloc(MANY, sizeof(*list)), got;
	unsigned int limit = 1000, gets = 0, routes = 0;
	struct engine_nexthop way;
	uint32_t ifindex;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		list[i] = address("10.8.0.0");
		list[i].byte[14] = (uint8_t)(i >> 8);
		list[i].byte[15] = (uint8_t)i;
	}
	assert_int_equal(nexthop_table_watch(table, list, MANY), 0);
	for (;;) {
		struct nexthop_route route = {.ifindex = 3, .has_gateway = true, .gateway = address("10.0.0.254")};
		enum nexthop_question question = nexthop_table_question(table, 1, &limit, &ifindex, &got);

		if (question == NEXTHOP_NOTHING)
			break;
		gets += question == NEXTHOP_GET;
		routes += question == NEXTHOP_ROUTE;
		if (question == NEXTHOP_ROUTE)
			nexthop_table_route(table, &got, &route);
	}
	assert_int_equal(routes, MANY);
	assert_int_equal(gets, 1);
	tell_neighbour(table, "10.0.0.254", NUD_REACHABLE, true, mac_a);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_true(nexthop_table_changed(table, &got, &way));
		assert_true(way.known);
	}
	no_change(table);
	nexthop_table_free(table);
	free(list);
}

static void test_keep_questions_are_rationed_and_come_again(void **state)
{
	struct nexthop_table *table = new_table();
	unsigned int limit = 1;
	union shunt_address got;
	uint32_t ifindex;

	(void)state;
	WATCH(table, "10.0.0.11", "10.0.0.12");
	for (int i = 11; i <= 12; i++) {
		char text[ADDR_TEXT_MAX];

		snprintf(text, sizeof(text), "10.0.0.%d", i);
		expect(table, 1, NEXTHOP_ROUTE, text);
	}
	tell_route(table, "10.0.0.11", NULL);
	tell_route(table, "10.0.0.12", NULL);
	expect(table, 1, NEXTHOP_GET, "10.0.0.11");
	expect(table, 1, NEXTHOP_GET, "10.0.0.12");
	tell_neighbour(table, "10.0.0.11", 0, false, NULL);
	tell_neighbour(table, "10.0.0.12", 0, false, NULL);
	assert_int_equal(nexthop_table_question(table, 1, &limit, &ifindex, &got), NEXTHOP_CREATE);
	assert_int_equal(nexthop_table_question(table, 1, &limit, &ifindex, &got), NEXTHOP_NOTHING);
	assert_int_equal(nexthop_table_due(table), 0);
	expect(table, 2, NEXTHOP_CREATE, "10.0.0.12");
	/* A kernel that does not manage entries is asked again, after 1 s, 2 s, ... 30 s. */
	assert_int_equal(nexthop_table_due(table), 1001);
	expect(table, 1000, NEXTHOP_NOTHING, NULL);
	expect(table, 1002, NEXTHOP_GET, "10.0.0.11");
	expect(table, 1002, NEXTHOP_GET, "10.0.0.12");
	tell_neighbour(table, "10.0.0.11", NUD_REACHABLE, false, mac_a);
	tell_neighbour(table, "10.0.0.12", NUD_INCOMPLETE, false, NULL);
	expect(table, 1002, NEXTHOP_GET, "10.0.0.11");
	tell_neighbour(table, "10.0.0.11", NUD_REACHABLE, false, mac_a);
	expect(table, 1002, NEXTHOP_KEEP, "10.0.0.11");
	expect(table, 1003, NEXTHOP_GET, "10.0.0.12");
	tell_neighbour(table, "10.0.0.12", NUD_INCOMPLETE, false, NULL);
	expect(table, 1003, NEXTHOP_KEEP, "10.0.0.12");
	assert_int_equal(nexthop_table_due(table), 3002);
	/* One whose event was lost is found by the question itself. */
	expect(table, 3002, NEXTHOP_GET, "10.0.0.11");
	tell_neighbour(table, "10.0.0.11", NUD_REACHABLE, true, mac_a);
	assert_int_equal(nexthop_table_due(table), 3003);
	nexthop_table_free(table);
}

static struct nexthop_table *resolved_table(const char *to, const char *gateway)
{
	struct nexthop_table *table = new_table();
	const char *neighbour = gateway ? gateway : to;

	WATCH(table, to);
	expect(table, 1, NEXTHOP_ROUTE, to);
	tell_route(table, to, gateway);
	expect(table, 1, NEXTHOP_GET, neighbour);
	tell_neighbour(table, neighbour, 0, false, NULL);
	expect(table, 1, NEXTHOP_CREATE, neighbour);
	tell_neighbour(table, neighbour, NUD_REACHABLE, true, mac_a);
	assert_true(change_of(table, to).known);
	return table;
}

static void test_a_permanent_entry_is_left_alone(void **state)
{
	struct nexthop_table *table = new_table();

	(void)state;
	WATCH(table, "10.0.0.11");
	expect(table, 1, NEXTHOP_ROUTE, "10.0.0.11");
	tell_route(table, "10.0.0.11", NULL);
	expect(table, 1, NEXTHOP_GET, "10.0.0.11");
	tell_neighbour(table, "10.0.0.11", NUD_PERMANENT, false, mac_a);
	assert_true(change_of(table, "10.0.0.11").known);
	expect(table, 100000, NEXTHOP_NOTHING, NULL);
	/* Nor is it released. */
	assert_int_equal(nexthop_table_watch(table, NULL, 0), 0);
	expect(table, 100000, NEXTHOP_NOTHING, NULL);
	nexthop_table_free(table);
}

/* A target on the link, whose neighbour has no entry. */
static struct nexthop_table *table_without_entry(void)
{
	struct nexthop_table *table = new_table();

	WATCH(table, "10.0.0.11");
	expect(table, 1, NEXTHOP_ROUTE, "10.0.0.11");
	tell_route(table, "10.0.0.11", NULL);
	expect(table, 1, NEXTHOP_GET, "10.0.0.11");
	tell_neighbour(table, "10.0.0.11", 0, false, NULL);
	return table;
}

/* Somebody else's permanent entry, whenever it comes: before CREATE, before KEEP, before RELEASE. */
static void test_one_made_permanent_meanwhile_is_left_alone(void **state)
{
	struct nexthop_table *table = table_without_entry();
	union shunt_address at = address("10.0.0.11");

	(void)state;
	expect(table, 1, NEXTHOP_CREATE, "10.0.0.11");
	nexthop_table_refused(table, 3, &at, -EEXIST);
	expect(table, 1, NEXTHOP_GET, "10.0.0.11");
	tell_neighbour(table, "10.0.0.11", NUD_PERMANENT, false, mac_a);
	assert_memory_equal(change_of(table, "10.0.0.11").mac, mac_a, 6);
	expect(table, 100000, NEXTHOP_NOTHING, NULL);
	/* An ordinary one is looked at once more. */
	tell_neighbour(table, "10.0.0.11", NUD_STALE, false, mac_b);
	assert_memory_equal(change_of(table, "10.0.0.11").mac, mac_b, 6);
	expect(table, 100000, NEXTHOP_GET, "10.0.0.11");
	tell_neighbour(table, "10.0.0.11", NUD_PERMANENT, false, mac_a);
	expect(table, 200000, NEXTHOP_NOTHING, NULL);
	/* So is one to be released. */
	tell_neighbour(table, "10.0.0.11", 0, false, NULL);
	expect(table, 200000, NEXTHOP_CREATE, "10.0.0.11");
	tell_neighbour(table, "10.0.0.11", NUD_REACHABLE, true, mac_a);
	assert_int_equal(nexthop_table_watch(table, NULL, 0), 0);
	expect(table, 200000, NEXTHOP_GET, "10.0.0.11");
	tell_neighbour(table, "10.0.0.11", NUD_PERMANENT, false, mac_b);
	expect(table, 300000, NEXTHOP_NOTHING, NULL);
	nexthop_table_free(table);
}

static void test_an_ordinary_one_that_came_meanwhile_is_kept_at_once(void **state)
{
	struct nexthop_table *table = table_without_entry();
	union shunt_address got, at = address("10.0.0.11");
	unsigned int limit = 1;
	uint32_t ifindex;

	(void)state;
	assert_int_equal(nexthop_table_question(table, 1, &limit, &ifindex, &got), NEXTHOP_CREATE);
	nexthop_table_refused(table, 3, &at, -EEXIST);
	assert_int_equal(nexthop_table_pending(table), 1);
	assert_int_equal(nexthop_table_question(table, 1, &limit, &ifindex, &got), NEXTHOP_GET);
	tell_neighbour(table, "10.0.0.11", NUD_INCOMPLETE, false, NULL);
	/* It was rationed already. */
	assert_int_equal(limit, 0);
	assert_int_equal(nexthop_table_question(table, 1, &limit, &ifindex, &got), NEXTHOP_KEEP);
	assert_int_equal(nexthop_table_question(table, 1, &limit, &ifindex, &got), NEXTHOP_NOTHING);
	nexthop_table_free(table);
}

static void test_mac_change_and_stale_states(void **state)
{
	struct nexthop_table *table = resolved_table("10.0.0.11", NULL);

	(void)state;
	tell_neighbour(table, "10.0.0.11", NUD_STALE, true, mac_a);
	tell_neighbour(table, "10.0.0.11", NUD_PROBE, true, mac_a);
	no_change(table);
	tell_neighbour(table, "10.0.0.11", NUD_REACHABLE, true, mac_b);
	assert_memory_equal(change_of(table, "10.0.0.11").mac, mac_b, 6);
	nexthop_table_free(table);
}

static void test_an_entry_that_is_gone_is_asked_for_at_once(void **state)
{
	struct nexthop_table *table = resolved_table("10.0.0.11", NULL);

	(void)state;
	tell_neighbour(table, "10.0.0.11", 0, false, NULL);
	assert_false(change_of(table, "10.0.0.11").known);
	expect(table, 5, NEXTHOP_CREATE, "10.0.0.11");
	nexthop_table_free(table);
}

static void test_one_that_fails_again_and_again_is_told_once(void **state)
{
	struct nexthop_table *table = resolved_table("10.0.0.11", NULL);
	struct engine_nexthop way;

	(void)state;
	tell_neighbour(table, "10.0.0.11", NUD_FAILED, true, NULL);
	way = change_of(table, "10.0.0.11");
	assert_false(way.known);
	assert_string_equal(way.why, "10.0.0.11 does not answer");
	assert_int_equal(nexthop_table_pending(table), 0);
	for (int i = 0; i < 5; i++) {
		tell_neighbour(table, "10.0.0.11", NUD_INCOMPLETE, true, NULL);
		tell_neighbour(table, "10.0.0.11", NUD_FAILED, true, NULL);
	}
	no_change(table);
	nexthop_table_free(table);
}

static void test_a_full_neighbour_table_is_said_and_retried(void **state)
{
	struct nexthop_table *table = resolved_table("10.0.0.11", NULL);
	union shunt_address at = address("10.0.0.11");
	struct engine_nexthop way;

	(void)state;
	tell_neighbour(table, "10.0.0.11", 0, false, NULL);
	expect(table, 10, NEXTHOP_CREATE, "10.0.0.11");
	nexthop_table_refused(table, 3, &at, -ENOBUFS);
	way = change_of(table, "10.0.0.11");
	assert_non_null(strstr(way.why, "gc_thresh3"));
	assert_int_equal(nexthop_table_pending(table), 0);
	expect(table, 11, NEXTHOP_NOTHING, NULL);
	expect(table, 1010, NEXTHOP_GET, "10.0.0.11");
	tell_neighbour(table, "10.0.0.11", 0, false, NULL);
	no_change(table);
	expect(table, 1010, NEXTHOP_CREATE, "10.0.0.11");
	nexthop_table_free(table);
}

static void test_gateway_change_lets_the_old_one_go(void **state)
{
	struct nexthop_table *table = resolved_table("10.1.0.11", "10.0.0.253");
	struct shunt_prefix other, mine;

	(void)state;
	assert_int_equal(prefix_parse("10.2.0.0/16", &other), 0);
	assert_int_equal(prefix_parse("10.1.0.8/30", &mine), 0);
	nexthop_table_routes_changed(table, &other);
	expect(table, 5, NEXTHOP_NOTHING, NULL);
	nexthop_table_routes_changed(table, &mine);
	expect(table, 5, NEXTHOP_ROUTE, "10.1.0.11");
	tell_route(table, "10.1.0.11", "10.0.0.254");
	expect(table, 5, NEXTHOP_GET, "10.0.0.254");
	expect(table, 5, NEXTHOP_GET, "10.0.0.253");
	tell_neighbour(table, "10.0.0.253", NUD_REACHABLE, true, mac_a);
	expect(table, 5, NEXTHOP_RELEASE, "10.0.0.253");
	tell_neighbour(table, "10.0.0.254", NUD_REACHABLE, true, mac_b);
	assert_memory_equal(change_of(table, "10.1.0.11").mac, mac_b, 6);
	/* News of the old one are nobody's. */
	tell_neighbour(table, "10.0.0.253", NUD_FAILED, false, NULL);
	no_change(table);
	expect(table, 5, NEXTHOP_NOTHING, NULL);
	nexthop_table_free(table);
}

static void test_one_wanted_again_is_not_released(void **state)
{
	struct nexthop_table *table = resolved_table("10.0.0.11", NULL);

	(void)state;
	assert_int_equal(nexthop_table_watch(table, NULL, 0), 0);
	WATCH(table, "10.0.0.11");
	expect(table, 5, NEXTHOP_ROUTE, "10.0.0.11");
	tell_route(table, "10.0.0.11", NULL);
	expect(table, 5, NEXTHOP_GET, "10.0.0.11");
	expect(table, 5, NEXTHOP_NOTHING, NULL);
	assert_int_equal(nexthop_table_watch(table, NULL, 0), 0);
	expect(table, 5, NEXTHOP_GET, "10.0.0.11");
	tell_neighbour(table, "10.0.0.11", NUD_REACHABLE, true, mac_a);
	expect(table, 5, NEXTHOP_RELEASE, "10.0.0.11");
	expect(table, 5, NEXTHOP_NOTHING, NULL);
	nexthop_table_free(table);
}

static void test_route_errors_in_words(void **state)
{
	static const struct {
		struct nexthop_route route;
		const char *why;
	} cases[] = {
		{{.error = -ENETUNREACH}, "no route to it"},
		{{.error = -EHOSTUNREACH}, "the route to it says unreachable"},
		{{.error = -EACCES}, "the route to it prohibits"},
		{{.error = -EINVAL}, "the route to it is a blackhole"},
		{{.local = true, .ifindex = 3}, "it is an address of this host"},
		{{.ifindex = 4}, "its interface is gone"},
		{{.ifindex = 5}, "interface down0 is down"},
		{{.ifindex = 6}, "interface tun0 is not Ethernet"},
	};
	struct nexthop_table *table = new_table();
	struct nexthop_link down = link_of(5, "down0"), tunnel = link_of(6, "tun0");
	union shunt_address at = address("10.0.0.11");

	(void)state;
	down.up = false;
	tunnel.ethernet = false;
	nexthop_table_link(table, &down);
	nexthop_table_link(table, &tunnel);
	WATCH(table, "10.0.0.11");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct engine_nexthop way;

		nexthop_table_route(table, &at, &cases[i].route);
		way = change_of(table, "10.0.0.11");
		assert_false(way.known);
		assert_string_equal(way.why, cases[i].why);
		assert_int_equal(nexthop_table_pending(table), 0);
	}
	nexthop_table_free(table);
}

static void test_mtu_is_the_smaller_of_route_and_link(void **state)
{
	struct nexthop_table *table = resolved_table("10.0.0.11", NULL);
	struct nexthop_link link = link_of(3, "eth0");
	struct nexthop_route route = {.ifindex = 3, .mtu = 1400};
	union shunt_address at = address("10.0.0.11");

	(void)state;
	nexthop_table_route(table, &at, &route);
	assert_int_equal(change_of(table, "10.0.0.11").mtu, 1400);
	route.mtu = 9000;
	nexthop_table_route(table, &at, &route);
	assert_int_equal(change_of(table, "10.0.0.11").mtu, 1500);
	link.mtu = 1300;
	nexthop_table_link(table, &link);
	assert_int_equal(change_of(table, "10.0.0.11").mtu, 1300);
	nexthop_table_free(table);
}

static void test_link_changes_ask_for_routes_again(void **state)
{
	struct nexthop_table *table = resolved_table("10.0.0.11", NULL);
	struct nexthop_link link = link_of(3, "eth0"), other = link_of(9, "eth1");

	(void)state;
	nexthop_table_link(table, &link);
	expect(table, 5, NEXTHOP_NOTHING, NULL);
	nexthop_table_link(table, &other);
	expect(table, 5, NEXTHOP_ROUTE, "10.0.0.11");
	nexthop_table_link_gone(table, 3);
	assert_string_equal(change_of(table, "10.0.0.11").why, "its interface is gone");
	expect(table, 5, NEXTHOP_ROUTE, "10.0.0.11");
	nexthop_table_free(table);
}

static void test_reset_asks_for_all_and_sweeps_links(void **state)
{
	struct nexthop_table *table = resolved_table("10.0.0.11", NULL);
	struct nexthop_link link = link_of(3, "eth0");

	(void)state;
	nexthop_table_reset(table);
	nexthop_table_link(table, &link);
	nexthop_table_links_done(table);
	expect(table, 5, NEXTHOP_ROUTE, "10.0.0.11");
	expect(table, 5, NEXTHOP_GET, "10.0.0.11");
	no_change(table);
	nexthop_table_reset(table);
	nexthop_table_links_done(table);
	assert_string_equal(change_of(table, "10.0.0.11").why, "its interface is gone");
	nexthop_table_free(table);
}

static void test_both_families_and_any_prefix(void **state)
{
	struct nexthop_table *table = new_table();
	struct shunt_prefix all = {}, v6;

	(void)state;
	WATCH(table, "10.0.0.11", "fd00::11");
	expect(table, 1, NEXTHOP_ROUTE, "10.0.0.11");
	expect(table, 1, NEXTHOP_ROUTE, "fd00::11");
	assert_int_equal(prefix_parse("fd00::/8", &v6), 0);
	nexthop_table_routes_changed(table, &v6);
	expect(table, 1, NEXTHOP_ROUTE, "fd00::11");
	expect(table, 1, NEXTHOP_NOTHING, NULL);
	nexthop_table_routes_changed(table, &all);
	nexthop_table_routes_changed(table, &all);
	expect(table, 1, NEXTHOP_ROUTE, "10.0.0.11");
	expect(table, 1, NEXTHOP_ROUTE, "fd00::11");
	expect(table, 1, NEXTHOP_NOTHING, NULL);
	nexthop_table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resolves_through_a_gateway),
		cmocka_unit_test(test_one_question_for_all_behind_a_gateway),
		cmocka_unit_test(test_keep_questions_are_rationed_and_come_again),
		cmocka_unit_test(test_a_permanent_entry_is_left_alone),
		cmocka_unit_test(test_one_made_permanent_meanwhile_is_left_alone),
		cmocka_unit_test(test_an_ordinary_one_that_came_meanwhile_is_kept_at_once),
		cmocka_unit_test(test_mac_change_and_stale_states),
		cmocka_unit_test(test_an_entry_that_is_gone_is_asked_for_at_once),
		cmocka_unit_test(test_one_that_fails_again_and_again_is_told_once),
		cmocka_unit_test(test_a_full_neighbour_table_is_said_and_retried),
		cmocka_unit_test(test_gateway_change_lets_the_old_one_go),
		cmocka_unit_test(test_one_wanted_again_is_not_released),
		cmocka_unit_test(test_route_errors_in_words),
		cmocka_unit_test(test_mtu_is_the_smaller_of_route_and_link),
		cmocka_unit_test(test_link_changes_ask_for_routes_again),
		cmocka_unit_test(test_reset_asks_for_all_and_sweeps_links),
		cmocka_unit_test(test_both_families_and_any_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
