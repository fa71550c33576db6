/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "model.h"

static bool from_sockaddr(const struct sockaddr *from, union shunt_address *out)
{
	if (from && from->sa_family == AF_INET6) {
		memcpy(out->byte, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
		return true;
	}
	if (from && from->sa_family == AF_INET) {
		*out = (union shunt_address){.byte = {[10] = 0xff, [11] = 0xff}};
		memcpy(out->byte + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
		return true;
	}
	return false;
}

int model_locals(struct model_local **out, size_t *count)
{
	struct model_local *locals;
	struct ifaddrs *list;
	size_t n = 0;

	if (getifaddrs(&list))
		return -errno;
	for (const struct ifaddrs *at = list; at; at = at->ifa_next)
		n++;
	locals = calloc(n + 1, sizeof(*locals));
	if (!locals) {
		freeifaddrs(list);
		return -ENOMEM;
	}
	n = 0;
	for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
		struct model_local *local = &locals[n];

		if (!from_sockaddr(at->ifa_addr, &local->address))
			continue;
		snprintf(local->interface, sizeof(local->interface), "%s", at->ifa_name);
		local->loopback = at->ifa_flags & IFF_LOOPBACK;
		n++;
	}
	freeifaddrs(list);
	*out = locals;
	*count = n;
	return 0;
}
