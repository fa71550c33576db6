/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rounds of checks: when each begins, what it asks, and its end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "addr.h"
#include "checks.h"
#include "duration.h"
#include "log.h"

#define EVENTS 256	      /* taken at once */
#define SLICE 10	      /* ms of events: a TLS handshake takes half of one */
#define STARTS 128	      /* before others of the loop have a turn */
#define ADDRESSES_KEPT 1000   /* ms */
#define ADDRESSES_DOUBTED 100 /* ms, where a check failed */
#define FULL_DELAY 20	      /* ms until what had no room is tried again */

uint64_t checks_now(void)
{
	return daemon_now() / 1000;
}

/* ---- a heap of targets by when they are due ---- */

static void place(struct checks *checks, struct target *target, size_t at)
{
	checks->heap[at] = target;
	target->heap_at = at;
}

static void sift_up(struct checks *checks, struct target *target)
{
	size_t at = target->heap_at;

	while (at && checks->heap[(at - 1) / 2]->due > target->due) {
		place(checks, checks->heap[(at - 1) / 2], at);
		at = (at - 1) / 2;
	}
	place(checks, target, at);
}

static void sift_down(struct checks *checks, struct target *target)
{
	size_t at = target->heap_at, child;

	while ((child = 2 * at + 1) < checks->n_targets) {
		if (child + 1 < checks->n_targets && checks->heap[child + 1]->due < checks->heap[child]->due)
			child++;
		if (checks->heap[child]->due >= target->due)
			break;
		place(checks, checks->heap[child], at);
		at = child;
	}
	place(checks, target, at);
}

static void set_due(struct checks *checks, struct target *target, uint64_t due)
{
	target->due = due;
	sift_up(checks, target);
	sift_down(checks, target);
}

static void arm(struct checks *checks)
{
	if (!checks->n_targets) {
		sd_event_source_set_enabled(checks->timer, SD_EVENT_OFF);
		return;
	}
	sd_event_source_set_time(checks->timer, checks->heap[0]->due * 1000);
	sd_event_source_set_enabled(checks->timer, SD_EVENT_ONESHOT);
}

int checks_schedule(struct checks *checks)
{
	free(checks->heap);
	checks->heap = calloc(checks->n_targets + 1, sizeof(struct target *));
	if (!checks->heap)
		return -ENOMEM;
	for (size_t i = 0; i < checks->n_targets; i++) {
		checks->targets[i]->heap_at = i;
		sift_up(checks, checks->targets[i]);
	}
	arm(checks);
	return 0;
}

void checks_forget(struct checks *checks, struct target *target)
{
	if (target->check.fd < 0)
		return;
	/* Closing would not do it: a hook that is just being started may still have a copy. */
	epoll_ctl(checks->epoll, EPOLL_CTL_DEL, target->check.fd, NULL);
	check_stop(&target->check);
	checks->n_running--;
}

/* ---- a round ---- */

static void next_round(struct checks *checks, struct target *target)
{
	uint64_t due = health_next(&target->params, target->started, target->seed, ++target->n_rounds);
	uint64_t now = checks_now();

	set_due(checks, target, due > now ? due : now + 1);
}

static const char way_unknown[] = "the way to it is not known yet"; /* then it has no slots either */

static const char way_local[] = "the service's address is one of this host, so that checks would not leave it: use "
				"check-via: direct";

/* What keeps it from being asked says nothing about the backend.  One that waits does so for as many rounds as fail. */
static void unable(struct checks *checks, struct target *target, const char *why)
{
	target->unable = true;
	target->n_unable = why == way_unknown ? 0 : target->n_unable + 1;
	snprintf(target->why, sizeof(target->why), "%s", why);
	if (target->waits && target->n_unable >= target->params.fall)
		checks_wait_no_more(checks, target);
	next_round(checks, target);
}

static bool is_endpoint(const struct target *target, const union shunt_address *address)
{
	for (size_t i = 0; i < target->n_endpoints; i++)
		if (addr_equal(&target->endpoints[i].address, address))
			return true;
	return false;
}

static int by_address(const void *a, const void *b)
{
	return memcmp(&((const struct model_local *)a)->address, &((const struct model_local *)b)->address,
		      sizeof(union shunt_address));
}

