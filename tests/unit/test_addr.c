/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "addr.h"

static union shunt_address parsed(const char *text)
{
	union shunt_address addr;

	if (addr_parse(text, &addr))
		fail_msg("\"%s\" does not parse", text);
	return addr;
}

static void addresses_are_written_canonically(void **state)
{
	static const char *const cases[][2] = {
		{"192.0.2.10", "192.0.2.10"},
		{"0.0.0.0", "0.0.0.0"},
		{"255.255.255.255", "255.255.255.255"},
		{"::ffff:192.0.2.10", "192.0.2.10"},
		{"::FFFF:c000:20a", "192.0.2.10"},
		{"2001:DB8:0:0:0:0:0:10", "2001:db8::10"},
		{"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"}, /* RFC 5952, 4.2.2: one group is not shortened */
		{"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},	  /* 4.2.3: the longest run */
		{"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},	  /* 4.2.3: the first of equal ones */
		{"::", "::"},
		{"::1", "::1"},
	};
	char text[ADDR_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		union shunt_address addr = parsed(cases[i][0]);

		assert_string_equal(addr_format(&addr, text), cases[i][1]);
	}
}

static void what_is_no_address_leaves_the_output(void **state)
{
	static const char *const cases[] = {
		"",	     "x",	  "10.1",	 "10.1.0.256",	"010.1.0.1",
		" 10.1.0.1", "10.1.0.1 ", "10.1.0.1:80", "10.1.0.1/32", "fe80::1%eth0",
		":::",	     "1::2::3",	  "12345::",	 "web1",	"::ffff:10.1.0.256"};
	union shunt_address addr = {.half = {1, 2}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (addr_parse(cases[i], &addr) != -EINVAL)
			fail_msg("\"%s\" parses", cases[i]);
		assert_true(addr.half[0] == 1 && addr.half[1] == 2);
	}
}

static void address_and_port_survive_a_round_trip(void **state)
{
	static const char *const cases[] = {"192.0.2.10:80", "192.0.2.10:any", "[2001:db8::10]:443", "[::1]:65535",
					    "[2001:db8::10]:any"};
	union shunt_address addr;
	char text[ADDR_TEXT_MAX];
	unsigned int port;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(addr_port_parse(cases[i], &addr, &port), 0);
		assert_string_equal(addr_port_format(&addr, port, text), cases[i]);
	}
	assert_int_equal(addr_port_parse("[::ffff:192.0.2.10]:80", &addr, &port), 0);
	assert_string_equal(addr_port_format(&addr, port, text), "192.0.2.10:80");
	memset(addr.byte, 0xff, sizeof(addr.byte));
	assert_int_equal(strlen(addr_port_format(&addr, 65535, text)), 47);
}

static void bad_ports_and_brackets_leave_the_outputs(void **state)
{
	static const char *const cases[] = {
		"",
		"192.0.2.10",
		"192.0.2.10:",
		"192.0.2.10:0",
		"192.0.2.10:65536",
		"192.0.2.10:4294967376",
		"192.0.2.10:080",
		"192.0.2.10:+80",
		"192.0.2.10:80 ",
		"192.0.2.10:http",
		"2001:db8::10:443",
		"[2001:db8::10]",
		"[2001:db8::10]443",
		"[2001:db8::10:443",
		"[192.0.2.10]:80",
		"[]:80",
		":80",
		"[:80",
		"x:80",
		"[2001:0db8:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0010]:80"};
	union shunt_address addr = {.half = {1, 2}};
	unsigned int port = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (addr_port_parse(cases[i], &addr, &port) != -EINVAL)
			fail_msg("\"%s\" parses", cases[i]);
		assert_true(addr.half[0] == 1 && addr.half[1] == 2 && port == 7);
	}
}

static void prefixes_count_bits_as_the_maps_do(void **state)
{
	static const struct {
		const char *text, *canonical;
		unsigned int length;
	} cases[] = {
		{"192.0.2.0/24", "192.0.2.0/24", 120},	 {"0.0.0.0/0", "0.0.0.0/0", 96},
		{"192.0.2.1", "192.0.2.1/32", 128},	 {"192.0.2.1/32", "192.0.2.1/32", 128},
		{"2001:db8::/32", "2001:db8::/32", 32},	 {"::/0", "::/0", 0},
		{"2001:db8::1", "2001:db8::1/128", 128}, {"::ffff:10.0.0.0/104", "10.0.0.0/8", 104},
	};
	struct shunt_prefix prefix;
	char text[ADDR_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(prefix_parse(cases[i].text, &prefix), 0);
		assert_int_equal(prefix.length, cases[i].length);
		assert_string_equal(prefix_format(&prefix, text), cases[i].canonical);
	}
}

