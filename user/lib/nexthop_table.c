/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <linux/neighbour.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "addr.h"
#include "nexthop_table.h"

#define RETRY_FIRST 1000u /* milliseconds between KEEP questions for an entry that the kernel does not manage */
#define RETRY_MAX 30000u
#define NUD_USABLE (NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT | NUD_NOARP)

struct target;

struct neighbour {
	struct nexthop_neighbour entry; /* first: the tree's key */
	LIST_HEAD(target_set, target) targets;
	TAILQ_ENTRY(neighbour) asking;
	struct ask_list *list;	    /* that it is on, or NULL */
	enum nexthop_question next; /* that it is on the list for */
	bool kept;		    /* we asked for it */
	bool failed;		    /* it did not answer, and has not since: the kernel tries again and again */
	int refused;
	uint32_t retry; /* milliseconds */
	uint64_t due;	/* of the next NEXTHOP_KEEP; 0: at once */
};

struct target {
	union shunt_address address; /* first: the tree's key */
	LIST_ENTRY(target) sibling;
	TAILQ_ENTRY(target) querying, changing;
	struct neighbour *neighbour;
	struct nexthop_route route;
	struct engine_nexthop told;
	bool answered, queried, changed, wanted, pending, was_told;
};

TAILQ_HEAD(ask_list, neighbour);

struct link {
	struct nexthop_link link; /* first: the tree's key */
	bool stale;
};

struct nexthop_table {
	void *targets, *neighbours, *links; /* tsearch() trees */
	TAILQ_HEAD(target_list, target) query, change;
	struct ask_list ask, keep, wait; /* GET and RELEASE; KEEP that is due; KEEP that is not */
	uint64_t now;
	size_t pending;
};

static int compare_targets(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(union shunt_address));
}

static int compare_neighbours(const void *a, const void *b)
{
	const struct nexthop_neighbour *x = a, *y = b;

	if (x->ifindex != y->ifindex)
		return x->ifindex < y->ifindex ? -1 : 1;
	return memcmp(&x->address, &y->address, sizeof(x->address));
}

