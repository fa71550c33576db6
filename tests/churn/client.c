/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * client tcp|udp COUNT SEED PORT ADDRESS...: COUNT connections over all addresses, each asking again and again and
 * checking every byte of the answers.  Half of them live as long as the program; the others end after some seconds and
 * are replaced by new ones.  Commands on standard input, each answered by one JSON object on a line:
 *
 *   count   {"open": N, "waiting": N, "connections": N, "messages": N, "lost": N, "broken": N, "by": {BACKEND: N, ...}}
 *   hold    none begins or ends from now on; the answer comes when none is being opened
 *   go      they begin and end again
 *   leave B ask those whose backend is B to end after their next message; as count
 *   stop    each connection ends after one more message; then {"connections", "messages", "lost", "silence", "broken":
 *           [[id, port, BACKEND or -1, reason, seconds since the start], ...]}, and the program ends
 *
 * Broken: reset or ended by the other side, no answer in 20 seconds, a wrong byte, or another backend's answer.  A
 * datagram without an answer is lost, which is not broken.  Silence is the longest time, in seconds, that a connection
 * sent nothing: the settle time of what is tested has to be longer.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "message.h"

#define NO_BACKEND UINT32_MAX
#define BACKENDS_MAX 1024
#define ANSWER_MS 20000
#define DATAGRAM_MS 1000
/* Pauses between an answer and the next message: the longest, or what keeps all connections together at the rate. */
#define PAUSE_MS 600
#define MESSAGES_PER_S 4000
/* A connection that ends lives so many of the longest pauses at most. */
#define LIFE_PAUSES 10
/* Of eight messages one may be of any length, the others fit one packet. */
#define PACKET_MAX 1200
#define TICK_MS 10

enum state { CLOSED, OPENING, ASKED, RESTING };

struct flow {
	enum state state;
	int fd;
	bool lasting;
	uint16_t port;
	uint32_t backend, filled;
	uint64_t id, sequence;
	int64_t spoken; /* sent something last */
	int64_t due;	/* CLOSED, RESTING: when to go on; else when patience ends */
	int64_t expiry; /* ends with the first answer after it */
	const struct addrinfo *to;
	struct message answer;
};

static struct flow *flows;
static size_t n_flows;
static int poller;
static bool udp, held, stopping;
static int64_t start, now, silence;
static uint32_t pause_ms;
static uint64_t opened, messages, lost, random_state;
static struct {
	uint64_t id;
	uint16_t port;
	uint32_t backend;
	const char *why;
	int64_t when;
} * broken;
static size_t n_broken;

static void die(const char *what)
{
	fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

static uint32_t random_below(uint32_t limit)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 33) % limit);
}

/* ---- a connection's course ---- */

static void end_flow(struct flow *flow)
{
	close(flow->fd);
	flow->fd = -1;
	flow->state = CLOSED;
	flow->due = now + random_below(200);
}

static void break_flow(struct flow *flow, const char *why)
{
	broken = realloc(broken, (n_broken + 1) * sizeof(*broken));
	if (!broken)
		die("memory");
	broken[n_broken].id = flow->id;
	broken[n_broken].port = flow->port;
	broken[n_broken].backend = flow->backend;
	broken[n_broken].why = why;
	broken[n_broken++].when = now - start;
	end_flow(flow);
}

static void open_flow(struct flow *flow)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = flow};
	struct sockaddr_in6 name;
	socklen_t size = sizeof(name);

	flow->fd = socket(flow->to->ai_family, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (flow->fd < 0)
		die("socket");
	if (connect(flow->fd, flow->to->ai_addr, flow->to->ai_addrlen) && errno != EINPROGRESS)
		die("connect");
	if (epoll_ctl(poller, EPOLL_CTL_ADD, flow->fd, &event))
		die("epoll_ctl");
	/* The port is at the same place for both families. */
	if (getsockname(flow->fd, (struct sockaddr *)&name, &size) == 0)
		flow->port = ntohs(name.sin6_port);
	flow->id = ++opened;
	flow->spoken = now;
	flow->sequence = 0;
	flow->filled = 0;
	flow->backend = NO_BACKEND;
	flow->state = OPENING;
	flow->due = now + ANSWER_MS;
	flow->expiry = flow->lasting ? INT64_MAX : now + 500 + random_below(LIFE_PAUSES * pause_ms);
}

