/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nexthop_internal.h"

static int compare_targets(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(union shunt_address));
}

static int compare_links(const void *a, const void *b)
{
	const struct nexthop_link *x = a, *y = b;

	return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

int nexthop_table_new(struct nexthop_table **out)
{
	struct nexthop_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	TAILQ_INIT(&table->query);
	TAILQ_INIT(&table->change);
	TAILQ_INIT(&table->ask);
	TAILQ_INIT(&table->keep);
	TAILQ_INIT(&table->wait);
	*out = table;
	return 0;
}

void nexthop_table_free(struct nexthop_table *table)
{
	if (!table)
		return;
	tdestroy(table->targets, free);
	tdestroy(table->neighbours, free);
	tdestroy(table->links, free);
	free(table);
}

const struct nexthop_link *nexthop_find_link(const struct nexthop_table *table, uint32_t ifindex)
{
	return nexthop_find(&table->links, &(struct nexthop_link){.ifindex = ifindex}, compare_links);
}

static void query(struct nexthop_table *table, struct target *target)
{
	if (target->queried)
		return;
	target->queried = true;
	TAILQ_INSERT_TAIL(&table->query, target, querying);
}

/* ---- routes ---- */

int nexthop_table_route(struct nexthop_table *table, const union shunt_address *address,
			const struct nexthop_route *route)
{
	struct target *target = nexthop_find(&table->targets, address, compare_targets);
	struct neighbour *neighbour = NULL;
	int ret;

	if (!target)
		return 0;
	if (!route->error && !route->local) {
		ret = nexthop_get_neighbour(table, route->ifindex, route->has_gateway ? &route->gateway : address,
					    &neighbour);
		if (ret)
			return ret;
	}
	if (neighbour != target->neighbour) {
		nexthop_leave_neighbour(table, target);
		target->neighbour = neighbour;
		if (neighbour)
			LIST_INSERT_HEAD(&neighbour->targets, target, sibling);
	}
	target->route = *route;
	target->answered = true;
	nexthop_touch(table, target);
	return 0;
}

struct walk {
	struct nexthop_table *table;
	const struct shunt_prefix *prefix;
};

static void query_if_below(const void *node, VISIT visit, void *arg)
{
	struct target *target = *(struct target *const *)node;
	const struct walk *walk = arg;

	if ((visit == postorder || visit == leaf) && prefix_holds(walk->prefix, &target->address))
		query(walk->table, target);
}

void nexthop_table_routes_changed(struct nexthop_table *table, const struct shunt_prefix *prefix)
{
	twalk_r(table->targets, query_if_below, &(struct walk){table, prefix});
}

static void query_all(struct nexthop_table *table)
{
	nexthop_table_routes_changed(table, &(struct shunt_prefix){});
}

/* ---- links ---- */

static void touch_each(const void *node, VISIT visit, void *table)
{
	if (visit == postorder || visit == leaf)
		nexthop_touch(table, *(struct target *const *)node);
}

static void links_changed(struct nexthop_table *table)
{
	/* The kernel removes routes with a link without a word about each. */
	query_all(table);
	twalk_r(table->targets, touch_each, table);
}

int nexthop_table_link(struct nexthop_table *table, const struct nexthop_link *link)
{
	struct link *known = nexthop_find(&table->links, link, compare_links);

	if (!known) {
		known = calloc(1, sizeof(*known));
		if (!known)
			return -ENOMEM;
		known->link.ifindex = link->ifindex;
		if (!tsearch(known, &table->links, compare_links)) {
			free(known);
			return -ENOMEM;
		}
	}
	known->stale = false;
	if (!memcmp(&known->link, link, sizeof(*link)))
		return 0;
	known->link = *link;
	links_changed(table);
	return 0;
}

void nexthop_table_link_gone(struct nexthop_table *table, uint32_t ifindex)
{
	struct nexthop_link key = {.ifindex = ifindex};
	struct link *link = nexthop_find(&table->links, &key, compare_links);

	if (!link)
		return;
	tdelete(link, &table->links, compare_links);
	free(link);
	links_changed(table);
}

static void mark_stale(const void *node, VISIT visit, void *arg)
{
	(void)arg;
	if (visit == postorder || visit == leaf)
		(*(struct link *const *)node)->stale = true;
}

static void first_stale(const void *node, VISIT visit, void *arg)
{
	const struct link *link = *(struct link *const *)node, **found = arg;

	if ((visit == postorder || visit == leaf) && link->stale)
		*found = link;
}

void nexthop_table_links_done(struct nexthop_table *table)
{
	const struct link *link;

	for (;;) {
		link = NULL;
		twalk_r(table->links, first_stale, &link);
		if (!link)
			return;
		nexthop_table_link_gone(table, link->link.ifindex);
	}
}

void nexthop_table_reset(struct nexthop_table *table)
{
	twalk_r(table->links, mark_stale, NULL);
	nexthop_ask_all(table);
	query_all(table);
}

/* ---- the set of addresses ---- */

static void unwant(const void *node, VISIT visit, void *arg)
{
	(void)arg;
	if (visit == postorder || visit == leaf)
		(*(struct target *const *)node)->wanted = false;
}

static int want(struct nexthop_table *table, const union shunt_address *address)
{
	struct target *target = nexthop_find(&table->targets, address, compare_targets);

	if (!target) {
		target = calloc(1, sizeof(*target));
		if (!target)
			return -ENOMEM;
		target->address = *address;
		if (!tsearch(target, &table->targets, compare_targets)) {
			free(target);
			return -ENOMEM;
		}
		query(table, target);
		nexthop_set_pending(table, target, true);
	}
	target->wanted = true;
	return 0;
}

struct unwanted {
	struct target **list;
	size_t count, room;
};

static void collect_unwanted(const void *node, VISIT visit, void *arg)
{
	struct target *target = *(struct target *const *)node;
	struct unwanted *unwanted = arg;

	if ((visit == postorder || visit == leaf) && !target->wanted && unwanted->count < unwanted->room)
		unwanted->list[unwanted->count++] = target;
}

static void count_all(const void *node, VISIT visit, void *arg)
{
	(void)node;
	if (visit == postorder || visit == leaf)
		++*(size_t *)arg;
}

static void forget_target(struct nexthop_table *table, struct target *target)
{
	nexthop_leave_neighbour(table, target);
	nexthop_set_pending(table, target, false);
	if (target->queried)
		TAILQ_REMOVE(&table->query, target, querying);
	if (target->changed)
		TAILQ_REMOVE(&table->change, target, changing);
	tdelete(target, &table->targets, compare_targets);
	free(target);
}

int nexthop_table_watch(struct nexthop_table *table, const union shunt_address *addresses, size_t count)
{
	struct unwanted unwanted = {};

	twalk_r(table->targets, unwant, NULL);
	for (size_t i = 0; i < count; i++) {
		int ret = want(table, &addresses[i]);

		if (ret)
			return ret;
	}
	twalk_r(table->targets, count_all, &unwanted.room);
	unwanted.list = calloc(unwanted.room + 1, sizeof(struct target *));
	if (!unwanted.list)
		return -ENOMEM;
	twalk_r(table->targets, collect_unwanted, &unwanted);
	for (size_t i = 0; i < unwanted.count; i++)
		forget_target(table, unwanted.list[i]);
	free(unwanted.list);
	return 0;
}
