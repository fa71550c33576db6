/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <net/if_arp.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "addr.h"
#include "nexthop_message.h"
#include "rtnetlink.h"

/* ---- addresses in attributes ---- */

static bool attribute_address(const struct nlattr *attr, union shunt_address *out)
{
	return attr && addr_from_wire(mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr), out);
}

/* A gateway of the other family: the address follows its family (struct rtvia). */
static bool attribute_via(const struct nlattr *attr, union shunt_address *out)
{
	const struct rtvia *via = attr ? mnl_attr_get_payload(attr) : NULL;

	if (!via || mnl_attr_get_payload_len(attr) < sizeof(*via))
		return false;
	return addr_from_wire(via->rtvia_addr, mnl_attr_get_payload_len(attr) - sizeof(*via), out);
}

/* ---- attributes by number ---- */

struct attributes {
	const struct nlattr **of;
	unsigned int count;
};

static int collect(const struct nlattr *attr, void *arg)
{
	struct attributes *attributes = arg;
	unsigned int type = mnl_attr_get_type(attr);

	if (type < attributes->count)
		attributes->of[type] = attr;
	return MNL_CB_OK;
}

/* Fills of[0..count).  -EINVAL where the message is shorter than its fixed part. */
static int parse(const struct nlmsghdr *message, size_t fixed, const struct nlattr **of, unsigned int count)
{
	struct attributes attributes = {of, count};

	memset(of, 0, count * sizeof(*of));
	if (mnl_nlmsg_get_payload_len(message) < fixed)
		return -EINVAL;
	return mnl_attr_parse(message, (unsigned int)fixed, collect, &attributes) < 0 ? -EINVAL : 0;
}

static bool read_u32(const struct nlattr *attr, uint32_t *out)
{
	if (!attr || mnl_attr_get_payload_len(attr) != sizeof(*out))
		return false;
	*out = mnl_attr_get_u32(attr);
	return true;
}

static bool read_mac(const struct nlattr *attr, uint8_t mac[6])
{
	if (!attr || mnl_attr_get_payload_len(attr) != 6)
		return false;
	memcpy(mac, mnl_attr_get_payload(attr), 6);
	return true;
}

/* ---- requests ---- */

static void put_neighbour(struct nlmsghdr *message, uint32_t ifindex, const union shunt_address *address)
{
	struct ndmsg *neighbour = mnl_nlmsg_put_extra_header(message, sizeof(*neighbour));

	neighbour->ndm_family = addr_is_v4(address) ? AF_INET : AF_INET6;
	neighbour->ndm_ifindex = (int)ifindex;
	mnl_attr_put(message, NDA_DST, addr_wire_length(address), addr_wire_bytes(address));
	if (message->nlmsg_type == RTM_NEWNEIGH)
		neighbour->ndm_flags = NTF_USE;
}

struct nlmsghdr *nexthop_message_ask(void *buffer, enum nexthop_question question, uint32_t ifindex,
				     const union shunt_address *address)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct rtmsg *route;

	message->nlmsg_flags = NLM_F_REQUEST;
	switch (question) {
	case NEXTHOP_ROUTE:
		message->nlmsg_type = RTM_GETROUTE;
		route = mnl_nlmsg_put_extra_header(message, sizeof(*route));
		route->rtm_family = addr_is_v4(address) ? AF_INET : AF_INET6;
		route->rtm_dst_len = (unsigned char)(8 * addr_wire_length(address));
		mnl_attr_put(message, RTA_DST, addr_wire_length(address), addr_wire_bytes(address));
		break;
	case NEXTHOP_GET:
		message->nlmsg_type = RTM_GETNEIGH;
		put_neighbour(message, ifindex, address);
		break;
	default:
		/* For an entry that is there, the kernel clears NUD_PERMANENT; without NTF_EXT_MANAGED it ends its
		 * keeping. */
		message->nlmsg_type = RTM_NEWNEIGH;
		message->nlmsg_flags |= NLM_F_ACK;
		put_neighbour(message, ifindex, address);
		if (question == NEXTHOP_RELEASE)
			break;
		message->nlmsg_flags |= NLM_F_CREATE | (question == NEXTHOP_CREATE ? NLM_F_EXCL : NLM_F_REPLACE);
		mnl_attr_put_u32(message, NDA_FLAGS_EXT, NTF_EXT_MANAGED);
	}
	return message;
}

struct nlmsghdr *nexthop_message_dump_links(void *buffer)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *link;

	message->nlmsg_type = RTM_GETLINK;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	link = mnl_nlmsg_put_extra_header(message, sizeof(*link));
	link->ifi_family = AF_UNSPEC;
	return message;
}

/* ---- answers and events ---- */