/* They come and go without a change of the document; where they cannot be read, what was known holds. */
static void look_at_addresses(struct checks *checks, uint64_t kept)
{
	struct locals locals;

	if (checks->asked_addresses && checks_now() - checks->asked_addresses < kept)
		return;
	checks->asked_addresses = checks_now();
	if (model_locals(&locals.list, &locals.n))
		return;
	qsort(locals.list, locals.n, sizeof(*locals.list), by_address);
	free(checks->locals.list);
	checks->locals = locals;
	checks->has_address[0] = checks->has_address[1] = false;
	for (size_t i = 0; i < locals.n; i++) {
		const unsigned char *byte = locals.list[i].address.byte;
		bool of_link = byte[0] == 0xfe && (byte[1] & 0xc0) == 0x80; /* fe80::/10 */

		if (!locals.list[i].loopback && !of_link)
			checks->has_address[addr_is_v4(&locals.list[i].address)] = true;
	}
}

/* What is sent to an address of this host never leaves it. */
static bool stays_here(struct checks *checks, const struct target *target, uint64_t kept)
{
	const struct model_local wanted = {.address = target->endpoints[target->at].address};

	if (target->health->via == MODEL_VIA_DIRECT || target->health->type == MODEL_CHECK_EXEC)
		return false;
	look_at_addresses(checks, kept);
	return checks->locals.n && bsearch(&wanted, checks->locals.list, checks->locals.n, sizeof(wanted), by_address);
}

static const char *no_source(struct checks *checks, bool v4)
{
	look_at_addresses(checks, ADDRESSES_KEPT);
	if (checks->has_address[v4])
		return v4 ? "no IPv4 route leads to the service's address, so no source is chosen: add one, such as a "
			    "default"
			  : "no IPv6 route leads to the service's address, so no source is chosen: add one, such as a "
			    "default";
	return v4 ? "this host has no IPv4 address to ask from" : "this host has no IPv6 address to ask from";
}

/* The source: the host's towards the backend, or of the other family towards the service.  NULL, or why not. */
static const char *find_source(struct checks *checks, const struct target *target, const struct engine_way *way,
			       struct check_request *request)
{
	bool v4 = addr_is_v4(&request->address);

	if (!addr_is_unspecified(&way->source) && addr_is_v4(&way->source) == v4)
		request->source = way->source;
	else if (check_source(&request->address, &request->source))
		return no_source(checks, v4);
	/* The backend has that address itself: its answer would not leave it. */
	if (is_endpoint(target, &request->source))
		return "this host would ask from the service's address: give it another, or use check-via: direct";
	return NULL;
}

/* NULL, or why it cannot be asked. */
static const char *make_request(struct checks *checks, struct target *target, struct check_request *request)
{
	const struct endpoint *endpoint = &target->endpoints[target->at];
	struct probe *probe;
	const char *why = NULL;
	struct engine_way way;

	*request = (struct check_request){
		.health = target->health,
		.address = endpoint->address,
		.port = endpoint->port,
		.hooks_dir = checks->daemon->options->hooks_dir,
		.pool = target->pool,
		.backend = target->backend,
	};
	if (!engine_backend_way(checks->daemon->engine, target->pool, target->backend, &way))
		return way_unknown;
	if (target->health->type == MODEL_CHECK_HTTPS) {
		request->trust = trusts_find(checks->trusts, target->health, &why);
		if (!request->trust)
			return why;
	}
	if (target->health->via == MODEL_VIA_DIRECT || target->health->type == MODEL_CHECK_EXEC)
		return NULL;
	if (stays_here(checks, target, ADDRESSES_KEPT))
		return way_local;
	probe = checks_probe(checks);
	if (!probe)
		return "there is no way for checks down the data path: see the problems of `shuntctl status`";
	if (!probe_has(probe, addr_is_v4(&endpoint->address)))
		return "this host has no such address family";
	request->mark = probe_mark(probe, way.id);
	probe_set_size(probe, way.id, (uint16_t)target->health->packet_size);
	return find_source(checks, target, &way, request);
}

