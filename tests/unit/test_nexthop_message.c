/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "addr.h"
#include "nexthop_message.h"

static char buffer[1024] __attribute__((aligned(8)));

static union shunt_address address(const char *text)
{
	union shunt_address out;

	assert_int_equal(addr_parse(text, &out), 0);
	return out;
}

static struct nlmsghdr *start(uint16_t type)
{
	struct nlmsghdr *message;

	memset(buffer, 0, sizeof(buffer));
	message = mnl_nlmsg_put_header(buffer);
	message->nlmsg_type = type;
	return message;
}

static void put_address(struct nlmsghdr *message, uint16_t type, const char *text)
{
	union shunt_address at = address(text);
	size_t length = addr_is_v4(&at) ? 4 : 16;

	mnl_attr_put(message, type, length, at.byte + 16 - length);
}

static void test_requests_have_their_size_and_family(void **state)
{
	static const enum nexthop_question questions[] = {NEXTHOP_ROUTE, NEXTHOP_GET, NEXTHOP_CREATE, NEXTHOP_KEEP,
							  NEXTHOP_RELEASE};
	static const uint16_t types[] = {RTM_GETROUTE, RTM_GETNEIGH, RTM_NEWNEIGH, RTM_NEWNEIGH, RTM_NEWNEIGH};
	static const char *const texts[] = {"10.0.0.1", "fd00::1"};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (size_t j = 0; j < 2; j++) {
			union shunt_address at = address(texts[j]);
			struct nlmsghdr *message = nexthop_message_ask(buffer, questions[i], 7, &at);
			const uint8_t *family = mnl_nlmsg_get_payload(message);

			assert_true(message->nlmsg_len <= NEXTHOP_MESSAGE_MAX);
			assert_int_equal(message->nlmsg_type, types[i]);
			assert_int_equal(*family, j ? AF_INET6 : AF_INET);
		}
	}
}

static void test_only_keeping_asks_to_manage(void **state)
{
	union shunt_address at = address("10.0.0.1");
	uint32_t length;

	(void)state;
	length = nexthop_message_ask(buffer, NEXTHOP_RELEASE, 7, &at)->nlmsg_len;
	assert_int_equal(nexthop_message_ask(buffer, NEXTHOP_CREATE, 7, &at)->nlmsg_len, length + 8);
	assert_int_equal(nexthop_message_ask(buffer, NEXTHOP_KEEP, 7, &at)->nlmsg_len, length + 8);
}

static void test_which_entries_a_request_may_touch(void **state)
{
	union shunt_address at = address("10.0.0.1");
	const uint16_t which = NLM_F_CREATE | NLM_F_EXCL | NLM_F_REPLACE;

	(void)state;
	assert_int_equal(nexthop_message_ask(buffer, NEXTHOP_CREATE, 7, &at)->nlmsg_flags & which,
			 NLM_F_CREATE | NLM_F_EXCL);
	assert_int_equal(nexthop_message_ask(buffer, NEXTHOP_KEEP, 7, &at)->nlmsg_flags & which,
			 NLM_F_CREATE | NLM_F_REPLACE);
	assert_int_equal(nexthop_message_ask(buffer, NEXTHOP_RELEASE, 7, &at)->nlmsg_flags & which, 0);
}

static struct nlmsghdr *link_message(uint16_t type, uint8_t family, const void *mac, size_t mac_length)
{
	struct nlmsghdr *message = start(RTM_NEWLINK);
	struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

	info->ifi_family = family;
	info->ifi_type = type;
	info->ifi_index = 7;
	info->ifi_flags = IFF_UP | IFF_RUNNING;
	mnl_attr_put_strz(message, IFLA_IFNAME, "eth7");
	mnl_attr_put_u32(message, IFLA_MTU, 9000);
	mnl_attr_put(message, IFLA_ADDRESS, mac_length, mac);
	return message;
}