static void bad_prefixes_leave_the_output(void **state)
{
	static const char *const cases[] = {"",
					    "/24",
					    "192.0.2.1/24",
					    "192.0.2.0/33",
					    "192.0.2.0/",
					    "192.0.2.0/-1",
					    "192.0.2.0/024",
					    "192.0.2.0/24/",
					    "::1/0",
					    "2001:db8::/129",
					    "::ffff:10.0.0.1/104"};
	struct shunt_prefix prefix = {.length = 7};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (prefix_parse(cases[i], &prefix) != -EINVAL)
			fail_msg("\"%s\" parses", cases[i]);
		assert_int_equal(prefix.length, 7);
	}
}

static void masked_prefixes_say_what_may_be_meant(void **state)
{
	static const struct {
		const char *text, *masked;
	} cases[] = {{"192.0.2.1/24", "192.0.2.0/24"},	  {"192.0.2.255/25", "192.0.2.128/25"},
		     {"10.1.2.3/0", "0.0.0.0/0"},	  {"192.0.2.1", "192.0.2.1/32"},
		     {"2001:db8::1/33", "2001:db8::/33"}, {"2001:db8:ffff:ffff::/33", "2001:db8:8000::/33"}};
	struct shunt_prefix prefix = {.length = 7};
	char text[ADDR_TEXT_MAX];

	(void)state;
	assert_int_equal(prefix_parse_masked("192.0.2.1/33", &prefix), -EINVAL);
	assert_int_equal(prefix.length, 7);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(prefix_parse_masked(cases[i].text, &prefix), 0);
		assert_string_equal(prefix_format(&prefix, text), cases[i].masked);
	}
}

static void prefixes_hold_what_begins_alike(void **state)
{
	static const struct {
		const char *prefix, *address;
		bool holds;
	} cases[] = {{"192.0.2.0/24", "192.0.2.0", true},
		     {"192.0.2.0/24", "192.0.2.255", true},
		     {"192.0.2.0/24", "192.0.3.0", false},
		     {"192.0.2.0/25", "192.0.2.128", false},
		     {"192.0.2.7", "192.0.2.7", true},
		     {"192.0.2.7", "192.0.2.6", false},
		     {"0.0.0.0/0", "203.0.113.1", true},
		     {"0.0.0.0/0", "2001:db8::1", false},
		     {"2001:db8::/33", "2001:db8:7fff::1", true},
		     {"2001:db8::/33", "2001:db8:8000::1", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct shunt_prefix prefix;
		union shunt_address address;

		assert_int_equal(prefix_parse(cases[i].prefix, &prefix), 0);
		assert_int_equal(addr_parse(cases[i].address, &address), 0);
		assert_int_equal(prefix_holds(&prefix, &address), cases[i].holds);
	}
}

static void only_unicast_can_be_used(void **state)
{
	static const char *const usable[] = {"192.0.2.10",   "10.0.0.1", "169.254.1.1",
					     "2001:db8::10", "fd00::1",	 "fec0::1"};
	static const char *const not_usable[] = {
		"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.0.1", "224.0.0.1", "239.1.1.1",	  "255.255.255.255",
		"::",	   "::1",     "fe80::1",   "febf::1",	  "ff02::1",   "::ffff:127.0.0.1"};

	(void)state;
	for (size_t i = 0; i < sizeof(usable) / sizeof(*usable); i++) {
		union shunt_address addr = parsed(usable[i]);

		if (!addr_is_unicast(&addr))
			fail_msg("%s is refused", usable[i]);
	}
	for (size_t i = 0; i < sizeof(not_usable) / sizeof(*not_usable); i++) {
		union shunt_address addr = parsed(not_usable[i]);

		if (addr_is_unicast(&addr))
			fail_msg("%s is taken", not_usable[i]);
	}
}

static void families_and_order(void **state)
{
	union shunt_address v4 = parsed("10.0.0.2"), mapped = parsed("::ffff:10.0.0.2"), next = parsed("10.0.0.10");
	union shunt_address v6 = parsed("2001:db8::1"), any4 = parsed("0.0.0.0"), any6 = parsed("::");

	(void)state;
	assert_true(addr_is_v4(&v4) && addr_is_v4(&any4) && !addr_is_v4(&v6) && !addr_is_v4(&any6));
	assert_true(addr_equal(&v4, &mapped) && !addr_equal(&v4, &next));
	assert_true(addr_compare(&v4, &next) < 0 && addr_compare(&next, &v4) > 0 && addr_compare(&v4, &mapped) == 0);
	assert_true(addr_compare(&next, &v6) < 0);
	assert_true(addr_is_unspecified(&any4) && addr_is_unspecified(&any6) && !addr_is_unspecified(&v4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_written_canonically),
		cmocka_unit_test(what_is_no_address_leaves_the_output),
		cmocka_unit_test(address_and_port_survive_a_round_trip),
		cmocka_unit_test(bad_ports_and_brackets_leave_the_outputs),
		cmocka_unit_test(prefixes_count_bits_as_the_maps_do),
		cmocka_unit_test(bad_prefixes_leave_the_output),
		cmocka_unit_test(masked_prefixes_say_what_may_be_meant),
		cmocka_unit_test(prefixes_hold_what_begins_alike),
		cmocka_unit_test(only_unicast_can_be_used),
		cmocka_unit_test(families_and_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