static void ended(struct checks *checks, struct target *target, bool passed)
{
	char address[ADDR_TEXT_MAX];
	const struct endpoint *endpoint = &target->endpoints[target->at];

	/* One that the host has since the check began. */
	if (!passed && stays_here(checks, target, ADDRESSES_DOUBTED)) {
		unable(checks, target, way_local);
		return;
	}
	target->unable = false;
	target->n_unable = 0;
	target->ended = checks_now();
	*target->why = '\0';
	if (!passed && target->n_endpoints > 1)
		snprintf(target->why, sizeof(target->why), "%s: %.70s",
			 addr_port_format(&endpoint->address, endpoint->port, address), target->check.why);
	else if (!passed)
		snprintf(target->why, sizeof(target->why), "%s", target->check.why);
	checks->n_rounds++;
	next_round(checks, target);
	checks_take(checks, target, passed);
}

/* Ask endpoint after endpoint, until one has to be waited for. */
static void ask(struct checks *checks, struct target *target)
{
	struct epoll_event event = {.data.ptr = target};
	enum check_verdict verdict = CHECK_PASSED;
	struct check_request request;

	for (; target->at < target->n_endpoints; target->at++) {
		const char *why = make_request(checks, target, &request);

		if (why) {
			unable(checks, target, why);
			return;
		}
		verdict = check_start(&target->check, &request);
		if (verdict != CHECK_PASSED)
			break;
	}
	if (verdict == CHECK_UNABLE) {
		unable(checks, target, target->check.why);
		return;
	}
	if (verdict != CHECK_RUNNING) {
		target->at -= target->at == target->n_endpoints;
		ended(checks, target, verdict == CHECK_PASSED);
		return;
	}
	checks->n_running++;
	event.events = target->check.events;
	epoll_ctl(checks->epoll, EPOLL_CTL_ADD, target->check.fd, &event);
	set_due(checks, target, target->started + target->health->timeout);
}

static void step(struct checks *checks, struct target *target)
{
	struct epoll_event event = {.data.ptr = target};
	uint32_t waited_for = target->check.events;
	enum check_verdict verdict = check_step(&target->check);

	if (verdict == CHECK_RUNNING) {
		event.events = target->check.events;
		if (waited_for != target->check.events)
			epoll_ctl(checks->epoll, EPOLL_CTL_MOD, target->check.fd, &event);
		return;
	}
	checks_forget(checks, target);
	if (verdict == CHECK_PASSED && target->at + 1 < target->n_endpoints) {
		target->at++;
		ask(checks, target);
		return;
	}
	ended(checks, target, verdict == CHECK_PASSED);
}

static void give_up(struct checks *checks, struct target *target)
{
	char text[DURATION_TEXT_MAX];
	const char *lacks = check_lacks(&target->check);

	checks_forget(checks, target);
	snprintf(target->check.why, sizeof(target->check.why), "%s within %s", lacks,
		 duration_format(target->health->timeout, text));
	ended(checks, target, false);
}

int checks_on_events(sd_event_source *source, int fd, uint32_t revents, void *arg)
{
	struct checks *checks = arg;
	struct epoll_event events[EVENTS];
	int n = epoll_wait(fd, events, EVENTS, 0);
	uint64_t began = checks_now();

	(void)source;
	(void)revents;
	for (int i = 0; i < n; i++) {
		struct target *target = events[i].data.ptr;

		if (target->check.fd >= 0)
			step(checks, target);
		if (checks_now() - began > SLICE)
			break; /* what is left is told again */
	}
	arm(checks);
	return 0;
}

int checks_on_due(sd_event_source *source, uint64_t usec, void *arg)
{
	struct checks *checks = arg;
	uint64_t now = checks_now();

	(void)source;
	(void)usec;
	for (int i = 0; i < STARTS && checks->n_targets && checks->heap[0]->due <= now; i++) {
		struct target *target = checks->heap[0];

		if (target->check.fd >= 0) {
			give_up(checks, target);
		} else if (checks->n_running >= checks->at_once) {
			set_due(checks, target, now + FULL_DELAY);
		} else {
			target->started = now;
			target->at = 0;
			ask(checks, target);
		}
	}
	arm(checks);
	return 0;
}
