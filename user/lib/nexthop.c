/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "nexthop.h"
#include "nexthop_message.h"
#include "rtnetlink.h"

#define BATCH 64u	  /* requests in one message: their answers fit a default socket buffer */
#define KEEPS_A_TICK 100u /* neighbours resolved at once: each may cost the network a broadcast */
#define TICK_MS 50u
#define REST 10u /* after work that took 1 ms: 10 ms, so that endless route changes cost little */
#define REST_MAX_MS 2000u
#define READS 64u		/* of events, before others of the owner's loop have a turn */
#define SETTLE_MS 30u		/* after the first event of a burst */
#define BUFFER (32u << 10)	/* what the kernel puts in one read */
#define EVENT_BUFFER (4u << 20) /* bytes of events that may wait */
#define PREFIXES 64u		/* changed routes remembered one by one; more: look up all */

struct request {
	enum nexthop_question question;
	uint32_t ifindex;
	union shunt_address address;
	bool answered;
};

struct nexthop {
	struct nexthop_table *table;
	struct mnl_socket *events, *requests;
	struct shunt_prefix prefixes[PREFIXES]; /* where routes changed since the last work */
	unsigned int n_prefixes;
	bool congested;	    /* events were lost, and until the socket is empty others may be without a word */
	bool lost;	    /* answers or events: look everything up again */
	bool links_lost;    /* dump them */
	uint64_t news;	    /* when the first event came that asks for work, 0: none waiting */
	uint64_t rest;	    /* when news may be worked on again */
	uint64_t next_tick; /* neighbours may be asked for from then on */
	uint32_t sequence;
	struct request batch[BATCH];
	char buffer[BUFFER];
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- events ---- */

static void news(struct nexthop *nexthop)
{
	if (!nexthop->news)
		nexthop->news = now_ms();
}

static void routes_changed(struct nexthop *nexthop, const struct shunt_prefix *prefix)
{
	if (nexthop->n_prefixes == PREFIXES) {
		nexthop->n_prefixes = 1;
		nexthop->prefixes[0] = (struct shunt_prefix){};
	} else {
		nexthop->prefixes[nexthop->n_prefixes++] = *prefix;
	}
	news(nexthop);
}

static int on_message(const struct nlmsghdr *message, void *arg)
{
	struct nexthop *nexthop = arg;
	struct nexthop_neighbour neighbour;
	struct nexthop_link link;
	struct shunt_prefix prefix = {};

	switch (message->nlmsg_type) {
	case RTM_NEWLINK:
	case RTM_DELLINK:
		if (nexthop_message_link(message, &link))
			break;
		if (message->nlmsg_type == RTM_DELLINK)
			nexthop_table_link_gone(nexthop->table, link.ifindex);
		else if (nexthop_table_link(nexthop->table, &link))
			nexthop->links_lost = true;
		news(nexthop);
		break;
	case RTM_NEWNEIGH:
	case RTM_DELNEIGH:
		if (!nexthop_message_neighbour(message, &neighbour))
			nexthop_table_neighbour(nexthop->table, &neighbour);
		break;
	case RTM_NEWROUTE:
	case RTM_DELROUTE:
		if (nexthop_message_announces(message))
			break;
		nexthop_message_prefix(message, &prefix);
		routes_changed(nexthop, &prefix);
		break;
	default: /* addresses, rules, next-hop objects */
		routes_changed(nexthop, &prefix);
	}
	return MNL_CB_OK;
}

/* The work itself comes later, so that a lasting shortage does not make it a loop. */
static void events_lost(struct nexthop *nexthop)
{
	nexthop->lost = true;
	news(nexthop);
}

int nexthop_receive(struct nexthop *nexthop)
{
	for (unsigned int i = 0; i < READS; i++) {
		ssize_t size = recv(nexthop_fd(nexthop), nexthop->buffer, sizeof(nexthop->buffer), MSG_DONTWAIT);

		if (size < 0 && errno == ENOBUFS) {
			nexthop->congested = true;
			events_lost(nexthop);
		} else if (size < 0 && errno == EAGAIN) {
			nexthop->congested = false;
			return 0;
		} else if (size < 0 && errno != EINTR) {
			return -errno;
		} else if (size > 0) {
			mnl_cb_run(nexthop->buffer, (size_t)size, 0, 0, on_message, nexthop);
		}
	}
	return 0;
}

/* ---- requests ---- */

static void answer(struct nexthop *nexthop, struct request *request, const struct nlmsghdr *message, int error)
{
	struct nexthop_neighbour neighbour = {.ifindex = request->ifindex, .address = request->address};
	struct nexthop_route route = {.error = error};

	request->answered = true;
	switch (request->question) {
	case NEXTHOP_ROUTE:
		if (!error && nexthop_message_route(message, &route))
			route.error = -ENETUNREACH;
		if (nexthop_table_route(nexthop->table, &request->address, &route))
			events_lost(nexthop); /* out of memory */
		break;
	case NEXTHOP_GET:
		if (error || !nexthop_message_neighbour(message, &neighbour))
			nexthop_table_neighbour(nexthop->table, &neighbour);
		break;
	case NEXTHOP_CREATE:
	case NEXTHOP_KEEP:
		if (error)
			nexthop_table_refused(nexthop->table, request->ifindex, &request->address, error);
		break;
	default:
		break;
	}
}

static unsigned int read_answers(struct nexthop *nexthop, uint32_t first, unsigned int count)
{
	unsigned int answered = 0;

	while (answered < count) {
		ssize_t size = recv(mnl_socket_get_fd(nexthop->requests), nexthop->buffer, BUFFER, MSG_DONTWAIT);
		const struct nlmsghdr *message = (const void *)nexthop->buffer;
		int left = (int)size;

		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0)
			break;
		for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
			const struct nlmsgerr *failure = mnl_nlmsg_get_payload(message);
			uint32_t index = message->nlmsg_seq - first;

			if (index >= count || nexthop->batch[index].answered)
				continue;
			answer(nexthop, &nexthop->batch[index], message,
			       message->nlmsg_type == NLMSG_ERROR ? failure->error : 0);
			answered++;
		}
	}
	return answered;
}