static void test_link(void **state)
{
	static const uint8_t mac[20] = {2, 0, 0, 0, 0, 7};
	struct nexthop_link link = {}, untouched = {};

	(void)state;
	assert_int_equal(nexthop_message_link(link_message(ARPHRD_ETHER, AF_UNSPEC, mac, 6), &link), 0);
	assert_int_equal(link.ifindex, 7);
	assert_int_equal(link.mtu, 9000);
	assert_true(link.up && link.ethernet);
	assert_memory_equal(link.mac, mac, 6);
	assert_string_equal(link.name, "eth7");
	assert_int_equal(nexthop_message_link(link_message(ARPHRD_TUNNEL, AF_UNSPEC, mac, 4), &link), 0);
	assert_false(link.ethernet);
	assert_int_equal(nexthop_message_link(link_message(ARPHRD_INFINIBAND, AF_UNSPEC, mac, 20), &link), 0);
	assert_false(link.ethernet);
	/* A bridge's port news have the type of link news. */
	assert_int_equal(nexthop_message_link(link_message(ARPHRD_ETHER, AF_BRIDGE, mac, 6), &untouched), -EINVAL);
	assert_int_equal(untouched.ifindex, 0);
}

static struct nlmsghdr *route_message(uint8_t type, unsigned int flags)
{
	struct nlmsghdr *message = start(RTM_NEWROUTE);
	struct rtmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

	info->rtm_family = AF_INET;
	info->rtm_type = type;
	info->rtm_flags = flags;
	info->rtm_dst_len = 32;
	return message;
}

static void put_mtu(struct nlmsghdr *message, uint32_t mtu)
{
	struct nlattr *metrics = mnl_attr_nest_start(message, RTA_METRICS);

	mnl_attr_put_u32(message, RTAX_ADVMSS, 1);
	mnl_attr_put_u32(message, RTAX_MTU, mtu);
	mnl_attr_nest_end(message, metrics);
}

static void test_route(void **state)
{
	struct nlmsghdr *message = route_message(RTN_UNICAST, RTM_F_CLONED);
	struct nexthop_route route;
	union shunt_address gateway = address("10.0.0.254"), source = address("10.0.0.1");

	(void)state;
	put_address(message, RTA_DST, "10.1.0.11");
	put_address(message, RTA_GATEWAY, "10.0.0.254");
	put_address(message, RTA_PREFSRC, "10.0.0.1");
	mnl_attr_put_u32(message, RTA_OIF, 7);
	put_mtu(message, 1400);
	assert_int_equal(nexthop_message_route(message, &route), 0);
	assert_int_equal(route.error, 0);
	assert_false(route.local);
	assert_int_equal(route.ifindex, 7);
	assert_int_equal(route.mtu, 1400);
	assert_true(route.has_gateway);
	assert_true(addr_equal(&route.gateway, &gateway));
	assert_true(addr_equal(&route.source, &source));
}

static void test_learned_mtu_is_ignored(void **state)
{
	struct nlmsghdr *message = route_message(RTN_UNICAST, RTM_F_CLONED);
	struct rta_cacheinfo cache = {.rta_expires = 100};
	struct nexthop_route route;

	(void)state;
	mnl_attr_put_u32(message, RTA_OIF, 7);
	put_mtu(message, 600);
	mnl_attr_put(message, RTA_CACHEINFO, sizeof(cache), &cache);
	assert_int_equal(nexthop_message_route(message, &route), 0);
	assert_int_equal(route.mtu, 0);
}

static void test_gateway_of_the_other_family(void **state)
{
	struct nlmsghdr *message = route_message(RTN_UNICAST, 0);
	union shunt_address gateway = address("fe80::1");
	struct {
		uint16_t family;
		uint8_t bytes[16];
	} via = {.family = AF_INET6};
	struct nexthop_route route;

	(void)state;
	memcpy(via.bytes, gateway.byte, 16);
	mnl_attr_put_u32(message, RTA_OIF, 7);
	mnl_attr_put(message, RTA_VIA, sizeof(via), &via);
	assert_int_equal(nexthop_message_route(message, &route), 0);
	assert_true(route.has_gateway);
	assert_true(addr_equal(&route.gateway, &gateway));
}