static void ask(struct flow *flow)
{
	uint32_t longest = udp ? MESSAGE_DATAGRAM_MAX : random_below(8) ? PACKET_MAX : MESSAGE_MAX;
	struct message message = {.length = 24 + random_below(longest - 24),
				  .backend = NO_BACKEND,
				  .id = flow->id,
				  .sequence = flow->sequence};

	message_fill(&message);
	if (flow->sequence && now - flow->spoken > silence)
		silence = now - flow->spoken;
	flow->spoken = now;
	flow->filled = 0;
	flow->state = ASKED;
	flow->due = now + (udp ? DATAGRAM_MS : ANSWER_MS);
	/* A datagram's error is that of one before. */
	if (send(flow->fd, &message, message.length, MSG_NOSIGNAL) != (ssize_t)message.length && !udp)
		break_flow(flow, strerrorname_np(errno));
}

static void take_answer(struct flow *flow)
{
	const struct message *answer = &flow->answer;

	if (udp && answer->id != flow->id)
		return; /* late, to a port that is used again */
	if (!message_right(answer) || answer->id != flow->id || answer->sequence > flow->sequence) {
		break_flow(flow, "a wrong answer");
		return;
	}
	if (flow->backend != NO_BACKEND && answer->backend != flow->backend) {
		break_flow(flow, "another backend answered");
		return;
	}
	if (answer->sequence < flow->sequence) {
		if (!udp)
			break_flow(flow, "an old answer");
		return;
	}
	flow->backend = answer->backend;
	flow->sequence++;
	messages++;
	flow->state = RESTING;
	flow->due = now + random_below(pause_ms);
	if (stopping || (!held && now >= flow->expiry))
		end_flow(flow);
}

/* As much of the answer as is there. */
static void read_answer(struct flow *flow)
{
	while (flow->fd >= 0 && flow->state != OPENING) {
		uint32_t want = udp ? MESSAGE_MAX : flow->filled < 24 ? 24 : flow->answer.length;
		ssize_t n = recv(flow->fd, (char *)&flow->answer + flow->filled, want - flow->filled, 0);

		if (n < 0 && (errno == EAGAIN || errno == EINTR || udp))
			return;
		if (n <= 0 && !udp) {
			break_flow(flow, n < 0 ? strerrorname_np(errno) : "ended by the server");
			return;
		}
		flow->filled += (uint32_t)n;
		if (!udp && flow->filled >= 24 && flow->answer.length > MESSAGE_MAX) {
			break_flow(flow, "a wrong answer");
			return;
		}
		if (udp || (flow->filled >= 24 && flow->filled == flow->answer.length)) {
			flow->filled = 0;
			take_answer(flow);
		}
	}
}

