/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * server NUMBER PORT ADDRESS...: answers each message, over TCP and UDP, with its own number in it.  A message that is
 * not the next one of its connection ends it with a reset.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "message.h"

enum kind { LISTENER, DATAGRAMS, CONNECTION };

struct peer {
	enum kind kind;
	int fd;
	uint32_t filled;
	uint64_t id, sequence; /* the next */
	struct message message;
};

static uint32_t number;
static int poller;

static void die(const char *what)
{
	fprintf(stderr, "server: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct peer *watch(int fd, enum kind kind)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};

	if (!peer || fd < 0)
		die("socket");
	peer->fd = fd;
	peer->kind = kind;
	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
	return peer;
}

static void open_address(const char *address, const char *port, int type)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = type}, *info;
	int fd, one = 1;

	if (getaddrinfo(address, port, &hints, &info)) {
		fprintf(stderr, "server: %s port %s is no address\n", address, port);
		exit(2);
	}
	fd = socket(info->ai_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, info->ai_addr, info->ai_addrlen) || (type == SOCK_STREAM && listen(fd, 4096)))
		die(address);
	freeaddrinfo(info);
	watch(fd, type == SOCK_STREAM ? LISTENER : DATAGRAMS);
}

/* With a reset: the client must see that something was wrong. */
static void refuse(struct peer *peer, const char *why)
{
	struct linger now = {.l_onoff = 1};

	fprintf(stderr, "server %u: connection %llu, message %llu: %s\n", number, (unsigned long long)peer->id,
		(unsigned long long)peer->sequence, why);
	setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(peer->fd);
	free(peer);
}

/* 1: go on reading; 0: nothing more to read; -1: the peer is gone. */
static int read_message(struct peer *peer)
{
	struct message *message = &peer->message;
	uint32_t want = peer->filled < 24 ? 24 : message->length;
	ssize_t n = recv(peer->fd, (char *)message + peer->filled, want - peer->filled, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0) {
		close(peer->fd);
		free(peer);
		return -1;
	}
	peer->filled += (uint32_t)n;
	if (peer->filled == 24 && (message->length < 24 || message->length > MESSAGE_MAX)) {
		refuse(peer, "no message");
		return -1;
	}
	if (peer->filled < 24 || peer->filled < message->length)
		return 1;
	if (peer->sequence == 0)
		peer->id = message->id;
	if (!message_right(message) || message->id != peer->id || message->sequence != peer->sequence) {
		refuse(peer, "another message than the next");
		return -1;
	}
	peer->sequence++;
	peer->filled = 0;
	message->backend = number;
	if (send(peer->fd, message, message->length, MSG_NOSIGNAL) != (ssize_t)message->length) {
		refuse(peer, "the answer does not go out");
		return -1;
	}
	return 1;
}

static void answer_datagrams(int fd)
{
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);
	struct message message;
	ssize_t n;

	while ((n = recvfrom(fd, &message, sizeof(message), 0, (struct sockaddr *)&from, &size)) >= 0) {
		if (n >= 24 && message.length == (uint32_t)n && message_right(&message)) {
			message.backend = number;
			sendto(fd, &message, message.length, 0, (struct sockaddr *)&from, size);
		}
		size = sizeof(from);
	}
}

static void serve(struct peer *peer)
{
	int fd;

	if (peer->kind == DATAGRAMS) {
		answer_datagrams(peer->fd);
	} else if (peer->kind == CONNECTION) {
		while (read_message(peer) > 0)
			;
	} else {
		while ((fd = accept4(peer->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
			watch(fd, CONNECTION);
	}
}

int main(int argc, char **argv)
{
	struct rlimit files = {65536, 65536};
	struct epoll_event events[256];

	if (argc < 4) {
		fprintf(stderr, "usage: server NUMBER PORT ADDRESS...\n");
		return 2;
	}
	number = (uint32_t)strtoul(argv[1], NULL, 10);
	setrlimit(RLIMIT_NOFILE, &files);
	poller = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 3; i < argc; i++) {
		open_address(argv[i], argv[2], SOCK_STREAM);
		open_address(argv[i], argv[2], SOCK_DGRAM);
	}
	for (;;) {
		int n = epoll_wait(poller, events, 256, -1);

		for (int i = 0; i < n; i++)
			serve(events[i].data.ptr);
	}
}