int nexthop_message_link(const struct nlmsghdr *message, struct nexthop_link *out)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	const struct nlattr *of[IFLA_MAX + 1];
	struct nexthop_link link = {};

	if (parse(message, sizeof(*info), of, IFLA_MAX + 1) || info->ifi_index <= 0 || info->ifi_family != AF_UNSPEC)
		return -EINVAL;
	link.ifindex = (uint32_t)info->ifi_index;
	link.up = (info->ifi_flags & IFF_UP) && (info->ifi_flags & IFF_RUNNING);
	read_u32(of[IFLA_MTU], &link.mtu);
	link.ethernet = read_mac(of[IFLA_ADDRESS], link.mac) && info->ifi_type == ARPHRD_ETHER;
	if (of[IFLA_IFNAME])
		strncpy(link.name, mnl_attr_get_payload(of[IFLA_IFNAME]), sizeof(link.name) - 1);
	*out = link;
	return 0;
}

/* A learned path MTU (the entry is a clone that expires) is no property of the route: no event tells when it ends. */
static uint32_t route_mtu(const struct rtmsg *info, const struct nlattr **of)
{
	const struct rta_cacheinfo *cache = of[RTA_CACHEINFO] ? mnl_attr_get_payload(of[RTA_CACHEINFO]) : NULL;
	const struct nlattr *attr;
	uint32_t mtu = 0;

	if ((info->rtm_flags & RTM_F_CLONED) && cache &&
	    mnl_attr_get_payload_len(of[RTA_CACHEINFO]) >= sizeof(*cache) && cache->rta_expires)
		return 0;
	if (of[RTA_METRICS])
		mnl_attr_for_each_nested(attr, of[RTA_METRICS]) if (mnl_attr_get_type(attr) == RTAX_MTU)
			read_u32(attr, &mtu);
	return mtu;
}

static int route_error(unsigned int type)
{
	switch (type) {
	case RTN_BLACKHOLE:
		return -EINVAL;
	case RTN_UNREACHABLE:
		return -EHOSTUNREACH;
	case RTN_PROHIBIT:
		return -EACCES;
	default:
		return 0;
	}
}

int nexthop_message_route(const struct nlmsghdr *message, struct nexthop_route *out)
{
	const struct rtmsg *info = mnl_nlmsg_get_payload(message);
	const struct nlattr *of[RTA_MAX + 1];
	struct nexthop_route route = {};

	if (message->nlmsg_type != RTM_NEWROUTE || parse(message, sizeof(*info), of, RTA_MAX + 1))
		return -EINVAL;
	route.error = route_error(info->rtm_type);
	route.local = !route.error && info->rtm_type != RTN_UNICAST;
	if (!read_u32(of[RTA_OIF], &route.ifindex) && !route.error && !route.local)
		return -EINVAL;
	route.has_gateway =
		attribute_address(of[RTA_GATEWAY], &route.gateway) || attribute_via(of[RTA_VIA], &route.gateway);
	attribute_address(of[RTA_PREFSRC], &route.source);
	route.mtu = route_mtu(info, of);
	*out = route;
	return 0;
}

int nexthop_message_neighbour(const struct nlmsghdr *message, struct nexthop_neighbour *out)
{
	const struct ndmsg *info = mnl_nlmsg_get_payload(message);
	const struct nlattr *of[NDA_MAX + 1];
	struct nexthop_neighbour neighbour = {};
	uint32_t flags = 0;

	if (parse(message, sizeof(*info), of, NDA_MAX + 1) ||
	    (info->ndm_family != AF_INET && info->ndm_family != AF_INET6) || (info->ndm_flags & NTF_PROXY) ||
	    !attribute_address(of[NDA_DST], &neighbour.address))
		return -EINVAL;
	neighbour.ifindex = (uint32_t)info->ndm_ifindex;
	if (message->nlmsg_type == RTM_NEWNEIGH) {
		read_u32(of[NDA_FLAGS_EXT], &flags);
		neighbour.exists = true;
		neighbour.state = info->ndm_state;
		neighbour.managed = flags & NTF_EXT_MANAGED;
		neighbour.has_mac = read_mac(of[NDA_LLADDR], neighbour.mac);
	}
	*out = neighbour;
	return 0;
}

void nexthop_message_prefix(const struct nlmsghdr *message, struct shunt_prefix *out)
{
	const struct rtmsg *info = mnl_nlmsg_get_payload(message);
	const struct nlattr *of[RTA_MAX + 1];
	union shunt_address address;

	*out = (struct shunt_prefix){};
	if (parse(message, sizeof(*info), of, RTA_MAX + 1) || !attribute_address(of[RTA_DST], &address))
		return;
	out->length = info->rtm_dst_len + (info->rtm_family == AF_INET ? 96 : 0);
	memcpy(out->address, address.byte, sizeof(out->address));
}

bool nexthop_message_announces(const struct nlmsghdr *message)
{
	const struct rtmsg *info = mnl_nlmsg_get_payload(message);

	return mnl_nlmsg_get_payload_len(message) >= sizeof(*info) && info->rtm_protocol == RTNETLINK_ANNOUNCE;
}