static void on_event(struct flow *flow, uint32_t events)
{
	int error = 0;
	socklen_t size = sizeof(error);

	if (flow->state == OPENING && events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
		getsockopt(flow->fd, SOL_SOCKET, SO_ERROR, &error, &size);
		if (error && !udp)
			break_flow(flow, strerrorname_np(error));
		else
			ask(flow);
	}
	if (flow->fd >= 0 && events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		read_answer(flow);
}

static void on_time(struct flow *flow)
{
	if (now < flow->due)
		return;
	if (flow->state == CLOSED) {
		if (!held && !stopping)
			open_flow(flow);
	} else if (flow->state == RESTING) {
		ask(flow);
	} else if (udp) {
		lost++;
		flow->sequence++;
		if (stopping)
			end_flow(flow);
		else
			ask(flow);
	} else {
		break_flow(flow, flow->state == OPENING ? "not opened in time" : "no answer in time");
	}
}

/* ---- commands ---- */

static size_t in_state(enum state state)
{
	size_t n = 0;

	for (size_t i = 0; i < n_flows; i++)
		n += flows[i].state == state;
	return n;
}

/* Connections that have yet to hear from a backend. */
static size_t waiting(void)
{
	size_t n = 0;

	for (size_t i = 0; i < n_flows; i++)
		n += flows[i].state != CLOSED && flows[i].backend == NO_BACKEND;
	return n;
}

static void print_count(void)
{
	size_t by[BACKENDS_MAX] = {};
	const char *comma = "";

	for (size_t i = 0; i < n_flows; i++) {
		if (flows[i].state != CLOSED && flows[i].backend < BACKENDS_MAX)
			by[flows[i].backend]++;
	}
	printf("{\"open\": %zu, \"waiting\": %zu, \"connections\": %llu, \"messages\": %llu, \"lost\": %llu, "
	       "\"broken\": %zu, \"by\": {",
	       n_flows - in_state(CLOSED), waiting(), (unsigned long long)opened, (unsigned long long)messages,
	       (unsigned long long)lost, n_broken);
	for (size_t i = 0; i < BACKENDS_MAX; i++) {
		if (by[i]) {
			printf("%s\"%zu\": %zu", comma, i, by[i]);
			comma = ", ";
		}
	}
	printf("}}\n");
	fflush(stdout);
}

static void print_end(void)
{
	printf("{\"connections\": %llu, \"messages\": %llu, \"lost\": %llu, \"silence\": %.3f, \"broken\": [",
	       (unsigned long long)opened, (unsigned long long)messages, (unsigned long long)lost,
	       (double)silence / 1000);
	for (size_t i = 0; i < n_broken; i++)
		printf("%s[%llu, %u, %d, \"%s\", %.3f]", i ? ", " : "", (unsigned long long)broken[i].id,
		       broken[i].port, (int)broken[i].backend, broken[i].why, (double)broken[i].when / 1000);
	printf("]}\n");
}

static void leave(uint32_t backend)
{
	for (size_t i = 0; i < n_flows; i++) {
		if (flows[i].state != CLOSED && flows[i].backend == backend)
			flows[i].expiry = now;
	}
}

/* One command, if there is one.  Held commands wait for their condition in holding. */
static void read_command(bool *holding)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};
	char line[16];

	if (*holding) {
		if (waiting())
			return;
		*holding = false;
		print_count();
	}
	if (poll(&in, 1, 0) <= 0)
		return;
	if (!fgets(line, sizeof(line), stdin) || !strcmp(line, "stop\n")) {
		stopping = true;
	} else if (!strcmp(line, "hold\n")) {
		held = *holding = true;
	} else if (!strcmp(line, "go\n")) {
		held = false;
		print_count();
	} else if (!strncmp(line, "leave ", 6)) {
		leave((uint32_t)strtoul(line + 6, NULL, 10));
		print_count();
	} else {
		print_count();
	}
}

static struct addrinfo *resolve(const char *address, const char *port)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV}, *info;

	if (getaddrinfo(address, port, &hints, &info)) {
		fprintf(stderr, "client: %s port %s is no address\n", address, port);
		exit(2);
	}
	return info;
}

static void prepare(char **argv, int n_addresses)
{
	struct addrinfo *to[16];

	udp = !strcmp(argv[1], "udp");
	n_flows = strtoul(argv[2], NULL, 10);
	random_state = strtoull(argv[3], NULL, 10);
	pause_ms = n_flows < MESSAGES_PER_S * PAUSE_MS / 2000 ? PAUSE_MS : (uint32_t)(n_flows * 2000 / MESSAGES_PER_S);
	flows = calloc(n_flows, sizeof(*flows));
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (!flows || poller < 0 || !n_flows)
		die("start");
	setvbuf(stdin, NULL, _IONBF, 0);
	now = start = clock_ms();
	for (int i = 0; i < n_addresses; i++)
		to[i] = resolve(argv[5 + i], argv[4]);
	/* All of them within two seconds. */
	for (size_t i = 0; i < n_flows; i++)
		flows[i] = (struct flow){.fd = -1,
					 .lasting = i % 4 < 2,
					 .due = now + random_below(2000),
					 .backend = NO_BACKEND,
					 .to = to[i % n_addresses]};
}

int main(int argc, char **argv)
{
	struct rlimit files = {65536, 65536};
	struct epoll_event events[256];
	bool holding = false;

	if (argc < 6 || argc > 5 + 16) {
		fprintf(stderr, "usage: client tcp|udp COUNT SEED PORT ADDRESS...\n");
		return 2;
	}
	setrlimit(RLIMIT_NOFILE, &files);
	prepare(argv, argc - 5);
	for (int64_t tick = now; !stopping || in_state(CLOSED) < n_flows;) {
		int n = epoll_wait(poller, events, 256, TICK_MS);

		now = clock_ms();
		for (int i = 0; i < n; i++)
			on_event(events[i].data.ptr, events[i].events);
		if (now < tick)
			continue;
		tick = now + TICK_MS;
		for (size_t i = 0; i < n_flows; i++)
			on_time(&flows[i]);
		if (!stopping)
			read_command(&holding);
	}
	print_end();
	return 0;
}