/*
 * Send up to BATCH questions and read their answers, which are there when sendto() returns: the kernel works on
 * requests in the sender's context.  Returns how many questions there were, or -errno.
 */
static int ask_batch(struct nexthop *nexthop, unsigned int *keep_limit)
{
	char buffer[BATCH * NEXTHOP_MESSAGE_MAX] __attribute__((aligned(8)));
	uint32_t first = nexthop->sequence;
	unsigned int count = 0;
	size_t size = 0;

	while (count < BATCH) {
		struct request *request = &nexthop->batch[count];
		struct nlmsghdr *message;

		*request = (struct request){};
		request->question = nexthop_table_question(nexthop->table, now_ms(), keep_limit, &request->ifindex,
							   &request->address);
		if (request->question == NEXTHOP_NOTHING)
			break;
		message = nexthop_message_ask(buffer + size, request->question, request->ifindex, &request->address);
		message->nlmsg_seq = first + count++;
		size += MNL_ALIGN(message->nlmsg_len);
	}
	if (!count)
		return 0;
	nexthop->sequence += count;
	if (mnl_socket_sendto(nexthop->requests, buffer, size) < 0)
		return -errno;
	if (read_answers(nexthop, first, count) < count)
		events_lost(nexthop);
	return (int)count;
}

static int on_dumped(const struct nlmsghdr *message, void *arg)
{
	struct nexthop *nexthop = arg;
	struct nexthop_link link;

	if (!nexthop_message_link(message, &link) && nexthop_table_link(nexthop->table, &link))
		return MNL_CB_ERROR;
	return MNL_CB_OK;
}

static int dump_links(struct nexthop *nexthop)
{
	struct nlmsghdr *message = nexthop_message_dump_links(nexthop->buffer);
	uint32_t sequence = message->nlmsg_seq = nexthop->sequence++;
	unsigned int port = mnl_socket_get_portid(nexthop->requests);
	int ret = MNL_CB_OK;

	if (mnl_socket_sendto(nexthop->requests, message, message->nlmsg_len) < 0)
		return -errno;
	while (ret > MNL_CB_STOP) {
		ssize_t size = mnl_socket_recvfrom(nexthop->requests, nexthop->buffer, BUFFER);

		if (size < 0)
			return -errno;
		ret = mnl_cb_run(nexthop->buffer, (size_t)size, sequence, port, on_dumped, nexthop);
	}
	if (ret < 0)
		return -errno;
	nexthop_table_links_done(nexthop->table);
	nexthop->links_lost = false;
	return 0;
}

/* ---- what the owner calls ---- */