static void test_route_types(void **state)
{
	static const struct {
		uint8_t type;
		int error;
		bool local;
	} cases[] = {
		{RTN_LOCAL, 0, true},
		{RTN_BROADCAST, 0, true},
		{RTN_MULTICAST, 0, true},
		{RTN_BLACKHOLE, -EINVAL, false},
		{RTN_UNREACHABLE, -EHOSTUNREACH, false},
		{RTN_PROHIBIT, -EACCES, false},
	};
	struct nexthop_route route;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(nexthop_message_route(route_message(cases[i].type, 0), &route), 0);
		assert_int_equal(route.error, cases[i].error);
		assert_int_equal(route.local, cases[i].local);
	}
	/* A way without an interface is none (multipath is resolved by the kernel). */
	assert_int_equal(nexthop_message_route(route_message(RTN_UNICAST, 0), &route), -EINVAL);
}

static struct nlmsghdr *neighbour_message(uint16_t type, uint8_t family, const char *text)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	struct nlmsghdr *message = start(type);
	struct ndmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

	info->ndm_family = family;
	info->ndm_ifindex = 7;
	info->ndm_state = NUD_REACHABLE;
	put_address(message, NDA_DST, text);
	mnl_attr_put(message, NDA_LLADDR, sizeof(mac), mac);
	mnl_attr_put_u32(message, NDA_FLAGS_EXT, NTF_EXT_MANAGED);
	return message;
}

static void test_neighbour(void **state)
{
	struct nexthop_neighbour neighbour;
	union shunt_address at = address("fd00::9");

	(void)state;
	assert_int_equal(nexthop_message_neighbour(neighbour_message(RTM_NEWNEIGH, AF_INET6, "fd00::9"), &neighbour),
			 0);
	assert_true(addr_equal(&neighbour.address, &at));
	assert_int_equal(neighbour.ifindex, 7);
	assert_int_equal(neighbour.state, NUD_REACHABLE);
	assert_true(neighbour.exists && neighbour.managed && neighbour.has_mac);
	assert_int_equal(nexthop_message_neighbour(neighbour_message(RTM_DELNEIGH, AF_INET6, "fd00::9"), &neighbour),
			 0);
	assert_int_equal(neighbour.state, 0);
	assert_false(neighbour.exists || neighbour.managed || neighbour.has_mac);
	assert_int_equal(nexthop_message_neighbour(neighbour_message(RTM_NEWNEIGH, AF_BRIDGE, "10.0.0.9"), &neighbour),
			 -EINVAL);
}

static void test_prefix_of_route_events(void **state)
{
	struct nlmsghdr *message = route_message(RTN_UNICAST, 0);
	struct rtmsg *info = mnl_nlmsg_get_payload(message);
	struct shunt_prefix prefix, expected;

	(void)state;
	nexthop_message_prefix(message, &prefix);
	assert_int_equal(prefix.length, 0);
	info->rtm_dst_len = 16;
	put_address(message, RTA_DST, "10.1.0.0");
	assert_int_equal(prefix_parse("10.1.0.0/16", &expected), 0);
	nexthop_message_prefix(message, &prefix);
	assert_memory_equal(&prefix, &expected, sizeof(prefix));
}

static void test_cut_messages_are_refused(void **state)
{
	struct nexthop_neighbour neighbour;
	struct nexthop_route route;
	struct nexthop_link link;
	struct shunt_prefix prefix = {.length = 1};

	(void)state;
	assert_int_equal(nexthop_message_link(start(RTM_NEWLINK), &link), -EINVAL);
	assert_int_equal(nexthop_message_route(start(RTM_NEWROUTE), &route), -EINVAL);
	assert_int_equal(nexthop_message_neighbour(start(RTM_NEWNEIGH), &neighbour), -EINVAL);
	nexthop_message_prefix(start(RTM_NEWROUTE), &prefix);
	assert_int_equal(prefix.length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_have_their_size_and_family),
		cmocka_unit_test(test_only_keeping_asks_to_manage),
		cmocka_unit_test(test_which_entries_a_request_may_touch),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_route),
		cmocka_unit_test(test_learned_mtu_is_ignored),
		cmocka_unit_test(test_gateway_of_the_other_family),
		cmocka_unit_test(test_route_types),
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_prefix_of_route_events),
		cmocka_unit_test(test_cut_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
