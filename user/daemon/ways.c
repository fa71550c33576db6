/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Follows the ways to backends, and publishes what changes. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "addr.h"
#include "daemon.h"
#include "log.h"

#define MS 1000ull	      /* microseconds */
#define QUIET_DELAY (5 * MS)  /* from a change to publishing it, when no other is expected */
#define JOIN_DELAY (300 * MS) /* when others are still being resolved: each publication may be an epoch */
#define RETRY_FIRST (1000 * MS)
#define RETRY_MAX (30000 * MS)
#define LOGGED_AT_ONCE 10u

static void arm(sd_event_source *timer, uint64_t delay)
{
	sd_event_source_set_time_relative(timer, delay);
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static bool is_armed(sd_event_source *timer)
{
	return sd_event_source_get_enabled(timer, NULL) > 0;
}

/* ---- publishing ---- */

void ways_published(struct daemon *daemon)
{
	daemon->publish_retry = 0;
	daemon_set_problem(&daemon->publish_problem, NULL);
	daemon_set_problem(&daemon->state_problem, NULL);
	sd_event_source_set_enabled(daemon->publish_timer, SD_EVENT_OFF);
}

static void publish_failed(struct daemon *daemon, int error, const struct report *report)
{
	char **problem = error ? &daemon->publish_problem : &daemon->state_problem;

	daemon_set_problem(problem,
			   error ? "the maps could not be brought up to date: %s"
				 : "the state cannot be written, so that changes are refused, while health and routes "
				   "are still acted on: %s",
			   report_first(report, error ? strerror(-error) : "see the log"));
	log_error("%s", *problem);
	if (!error)
		daemon_set_problem(&daemon->publish_problem, NULL);
}

void ways_publish(struct daemon *daemon)
{
	struct report report = {};
	int ret = engine_publish(daemon->engine, &report);

	log_report(&report);
	ticks_kick(daemon);
	if (!ret && engine_state_saved(daemon->engine)) {
		ways_published(daemon);
	} else {
		daemon->publish_retry = !daemon->publish_retry			? RETRY_FIRST
					: daemon->publish_retry > RETRY_MAX / 2 ? RETRY_MAX
										: 2 * daemon->publish_retry;
		publish_failed(daemon, ret, &report);
		arm(daemon->publish_timer, daemon->publish_retry);
	}
	record_flush(daemon);
	report_free(&report);
}

static int on_publish(sd_event_source *source, uint64_t usec, void *arg)
{
	struct daemon *daemon = arg;

	(void)source;
	(void)usec;
	daemon->origin = origin_self("the ways to backends changed");
	ways_publish(daemon);
	return 0;
}

static void log_way(const union shunt_address *address, const struct engine_nexthop *way)
{
	char text[ADDR_TEXT_MAX];

	addr_format(address, text);
	if (way->known)
		log_info("%s: through interface %u, MAC %02x:%02x:%02x:%02x:%02x:%02x, MTU %u", text, way->ifindex,
			 way->mac[0], way->mac[1], way->mac[2], way->mac[3], way->mac[4], way->mac[5], way->mtu);
	else
		log_info("%s: %s", text, way->why);
}

/* Tell the engine; returns how many changed. */
static size_t take_changes(struct daemon *daemon)
{
	union shunt_address address;
	struct engine_nexthop way;
	size_t count = 0;
	int ret;

	while (nexthop_changed(daemon->nexthop, &address, &way)) {
		ret = engine_set_nexthop(daemon->engine, &address, &way);
		if (ret)
			log_error("a way to a backend is lost: %s", strerror(-ret));
		if (count++ < LOGGED_AT_ONCE)
			log_way(&address, &way);
	}
	if (count > LOGGED_AT_ONCE)
		log_info("ways to %zu more addresses changed", count - LOGGED_AT_ONCE);
	return count;
}

/* ---- following ---- */

static void follow(struct daemon *daemon)
{
	int wait = nexthop_wait(daemon->nexthop);

	if (take_changes(daemon) && (daemon->publish_retry || !is_armed(daemon->publish_timer)))
		arm(daemon->publish_timer, nexthop_pending(daemon->nexthop) ? JOIN_DELAY : QUIET_DELAY);
	if (wait < 0)
		sd_event_source_set_enabled(daemon->way_timer, SD_EVENT_OFF);
	else
		arm(daemon->way_timer, (uint64_t)wait * MS);
}

/* What is known is kept; the kernel's shortage may pass. */
static void netlink_failed(struct daemon *daemon, int error)
{
	log_error("cannot read routes and neighbours: %s; trying again in a second", strerror(-error));
	arm(daemon->way_timer, 1000 * MS);
}

static int on_news(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct daemon *daemon = arg;
	int ret = nexthop_receive(daemon->nexthop);

	(void)source;
	(void)fd;
	(void)events;
	follow(daemon);
	if (ret)
		netlink_failed(daemon, ret);
	return 0;
}

static int on_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct daemon *daemon = arg;
	int ret = nexthop_work(daemon->nexthop);

	(void)source;
	(void)usec;
	follow(daemon);
	if (ret)
		netlink_failed(daemon, ret);
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void ways_settle(struct daemon *daemon, unsigned int milliseconds)
{
	struct pollfd fd = {.fd = nexthop_fd(daemon->nexthop), .events = POLLIN};
	uint64_t end = now_ms() + milliseconds, now;

	while (nexthop_pending(daemon->nexthop) && (now = now_ms()) < end) {
		int wait = nexthop_wait(daemon->nexthop);
		int ret, left = (int)(end - now);

		if (poll(&fd, 1, wait >= 0 && wait < left ? wait : left) < 0)
			break;
		ret = nexthop_receive(daemon->nexthop);
		if (!ret && nexthop_wait(daemon->nexthop) == 0)
			ret = nexthop_work(daemon->nexthop);
		if (ret)
			break;
	}
	follow(daemon);
}

/* ---- which addresses ---- */

struct addresses {
	union shunt_address *list;
	size_t count, room;
	bool failed;
};

static void collect(const union shunt_address *address, void *arg)
{
	struct addresses *addresses = arg;
	union shunt_address *grown;

	if (addresses->count == addresses->room) {
		addresses->room = addresses->room ? 2 * addresses->room : 64;
		grown = reallocarray(addresses->list, addresses->room, sizeof(*grown));
		if (!grown) {
			addresses->failed = true;
			addresses->room = addresses->count;
			return;
		}
		addresses->list = grown;
	}
	addresses->list[addresses->count++] = *address;
}

int ways_watch(struct daemon *daemon, const struct model *model)
{
	struct addresses addresses = {};
	int ret = -ENOMEM;

	engine_addresses(daemon->engine, collect, &addresses);
	for (size_t i = 0; model && i < model->n_pools; i++)
		for (size_t j = 0; j < model->pools[i].n_backends; j++)
			collect(&model->pools[i].backends[j].address, &addresses);
	if (!addresses.failed)
		ret = nexthop_watch(daemon->nexthop, addresses.list, addresses.count);
	free(addresses.list);
	follow(daemon);
	return ret;
}

/* ---- opening ---- */

static int add_sources(struct daemon *daemon)
{
	int ret;

	ret = sd_event_add_io(daemon->event, &daemon->way_news, nexthop_fd(daemon->nexthop), EPOLLIN, on_news, daemon);
	if (ret < 0)
		return ret;
	ret = sd_event_add_time(daemon->event, &daemon->way_timer, CLOCK_MONOTONIC, 0, MS, on_due, daemon);
	if (ret < 0)
		return ret;
	sd_event_source_set_enabled(daemon->way_timer, SD_EVENT_OFF);
	ret = sd_event_add_time(daemon->event, &daemon->publish_timer, CLOCK_MONOTONIC, 0, MS, on_publish, daemon);
	if (ret < 0)
		return ret;
	sd_event_source_set_enabled(daemon->publish_timer, SD_EVENT_OFF);
	return 0;
}

int ways_open(struct daemon *daemon, struct report *report)
{
	int ret = nexthop_open(&daemon->nexthop, report);

	if (ret)
		return ret;
	ret = add_sources(daemon);
	return ret ? report_error(report, ret, "cannot wait for netlink: %s", strerror(-ret)) : 0;
}

void ways_close(struct daemon *daemon)
{
	sd_event_source_unref(daemon->way_news);
	sd_event_source_unref(daemon->way_timer);
	sd_event_source_unref(daemon->publish_timer);
	nexthop_close(daemon->nexthop);
}