static int milliseconds_until(uint64_t time, uint64_t now)
{
	return time <= now ? 0 : time - now > 60000 ? 60000 : (int)(time - now);
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t news_due(const struct nexthop *nexthop)
{
	return nexthop->news && !nexthop->congested ? later(nexthop->news + SETTLE_MS, nexthop->rest) : UINT64_MAX;
}

int nexthop_wait(const struct nexthop *nexthop)
{
	uint64_t due = later(nexthop_table_due(nexthop->table), nexthop->next_tick), news = news_due(nexthop);

	due = news < due ? news : due;
	return due == UINT64_MAX ? -1 : milliseconds_until(due, now_ms());
}

/* What events said: which routes to ask for again, or that some were lost. */
static int digest_news(struct nexthop *nexthop)
{
	nexthop->news = 0;
	for (unsigned int i = 0; i < nexthop->n_prefixes; i++)
		nexthop_table_routes_changed(nexthop->table, &nexthop->prefixes[i]);
	nexthop->n_prefixes = 0;
	if (nexthop->lost) {
		nexthop->lost = false;
		nexthop->links_lost = true;
		nexthop_table_reset(nexthop->table);
	}
	return nexthop->links_lost ? dump_links(nexthop) : 0;
}

int nexthop_work(struct nexthop *nexthop)
{
	uint64_t now = now_ms(), took;
	unsigned int keeps = now < nexthop->next_tick ? 0 : KEEPS_A_TICK, had = keeps;
	bool news = news_due(nexthop) <= now;
	int ret = news ? digest_news(nexthop) : 0;

	if (!ret) {
		/* Answers bring further questions: a route, its neighbour. */
		do {
			ret = ask_batch(nexthop, &keeps);
		} while (ret > 0);
	}
	if (keeps < had)
		nexthop->next_tick = now + TICK_MS;
	if (news) {
		took = REST * (now_ms() - now);
		nexthop->rest = now_ms() + (took < REST_MAX_MS ? took : REST_MAX_MS);
	}
	return ret < 0 ? ret : 0;
}

int nexthop_watch(struct nexthop *nexthop, const union shunt_address *addresses, size_t count)
{
	return nexthop_table_watch(nexthop->table, addresses, count);
}

bool nexthop_changed(struct nexthop *nexthop, union shunt_address *address, struct engine_nexthop *out)
{
	return nexthop_table_changed(nexthop->table, address, out);
}

size_t nexthop_pending(const struct nexthop *nexthop)
{
	return nexthop_table_pending(nexthop->table);
}

int nexthop_fd(const struct nexthop *nexthop)
{
	return mnl_socket_get_fd(nexthop->events);
}

static int subscribe(struct mnl_socket *events)
{
	static const int groups[] = {
		RTNLGRP_LINK,	    RTNLGRP_NEIGH,     RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
		RTNLGRP_IPV6_ROUTE, RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE,   RTNLGRP_NEXTHOP,
	};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		int group = groups[i];

		if (mnl_socket_setsockopt(events, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0)
			return -errno;
	}
	return 0;
}

static int open_sockets(struct nexthop *nexthop)
{
	int size = EVENT_BUFFER, ret = rtnetlink_open(&nexthop->events);

	ret = ret ? ret : rtnetlink_open(&nexthop->requests);
	if (ret)
		return ret;
	/* Without CAP_NET_ADMIN the kernel's limit holds; a buffer that overflows only costs a new dump. */
	if (setsockopt(nexthop_fd(nexthop), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(nexthop_fd(nexthop), SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	ret = subscribe(nexthop->events);
	return ret ? ret : dump_links(nexthop);
}

int nexthop_open(struct nexthop **out, struct report *report)
{
	struct nexthop *nexthop = calloc(1, sizeof(*nexthop));
	int ret;

	if (!nexthop)
		return -ENOMEM;
	nexthop->sequence = 1;
	ret = nexthop_table_new(&nexthop->table);
	ret = ret ? ret : open_sockets(nexthop);
	if (ret) {
		nexthop_close(nexthop);
		return report_error(report, ret, "cannot follow routes and neighbours over netlink: %s",
				    strerror(-ret));
	}
	*out = nexthop;
	return 0;
}

void nexthop_close(struct nexthop *nexthop)
{
	if (!nexthop)
		return;
	if (nexthop->events)
		mnl_socket_close(nexthop->events);
	if (nexthop->requests)
		mnl_socket_close(nexthop->requests);
	nexthop_table_free(nexthop->table);
	free(nexthop);
}
