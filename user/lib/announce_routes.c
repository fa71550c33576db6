/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "addr.h"
#include "announce_routes.h"
#include "rtnetlink.h"

#define MESSAGE 256 /* bytes: a route message, an address and a table number */
#define V4_BITS 96  /* of ::ffff:0:0/96, in front of an IPv4 prefix */

int announce_routes_open(struct mnl_socket **out)
{
	struct mnl_socket *opened;
	int ret = rtnetlink_open(&opened), on = 1;

	if (ret)
		return ret;
	/* A dump is of the table that is asked for, however long the others are. */
	if (mnl_socket_setsockopt(opened, NETLINK_GET_STRICT_CHK, &on, sizeof(on))) {
		ret = -errno;
		mnl_socket_close(opened);
		return ret;
	}
	*out = opened;
	return 0;
}

static struct rtmsg *begin(void *buffer, uint16_t type, uint16_t flags, int family, uint32_t table)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct rtmsg *route;

	message->nlmsg_type = type;
	message->nlmsg_flags = flags;
	route = mnl_nlmsg_put_extra_header(message, sizeof(*route));
	route->rtm_family = (unsigned char)family;
	route->rtm_table = RT_TABLE_UNSPEC;
	route->rtm_protocol = RTNETLINK_ANNOUNCE;
	mnl_attr_put_u32(message, RTA_TABLE, table);
	return route;
}

/* ---- list ---- */

struct listing {
	uint32_t table;
	struct shunt_prefix *list;
	size_t n, room;
	bool failed;
};

struct attributes {
	const struct nlattr *destination, *table;
};

static int on_attribute(const struct nlattr *attr, void *arg)
{
	struct attributes *attributes = arg;

	if (mnl_attr_get_type(attr) == RTA_DST)
		attributes->destination = attr;
	else if (mnl_attr_get_type(attr) == RTA_TABLE && mnl_attr_get_payload_len(attr) == sizeof(uint32_t))
		attributes->table = attr;
	return MNL_CB_OK;
}

static void append(struct listing *listing, const struct shunt_prefix *prefix)
{
	struct shunt_prefix *grown;

	if (listing->n == listing->room) {
		listing->room = listing->room ? 2 * listing->room : 64;
		grown = reallocarray(listing->list, listing->room, sizeof(*grown));
		if (!grown) {
			listing->failed = true;
			listing->room = listing->n;
			return;
		}
		listing->list = grown;
	}
	listing->list[listing->n++] = *prefix;
}

static int on_route(const struct nlmsghdr *message, void *arg)
{
	const struct rtmsg *route = mnl_nlmsg_get_payload(message);
	static const unsigned char anywhere[16];
	bool v4 = route->rtm_family == AF_INET;
	struct attributes attributes = {};
	struct listing *listing = arg;
	union shunt_address address;
	struct shunt_prefix prefix = {.length = route->rtm_dst_len + (v4 ? V4_BITS : 0)};

	mnl_attr_parse(message, sizeof(*route), on_attribute, &attributes);
	if (message->nlmsg_type != RTM_NEWROUTE || route->rtm_protocol != RTNETLINK_ANNOUNCE || !attributes.table ||
	    mnl_attr_get_u32(attributes.table) != listing->table)
		return MNL_CB_OK;
	addr_from_wire(anywhere, v4 ? 4 : 16, &address); /* a default route has no destination */
	if (attributes.destination)
		addr_from_wire(mnl_attr_get_payload(attributes.destination),
			       mnl_attr_get_payload_len(attributes.destination), &address);
	memcpy(prefix.address, address.byte, sizeof(prefix.address));
	append(listing, &prefix);
	return MNL_CB_OK;
}

int announce_routes_compare(const struct shunt_prefix *a, const struct shunt_prefix *b)
{
	int order = memcmp(a->address, b->address, sizeof(a->address));

	return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare(const void *a, const void *b)
{
	return announce_routes_compare(a, b);
}

#define TRIES 5 /* while somebody else changes routes */

static int dump(struct mnl_socket *socket, int family, struct listing *listing)
{
	size_t n = listing->n;
	int ret = -EINTR;

	for (int i = 0; i < TRIES && ret == -EINTR; i++) {
		char buffer[MESSAGE] = {};

		listing->n = n;
		begin(buffer, RTM_GETROUTE, NLM_F_DUMP, family, listing->table);
		ret = rtnetlink_ask(socket, (struct nlmsghdr *)buffer, on_route, listing);
	}
	/* No route was ever put in the table, or this host does not know the family. */
	return ret == -ENOENT || ret == -EAFNOSUPPORT || ret == -EOPNOTSUPP ? 0 : ret;
}

int announce_routes_list(struct mnl_socket *socket, uint32_t table, struct shunt_prefix **out, size_t *n)
{
	struct listing listing = {.table = table};
	int ret = dump(socket, AF_INET, &listing);

	ret = ret ? ret : dump(socket, AF_INET6, &listing);
	if (!ret && listing.failed)
		ret = -ENOMEM;
	if (ret) {
		free(listing.list);
		return ret;
	}
	if (listing.n)
		qsort(listing.list, listing.n, sizeof(*listing.list), compare);
	*out = listing.list;
	*n = listing.n;
	return 0;
}

/* ---- change ---- */

int announce_routes_add(struct mnl_socket *socket, uint32_t table, const union shunt_address *address)
{
	char buffer[MESSAGE] = {};
	struct rtmsg *route =
		begin(buffer, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, addr_is_v4(address) ? AF_INET : AF_INET6, table);

	route->rtm_type = RTN_BLACKHOLE;
	route->rtm_scope = RT_SCOPE_UNIVERSE;
	route->rtm_dst_len = (unsigned char)(8 * addr_wire_length(address));
	mnl_attr_put((struct nlmsghdr *)buffer, RTA_DST, addr_wire_length(address), addr_wire_bytes(address));
	return rtnetlink_ask(socket, (struct nlmsghdr *)buffer, NULL, NULL);
}

int announce_routes_del(struct mnl_socket *socket, uint32_t table, const struct shunt_prefix *prefix)
{
	char buffer[MESSAGE] = {};
	union shunt_address address;
	struct rtmsg *route;
	bool v4;
	int ret;

	memcpy(address.byte, prefix->address, sizeof(address.byte));
	v4 = addr_is_v4(&address) && prefix->length >= V4_BITS;
	route = begin(buffer, RTM_DELROUTE, 0, v4 ? AF_INET : AF_INET6, table);
	route->rtm_scope = RT_SCOPE_NOWHERE; /* any */
	route->rtm_dst_len = (unsigned char)(prefix->length - (v4 ? V4_BITS : 0));
	mnl_attr_put((struct nlmsghdr *)buffer, RTA_DST, v4 ? 4 : 16, address.byte + (v4 ? 12 : 0));
	ret = rtnetlink_ask(socket, (struct nlmsghdr *)buffer, NULL, NULL);
	return ret == -ESRCH ? 0 : ret;
}

int announce_routes_lock(uint32_t table)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;

	if (fd < 0)
		return -errno;
	/* Of the abstract names, of which each network namespace has its own. */
	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "shunt/announce/%u", table);
	if (!bind(fd, (struct sockaddr *)&name, sizeof(name)))
		return fd;
	error = -errno;
	close(fd);
	return error;
}