static int compare_links(const void *a, const void *b)
{
	const struct nexthop_link *x = a, *y = b;

	return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

static void *find(void *const *root, const void *key, int (*compare)(const void *, const void *))
{
	void **node = tfind(key, root, compare);

	return node ? *node : NULL;
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

/* ---- what follows for an address ---- */

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

static const struct nexthop_link *find_link(const struct nexthop_table *table, uint32_t ifindex)
{
	return find(&table->links, &(struct nexthop_link){.ifindex = ifindex}, compare_links);
}

/* Returns whether the way is pending. */
static bool compute(const struct nexthop_table *table, const struct target *target, struct engine_nexthop *out)
{
	const struct nexthop_route *route = &target->route;
	const struct nexthop_link *link = find_link(table, route->ifindex);
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

static void set_pending(struct nexthop_table *table, struct target *target, bool pending)
{
	table->pending += (size_t)pending - (size_t)target->pending;
	target->pending = pending;
}

/* Whether it is worth telling is seen when it is taken off the list. */
static void touch(struct nexthop_table *table, struct target *target)
{
	struct engine_nexthop unused;

	set_pending(table, target, compute(table, target, &unused));
	if (target->changed)
		return;
	target->changed = true;
	TAILQ_INSERT_TAIL(&table->change, target, changing);
}

static bool same_way(const struct engine_nexthop *a, const struct engine_nexthop *b)
{
	return a->known == b->known && a->ifindex == b->ifindex && a->mtu == b->mtu &&
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

/* ---- questions ---- */

static void query(struct nexthop_table *table, struct target *target)
{
	if (target->queried)
		return;
	target->queried = true;
	TAILQ_INSERT_TAIL(&table->query, target, querying);
}

static void unlist(struct neighbour *neighbour)
{
	if (neighbour->list)
		TAILQ_REMOVE(neighbour->list, neighbour, asking);
	neighbour->list = NULL;
}

static void ask(struct nexthop_table *table, struct neighbour *neighbour, enum nexthop_question question)
{
	unlist(neighbour);
	neighbour->next = question;
	neighbour->list = question != NEXTHOP_KEEP	 ? &table->ask
			  : neighbour->due <= table->now ? &table->keep
							 : &table->wait;
	TAILQ_INSERT_TAIL(neighbour->list, neighbour, asking);
}

static void forget_neighbour(struct nexthop_table *table, struct neighbour *neighbour)
{
	unlist(neighbour);
	tdelete(neighbour, &table->neighbours, compare_neighbours);
	free(neighbour);
}

static void asked_now(struct nexthop_table *table, struct neighbour *neighbour)
{
	switch (neighbour->next) {
	case NEXTHOP_RELEASE:
		forget_neighbour(table, neighbour);
		break;
	case NEXTHOP_KEEP:
		/* Again later, unless the kernel says before that it manages the entry: wake(). */
		neighbour->retry = !neighbour->due		       ? RETRY_FIRST
				   : neighbour->retry >= RETRY_MAX / 2 ? RETRY_MAX
								       : 2 * neighbour->retry;
		neighbour->due = table->now + neighbour->retry;
		neighbour->kept = true;
		ask(table, neighbour, NEXTHOP_KEEP);
		break;
	default:
		unlist(neighbour);
	}
}

static void wake(struct nexthop_table *table, uint64_t now)
{
	struct neighbour *neighbour, *next;

	table->now = now;
	for (neighbour = TAILQ_FIRST(&table->wait); neighbour; neighbour = next) {
		next = TAILQ_NEXT(neighbour, asking);
		if (neighbour->due <= now)
			ask(table, neighbour,
			    NEXTHOP_GET); /* an event may have been lost; the answer asks to keep it */
	}
}

enum nexthop_question nexthop_table_question(struct nexthop_table *table, uint64_t now, unsigned int *keep_limit,
					     uint32_t *ifindex, union shunt_address *address)
{
	struct target *target = TAILQ_FIRST(&table->query);
	struct neighbour *neighbour;
	enum nexthop_question question;

	if (now != table->now)
		wake(table, now);
	if (target) {
		TAILQ_REMOVE(&table->query, target, querying);
		target->queried = false;
		*address = target->address;
		return NEXTHOP_ROUTE;
	}
	neighbour = TAILQ_FIRST(&table->ask);
	if (!neighbour && *keep_limit) {
		neighbour = TAILQ_FIRST(&table->keep);
		*keep_limit -= !!neighbour;
	}
	if (!neighbour)
		return NEXTHOP_NOTHING;
	question = neighbour->next;
	*ifindex = neighbour->entry.ifindex;
	*address = neighbour->entry.address;
	asked_now(table, neighbour);
	return question;
}

uint64_t nexthop_table_due(const struct nexthop_table *table)
{
	const struct neighbour *neighbour;
	uint64_t due = UINT64_MAX;

	if (!TAILQ_EMPTY(&table->query) || !TAILQ_EMPTY(&table->ask) || !TAILQ_EMPTY(&table->keep))
		return 0;
	for (neighbour = TAILQ_FIRST(&table->wait); neighbour; neighbour = TAILQ_NEXT(neighbour, asking))
		due = neighbour->due < due ? neighbour->due : due;
	return due;
}

/* ---- neighbours ---- */

static void touch_targets(struct nexthop_table *table, struct neighbour *neighbour)
{
	struct target *target;

	for (target = LIST_FIRST(&neighbour->targets); target; target = LIST_NEXT(target, sibling))
		touch(table, target);
}

void nexthop_table_neighbour(struct nexthop_table *table, const struct nexthop_neighbour *entry)
{
	struct neighbour *neighbour = find(&table->neighbours, entry, compare_neighbours);
	bool kernels_own = entry->state & (NUD_PERMANENT | NUD_NOARP);

	if (!neighbour || LIST_EMPTY(&neighbour->targets))
		return;
	neighbour->entry = *entry;
	if (entry->state)
		neighbour->refused = 0;
	neighbour->failed = (neighbour->failed || (entry->state & NUD_FAILED)) && !(entry->state & NUD_USABLE);
	if (entry->managed || kernels_own) {
		/* Asking for a permanent entry would make it an ordinary one. */
		unlist(neighbour);
		neighbour->kept = neighbour->kept && entry->managed;
		if (entry->state & NUD_USABLE)
			neighbour->due = 0;
	} else {
		ask(table, neighbour, NEXTHOP_KEEP);
	}
	touch_targets(table, neighbour);
}

void nexthop_table_refused(struct nexthop_table *table, uint32_t ifindex, const union shunt_address *address, int error)
{
	struct nexthop_neighbour key = {.ifindex = ifindex, .address = *address};
	struct neighbour *neighbour = find(&table->neighbours, &key, compare_neighbours);

	if (!neighbour || LIST_EMPTY(&neighbour->targets))
		return;
	neighbour->refused = error;
	neighbour->kept = false;
	ask(table, neighbour, NEXTHOP_KEEP);
	touch_targets(table, neighbour);
}

static int get_neighbour(struct nexthop_table *table, uint32_t ifindex, const union shunt_address *address,
			 struct neighbour **out)
{
	struct nexthop_neighbour key = {.ifindex = ifindex, .address = *address};
	struct neighbour *neighbour = find(&table->neighbours, &key, compare_neighbours);

	if (!neighbour) {
		neighbour = calloc(1, sizeof(*neighbour));
		if (!neighbour)
			return -ENOMEM;
		neighbour->entry = key;
		LIST_INIT(&neighbour->targets);
		if (!tsearch(neighbour, &table->neighbours, compare_neighbours)) {
			free(neighbour);
			return -ENOMEM;
		}
	}
	if (LIST_EMPTY(&neighbour->targets))
		ask(table, neighbour, NEXTHOP_GET);
	*out = neighbour;
	return 0;
}

static void leave_neighbour(struct nexthop_table *table, struct target *target)
{
	struct neighbour *neighbour = target->neighbour;

	if (!neighbour)
		return;
	LIST_REMOVE(target, sibling);
	target->neighbour = NULL;
	if (!LIST_EMPTY(&neighbour->targets))
		return;
	if (neighbour->kept)
		ask(table, neighbour, NEXTHOP_RELEASE);
	else
		forget_neighbour(table, neighbour);
}

/* ---- routes ---- */

int nexthop_table_route(struct nexthop_table *table, const union shunt_address *address,
			const struct nexthop_route *route)
{
	struct target *target = find(&table->targets, address, compare_targets);
	struct neighbour *neighbour = NULL;
	int ret;

	if (!target)
		return 0;
	if (!route->error && !route->local) {
		ret = get_neighbour(table, route->ifindex, route->has_gateway ? &route->gateway : address, &neighbour);
		if (ret)
			return ret;
	}
	if (neighbour != target->neighbour) {
		leave_neighbour(table, target);
		target->neighbour = neighbour;
		if (neighbour)
			LIST_INSERT_HEAD(&neighbour->targets, target, sibling);
	}
	target->route = *route;
	target->answered = true;
	touch(table, target);
	return 0;
}

static bool prefix_has(const struct shunt_prefix *prefix, const union shunt_address *address)
{
	unsigned int bytes = prefix->length / 8, bits = prefix->length % 8;

	if (memcmp(prefix->address, address, bytes) != 0)
		return false;
	return !bits || !((prefix->address[bytes] ^ address->byte[bytes]) >> (8 - bits));
}

struct walk {
	struct nexthop_table *table;
	const struct shunt_prefix *prefix;
};

static void query_if_below(const void *node, VISIT visit, void *arg)
{
	struct target *target = *(struct target *const *)node;
	const struct walk *walk = arg;

	if ((visit == postorder || visit == leaf) && prefix_has(walk->prefix, &target->address))
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
		touch(table, *(struct target *const *)node);
}

static void links_changed(struct nexthop_table *table)
{
	/* The kernel removes routes with a link without a word about each. */
	query_all(table);
	twalk_r(table->targets, touch_each, table);
}

int nexthop_table_link(struct nexthop_table *table, const struct nexthop_link *link)
{
	struct link *known = find(&table->links, link, compare_links);

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
	struct link *link = find(&table->links, &key, compare_links);

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

static void ask_again(const void *node, VISIT visit, void *arg)
{
	struct neighbour *neighbour = *(struct neighbour *const *)node;

	if ((visit == postorder || visit == leaf) && !LIST_EMPTY(&neighbour->targets))
		ask(arg, neighbour, NEXTHOP_GET);
}

void nexthop_table_reset(struct nexthop_table *table)
{
	twalk_r(table->links, mark_stale, NULL);
	twalk_r(table->neighbours, ask_again, table);
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
	struct target *target = find(&table->targets, address, compare_targets);

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
		set_pending(table, target, true);
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
	leave_neighbour(table, target);
	set_pending(table, target, false);
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
