/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A timer for what the engine has to do later: slots in transition come to rest, drains end, path MTUs are restored. */
#include <string.h>

#include "daemon.h"
#include "log.h"

#define MS 1000ull	/* microseconds */
#define RETRY_MS 1000	/* where a deletion cannot be written */
#define SLACK (40 * MS) /* after a change, for others that come with it, and for requests that waited */
#define PUT_OFF_MAX (500 * MS)
#define WAIT_MAX (60000 * MS) /* also an upper bound for errors in telling what is due */

/* From now, and not from when the loop began a turn in which a change took long. */
static void arm(struct daemon *daemon, uint64_t delay)
{
	sd_event_source_set_time(daemon->tick_timer, daemon_now() + delay);
	sd_event_source_set_enabled(daemon->tick_timer, SD_EVENT_ONESHOT);
}

void ticks_kick(struct daemon *daemon)
{
	uint64_t now = daemon_now(), due = now + SLACK;

	/* Also one that is due already: but changes that follow each other closely do not put it off for ever. */
	if (!daemon->tick_put_off)
		daemon->tick_put_off = now;
	if (due > daemon->tick_put_off + PUT_OFF_MAX)
		due = daemon->tick_put_off + PUT_OFF_MAX;
	if (daemon->tick_timer)
		arm(daemon, due > now ? due - now : 0);
	announce_kick(daemon);
}

/* The next step of slow starts, where one is due; UINT64_MAX or milliseconds until there is another. */
static uint64_t ramp(struct daemon *daemon)
{
	char why[ENGINE_RAMP_WHY_MAX];
	uint64_t wait;

	if (engine_ramp_due(daemon->engine, &wait, why)) {
		daemon->origin = origin_self("%s", why);
		ways_publish(daemon);
		engine_ramp_due(daemon->engine, &wait, why);
	}
	return wait;
}

/* Whether it is to be tried again soon. */
static bool delete_drained(struct daemon *daemon)
{
	struct report report = {};
	size_t deleted = 0;
	int ret;

	daemon->origin = origin_self("backends that had drained are deleted");
	ret = engine_delete_drained(daemon->engine, &daemon->origin, &deleted, &report);
	if (ret && !daemon->deletion_problem)
		log_report(&report);
	daemon_set_problem(&daemon->deletion_problem,
			   ret ? "the deletion of backends that have drained waits, because it cannot be written down: "
				 "%s"
			       : NULL,
			   report_first(&report, strerror(-ret)));
	report_free(&report);
	if (deleted) {
		log_info("%zu backends that had drained are deleted", deleted);
		record_revision(daemon, deleted, 0);
		record_flush(daemon);
		if (ways_watch(daemon, NULL))
			log_error("out of memory: addresses that are gone are still followed");
		checks_update(daemon);
	}
	return ret;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *arg)
{
	struct daemon *daemon = arg;
	struct report report = {};
	uint64_t wait = ramp(daemon), now = daemon_now() / MS, next = UINT64_MAX;
	int ret;

	(void)source;
	(void)usec;
	daemon->tick_put_off = 0;
	daemon->origin = origin_self("slots in transition");
	ret = engine_tick(daemon->engine, now, &next, &report);
	record_flush(daemon);
	log_report(&report);
	daemon_set_problem(&daemon->tick_problem, ret ? "slots in transition do not come to rest: %s" : NULL,
			   report_first(&report, strerror(-ret)));
	report_free(&report);
	if (!ret && delete_drained(daemon) && next > now + RETRY_MS)
		next = now + RETRY_MS;
	if (wait < UINT64_MAX && now + wait < next)
		next = now + wait;
	/* Also where nothing is due: packets lower path MTUs, and nobody tells. */
	if (next > now + WAIT_MAX / MS)
		next = now + WAIT_MAX / MS;
	arm(daemon, next > now ? (next - now) * MS : MS);
	return 0;
}

int ticks_open(struct daemon *daemon, struct report *report)
{
	int ret = sd_event_add_time_relative(daemon->event, &daemon->tick_timer, CLOCK_MONOTONIC, SLACK, MS, on_tick,
					     daemon);

	return ret < 0 ? report_error(report, ret, "cannot make a timer: %s", strerror(-ret)) : 0;
}

void ticks_close(struct daemon *daemon)
{
	sd_event_source_unref(daemon->tick_timer);
}
