/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The routes of announcements: the table is read each time, so that what a killed process left, and what somebody else
 * deleted, is put right in the same way as what changes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "addr.h"
#include "announce.h"
#include "announce_routes.h"
#include "log.h"

/* ---- tables ---- */

void announce_save(struct announce *announce)
{
	struct report report = {};

	if (!announce_kept_save(announce->daemon->options->state_dir, &announce->kept, &report))
		daemon_set_problem(&announce->kept_problem, NULL);
	else
		daemon_set_problem(&announce->kept_problem, "%s: announcements go on, but what they are is not kept",
				   report_first(&report, "out of memory"));
	report_free(&report);
}

static void let_go(struct announce *announce)
{
	if (announce->lock >= 0)
		close(announce->lock);
	announce->lock = -1;
	announce->locked = 0;
}

static int hold(struct announce *announce, uint32_t table)
{
	int ret;

	if (announce->locked == table)
		return 0;
	let_go(announce);
	ret = announce_routes_lock(table);
	if (ret < 0)
		return ret;
	announce->lock = ret;
	announce->locked = table;
	return 0;
}

/* None of ours stays in a table that is another's now. */
static int clear(struct announce *announce, uint32_t table)
{
	struct shunt_prefix *routes;
	int ret = hold(announce, table);
	size_t n;

	if (ret)
		return ret == -EADDRINUSE ? 0 : ret; /* another instance's by now, and so are its routes */
	ret = announce_routes_list(announce->socket, table, &routes, &n);
	if (ret)
		return ret;
	for (size_t i = 0; i < n && !ret; i++)
		ret = announce_routes_del(announce->socket, table, &routes[i]);
	free(routes);
	return ret;
}

/* Tables of other documents; -errno of the last that stays. */
static int clear_others(struct announce *announce, uint32_t table)
{
	struct announce_kept *kept = &announce->kept;
	size_t n = 0, before = kept->n_tables;
	int ret = 0;

	for (size_t i = 0; i < before; i++) {
		int error = kept->tables[i] == table ? 0 : clear(announce, kept->tables[i]);

		if (kept->tables[i] == table || error)
			kept->tables[n++] = kept->tables[i];
		ret = error ? error : ret;
	}
	kept->n_tables = n;
	if (n != before)
		announce_save(announce);
	return ret;
}

/* On disk before the first route is in it. */
static void note(struct announce *announce, uint32_t table)
{
	struct announce_kept *kept = &announce->kept;

	for (size_t i = 0; i < kept->n_tables; i++)
		if (kept->tables[i] == table) {
			if (announce->kept_problem)
				announce_save(announce);
			return;
		}
	if (kept->n_tables == ANNOUNCE_TABLES)
		memmove(kept->tables, kept->tables + 1, --kept->n_tables * sizeof(*kept->tables));
	kept->tables[kept->n_tables++] = table;
	announce_save(announce);
}

/* ---- routes ---- */

static void add(struct announce *announce, struct announced *address)
{
	char text[ADDR_TEXT_MAX];

	if (address->present)
		log_warning("the route to %s in table %u was gone: it is put back",
			    addr_format(&address->address, text), announce->locked);
	address->error = announce_routes_add(announce->socket, announce->locked, &address->address);
	address->present = !address->error;
}

static struct shunt_prefix host_route(const struct announced *address)
{
	struct shunt_prefix prefix = {.length = 128};

	memcpy(prefix.address, address->address.byte, sizeof(prefix.address));
	return prefix;
}

/* Both are sorted: what is wanted and missing is added, what is there and not wanted is deleted. */
static int bring(struct announce *announce, const struct shunt_prefix *routes, size_t n)
{
	size_t at = 0;
	int ret = 0;

	for (size_t i = 0; i <= announce->n; i++) {
		struct announced *address = i < announce->n ? &announce->list[i] : NULL;
		struct shunt_prefix wanted = address ? host_route(address) : (struct shunt_prefix){};
		int order = -1, error = 0;

		for (; at < n && (order = address ? announce_routes_compare(&routes[at], &wanted) : -1) < 0; at++) {
			error = announce_routes_del(announce->socket, announce->locked, &routes[at]);
			ret = error ? error : ret;
		}
		if (!address)
			break;
		if (at < n && !order) {
			address->present = true;
			address->error = address->wanted
						 ? 0
						 : announce_routes_del(announce->socket, announce->locked, &routes[at]);
			address->present = address->wanted || address->error;
			at++;
		} else if (address->wanted) {
			add(announce, address);
		} else {
			address->present = false;
			address->error = 0;
		}
	}
	return ret;
}

/* ---- all of it ---- */

static void tell(struct announce *announce, uint32_t table, int error)
{
	const struct announced *first = NULL;
	char text[ADDR_TEXT_MAX];
	size_t n = 0;

	for (size_t i = 0; i < announce->n; i++) {
		if (!announce->list[i].error)
			continue;
		first = first ? first : &announce->list[i];
		n++;
	}
	if (error == -EADDRINUSE)
		daemon_set_problem(&announce->problem,
				   "table %u is the announcements' of another instance: give each a table of its own",
				   table);
	else if (error)
		daemon_set_problem(&announce->problem, "announcements are not as they should be: %s", strerror(-error));
	else if (first && first->error == -EEXIST)
		daemon_set_problem(
			&announce->problem,
			"%zu addresses are not announced, because a route that is not shunt's is in the way: "
			"ip route show table %u %s",
			n, table, addr_format(&first->address, text));
	else if (first)
		daemon_set_problem(&announce->problem, "the routes of %zu addresses cannot be changed, such as %s: %s",
				   n, addr_format(&first->address, text), strerror(-first->error));
	else
		daemon_set_problem(&announce->problem, NULL);
}

void announce_sync(struct announce *announce)
{
	const struct model_announce *model = &engine_model(announce->daemon->engine)->announce;
	uint32_t table = model->given ? model->table : 0;
	struct shunt_prefix *routes = NULL;
	bool troubled = announce->problem;
	size_t n = 0;
	int ret = 0, others;

	if (!table && !announce->kept.n_tables) {
		tell(announce, table, 0);
		return;
	}
	if (!announce->socket)
		ret = announce_routes_open(&announce->socket);
	others = ret ? 0 : clear_others(announce, table);
	if (!ret && !table)
		let_go(announce);
	if (!ret && table) {
		ret = hold(announce, table);
		if (!ret) {
			note(announce, table);
			ret = announce_routes_list(announce->socket, table, &routes, &n);
		}
		ret = ret ? ret : bring(announce, routes, n);
		free(routes);
	}
	tell(announce, table, ret ? ret : others);
	if (announce->problem && !troubled)
		log_error("%s", announce->problem);
}
