/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* watch ADDRESS...: follows the ways to these addresses and prints each change as a line of JSON, until killed. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <net/if.h>

#include "addr.h"
#include "nexthop.h"

static void print_mac(const char *name, const uint8_t mac[6])
{
	printf("\"%s\": \"%02x:%02x:%02x:%02x:%02x:%02x\", ", name, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

static void print_changes(struct nexthop *nexthop)
{
	union shunt_address address;
	struct engine_nexthop way;
	char text[ADDR_TEXT_MAX], interface[IF_NAMESIZE];

	while (nexthop_changed(nexthop, &address, &way)) {
		printf("{\"address\": \"%s\", \"known\": %s, ", addr_format(&address, text),
		       way.known ? "true" : "false");
		printf("\"interface\": \"%s\", ",
		       way.ifindex && if_indextoname(way.ifindex, interface) ? interface : "");
		print_mac("mac", way.mac);
		print_mac("source_mac", way.source_mac);
		printf("\"mtu\": %u, \"source\": \"%s\", \"why\": \"%s\", \"pending\": %zu}\n", way.mtu,
		       addr_format(&way.source, text), way.why, nexthop_pending(nexthop));
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	union shunt_address *addresses = calloc((size_t)argc, sizeof(*addresses));
	struct report report = {};
	struct nexthop *nexthop;

	for (int i = 1; i < argc; i++)
		if (addr_parse(argv[i], &addresses[i - 1]))
			return 2;
	if (nexthop_open(&nexthop, &report)) {
		fputs(report_text(&report), stderr);
		return 1;
	}
	if (nexthop_watch(nexthop, addresses, (size_t)argc - 1))
		return 1;
	for (;;) {
		struct pollfd fd = {.fd = nexthop_fd(nexthop), .events = POLLIN};

		poll(&fd, 1, nexthop_wait(nexthop));
		if (nexthop_receive(nexthop) || (nexthop_wait(nexthop) == 0 && nexthop_work(nexthop)))
			return 1;
		print_changes(nexthop);
	}
}
