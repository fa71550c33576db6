/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stdio.h>
#include <string.h>

#include "probe_net.h"
#include "rtnetlink.h"

#define BUFFER 8192
#define PRIORITY 20    /* of the rules: behind `local`, before all that hosts usually have */
#define PROBE_MTU 1500 /* what clients mostly have; padding is not bound by it */

/* ---- links ---- */

static struct ifinfomsg *begin_link(void *buffer, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);

	message->nlmsg_type = type;
	message->nlmsg_flags = flags;
	return mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
}

struct found {
	uint32_t ifindex;
	char *alias;
	unsigned int size;
};

static int on_attribute(const struct nlattr *attr, void *arg)
{
	struct found *found = arg;

	if (mnl_attr_get_type(attr) == IFLA_IFALIAS)
		snprintf(found->alias, found->size, "%.*s", (int)mnl_attr_get_payload_len(attr),
			 mnl_attr_get_str(attr));
	return MNL_CB_OK;
}

static int on_link(const struct nlmsghdr *message, void *arg)
{
	const struct ifinfomsg *info = mnl_nlmsg_get_payload(message);
	struct found *found = arg;

	found->ifindex = (uint32_t)info->ifi_index;
	mnl_attr_parse(message, sizeof(*info), on_attribute, found);
	return MNL_CB_OK;
}

int probe_net_find(struct mnl_socket *socket, const char *name, uint32_t *ifindex, char *alias, unsigned int size)
{
	char buffer[BUFFER] = {};
	struct found found = {.alias = alias, .size = size};
	int ret;

	begin_link(buffer, RTM_GETLINK, 0);
	mnl_attr_put_strz((struct nlmsghdr *)buffer, IFLA_IFNAME, name);
	*alias = '\0';
	ret = rtnetlink_ask(socket, (struct nlmsghdr *)buffer, on_link, &found);
	if (!ret)
		*ifindex = found.ifindex;
	return ret;
}

/* What both ends are: no addresses of their own, no questions to a neighbour that there is not. */
static void put_end(struct nlmsghdr *message, const char *name, const char *alias)
{
	struct nlattr *families, *inet6;

	mnl_attr_put_strz(message, IFLA_IFNAME, name);
	mnl_attr_put_strz(message, IFLA_IFALIAS, alias);
	mnl_attr_put_u32(message, IFLA_MTU, PROBE_MTU);
	families = mnl_attr_nest_start(message, IFLA_AF_SPEC);
	inet6 = mnl_attr_nest_start(message, AF_INET6);
	mnl_attr_put_u8(message, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(message, inet6);
	mnl_attr_nest_end(message, families);
}

/* The alias is not taken at creation by every kernel. */
static int set_up(struct mnl_socket *socket, const char *name, const char *alias)
{
	char buffer[BUFFER] = {};
	struct ifinfomsg *info = begin_link(buffer, RTM_NEWLINK, 0);

	info->ifi_flags = info->ifi_change = IFF_UP | IFF_NOARP;
	put_end((struct nlmsghdr *)buffer, name, alias);
	return rtnetlink_ask(socket, (struct nlmsghdr *)buffer, NULL, NULL);
}

int probe_net_add_pair(struct mnl_socket *socket, const char *name, const char *peer, const char *alias)
{
	char buffer[BUFFER] = {};
	struct nlmsghdr *message = (struct nlmsghdr *)buffer;
	struct nlattr *kind, *data, *other;
	int ret;

	begin_link(buffer, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	mnl_attr_put_strz(message, IFLA_IFNAME, name);
	kind = mnl_attr_nest_start(message, IFLA_LINKINFO);
	mnl_attr_put_str(message, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(message, IFLA_INFO_DATA);
	other = mnl_attr_nest_start(message, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(message, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(message, IFLA_IFNAME, peer);
	mnl_attr_nest_end(message, other);
	mnl_attr_nest_end(message, data);
	mnl_attr_nest_end(message, kind);
	ret = rtnetlink_ask(socket, message, NULL, NULL);
	if (ret)
		return ret;
	ret = set_up(socket, name, alias);
	ret = ret ? ret : set_up(socket, peer, alias);
	if (ret)
		probe_net_delete(socket, name);
	return ret;
}

int probe_net_delete(struct mnl_socket *socket, const char *name)
{
	char buffer[BUFFER] = {};

	begin_link(buffer, RTM_DELLINK, 0);
	mnl_attr_put_strz((struct nlmsghdr *)buffer, IFLA_IFNAME, name);
	return rtnetlink_ask(socket, (struct nlmsghdr *)buffer, NULL, NULL);
}

/* ---- routes and rules ---- */

int probe_net_add_route(struct mnl_socket *socket, int family, uint32_t table, uint32_t ifindex)
{
	char buffer[BUFFER] = {};
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct rtmsg *route;

	message->nlmsg_type = RTM_NEWROUTE;
	message->nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE;
	route = mnl_nlmsg_put_extra_header(message, sizeof(*route));
	route->rtm_family = (unsigned char)family;
	route->rtm_table = RT_TABLE_UNSPEC;
	route->rtm_protocol = RTNETLINK_PROBE;
	route->rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE;
	route->rtm_type = RTN_UNICAST;
	mnl_attr_put_u32(message, RTA_TABLE, table);
	mnl_attr_put_u32(message, RTA_OIF, ifindex);
	return rtnetlink_ask(socket, message, NULL, NULL);
}

int probe_net_rule(struct mnl_socket *socket, bool add, int family, uint32_t mark, uint32_t mask, uint32_t table)
{
	char buffer[BUFFER] = {};
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct fib_rule_hdr *rule;

	message->nlmsg_type = add ? RTM_NEWRULE : RTM_DELRULE;
	message->nlmsg_flags = add ? NLM_F_CREATE | NLM_F_EXCL : 0;
	rule = mnl_nlmsg_put_extra_header(message, sizeof(*rule));
	rule->family = (unsigned char)family;
	rule->action = FR_ACT_TO_TBL;
	mnl_attr_put_u32(message, FRA_PRIORITY, PRIORITY);
	mnl_attr_put_u32(message, FRA_TABLE, table);
	mnl_attr_put_u32(message, FRA_FWMARK, mark);
	mnl_attr_put_u32(message, FRA_FWMASK, mask);
	mnl_attr_put_strz(message, FRA_IIFNAME, "lo");
	mnl_attr_put_u8(message, FRA_PROTOCOL, RTNETLINK_PROBE);
	return rtnetlink_ask(socket, message, NULL, NULL);
}
