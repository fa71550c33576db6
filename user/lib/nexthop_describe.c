/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What follows for an address from its route, link and neighbour, and what of it is told. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "addr.h"
#include "nexthop_internal.h"

static const char *route_error(int error)
{
	switch (error) {
	case -EACCES:
		return "the route to it prohibits";
	case -EINVAL:
		return "the route to it is a blackhole";
	case -EHOSTUNREACH:
		return "the route to it says unreachable";
	default:
		return "no route to it";
	}
}

/* Fills `why`; returns whether the answer may still change by waiting for one that is under way. */
static bool describe_neighbour(const struct neighbour *neighbour, const char *interface, char *why, size_t size)
{
	char text[ADDR_TEXT_MAX];

	addr_format(&neighbour->entry.address, text);
	if (neighbour->refused == -ENOBUFS) {
		snprintf(why, size, "neighbour table full (see gc_thresh3)");
		return false;
	}
	if (neighbour->refused) {
		snprintf(why, size, "the kernel does not resolve it on %s: %s", interface,
			 strerrorname_np(-neighbour->refused));
		return false;
	}
	if (neighbour->failed) {
		snprintf(why, size, "%.44s does not answer", text);
		return false;
	}
	snprintf(why, size, "%.44s is being resolved", text);
	return true;
}

/* Returns whether the way is pending. */
static bool compute(const struct nexthop_table *table, const struct target *target, struct engine_nexthop *out)
{
	const struct nexthop_route *route = &target->route;
	const struct nexthop_link *link = nexthop_find_link(table, route->ifindex);
	const struct neighbour *neighbour = target->neighbour;

	*out = (struct engine_nexthop){};
	if (!target->answered) {
		snprintf(out->why, sizeof(out->why), "its route is being looked up");
		return true;
	}
	if (route->error || route->local || !link || !neighbour) {
		snprintf(out->why, sizeof(out->why), "%s",
			 route->error	? route_error(route->error)
			 : route->local ? "it is an address of this host"
					: "its interface is gone");
		return false;
	}
	out->ifindex = route->ifindex;
	out->mtu = route->mtu && route->mtu < link->mtu ? route->mtu : link->mtu;
	out->source = route->source;
	out->gateway = route->has_gateway;
	memcpy(out->source_mac, link->mac, sizeof(out->source_mac));
	if (!link->ethernet || !link->up) {
		snprintf(out->why, sizeof(out->why), "interface %s is %s", link->name,
			 link->ethernet ? "down" : "not Ethernet");
		return false;
	}
	if (!(neighbour->entry.state & NUD_USABLE) || !neighbour->entry.has_mac)
		return describe_neighbour(neighbour, link->name, out->why, sizeof(out->why));
	memcpy(out->mac, neighbour->entry.mac, sizeof(out->mac));
	out->known = true;
	return false;
}

void nexthop_set_pending(struct nexthop_table *table, struct target *target, bool pending)
{
	table->pending += (size_t)pending - (size_t)target->pending;
	target->pending = pending;
}

/* Whether it is worth telling is seen when it is taken off the list. */
void nexthop_touch(struct nexthop_table *table, struct target *target)
{
	struct engine_nexthop unused;

	nexthop_set_pending(table, target, compute(table, target, &unused));
	if (target->changed)
		return;
	target->changed = true;
	TAILQ_INSERT_TAIL(&table->change, target, changing);
}

static bool same_way(const struct engine_nexthop *a, const struct engine_nexthop *b)
{
	return a->known == b->known && a->gateway == b->gateway && a->ifindex == b->ifindex && a->mtu == b->mtu &&
	       !memcmp(a->mac, b->mac, sizeof(a->mac)) && addr_equal(&a->source, &b->source) &&
	       !memcmp(a->source_mac, b->source_mac, sizeof(a->source_mac)) && !strcmp(a->why, b->why);
}

bool nexthop_table_changed(struct nexthop_table *table, union shunt_address *address, struct engine_nexthop *nexthop)
{
	struct target *target;

	while ((target = TAILQ_FIRST(&table->change))) {
		struct engine_nexthop now;

		TAILQ_REMOVE(&table->change, target, changing);
		target->changed = false;
		compute(table, target, &now);
		if (target->was_told && same_way(&now, &target->told))
			continue;
		target->was_told = true;
		target->told = now;
		*address = target->address;
		*nexthop = now;
		return true;
	}
	return false;
}

size_t nexthop_table_pending(const struct nexthop_table *table)
{
	return table->pending;
}
