/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"
#include "log.h"
#include "methods.h"
#include "peer.h"
#include "server.h"

#define CLIENTS_MAX 512u
#define CLIENTS_PER_USER 64u /* of users other than root, who together leave root some */
#define CLIENTS_OF_USERS 448u
#define READ_SIZE (64u << 10)
#define IDLE_US 60000000ull /* without a byte read or written */
#define SWEEP_US 5000000ull
#define RETRY_US 1000000ull

struct client {
	TAILQ_ENTRY(client) others;
	struct server *server;
	int fd;
	struct peer peer;
	sd_event_source *io, *more; /* more: messages are waiting in the decoder */
	struct control_decoder decoder;
	char *reply;
	size_t reply_size, reply_sent;
	uint64_t active; /* microseconds, when a byte last moved */
	bool ended;	 /* nothing more will be read */
};

struct server {
	struct daemon *daemon;
	TAILQ_HEAD(client_list, client) clients;
	unsigned int n_clients, n_users;
	int fd;
	char path[CONTROL_PATH_MAX];
	sd_event_source *listener, *sweeper;
};

static unsigned int request_max(const struct peer *peer)
{
	return peer->admin ? CONTROL_ADMIN_REQUEST_MAX : CONTROL_REQUEST_MAX;
}

/* ---- clients ---- */

static void drop(struct client *client)
{
	struct server *server = client->server;

	TAILQ_REMOVE(&server->clients, client, others);
	server->n_clients--;
	server->n_users -= client->peer.uid != 0;
	sd_event_source_disable_unref(client->io);
	sd_event_source_disable_unref(client->more);
	control_decoder_free(&client->decoder);
	free(client->reply);
	close(client->fd);
	free(client);
}

/* 0: all is sent, or the socket is full; -errno: the client is gone. */
static int send_reply(struct client *client)
{
	while (client->reply_sent < client->reply_size) {
		ssize_t n = send(client->fd, client->reply + client->reply_sent,
				 client->reply_size - client->reply_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		client->reply_sent += (size_t)n;
		client->active = daemon_now();
	}
	free(client->reply);
	client->reply = NULL;
	client->reply_size = client->reply_sent = 0;
	return 0;
}

/* Takes the reference. */
static int queue_reply(struct client *client, json_t *reply)
{
	int ret = reply ? control_encode(reply, CONTROL_REPLY_MAX, &client->reply, &client->reply_size) : -ENOMEM;

	json_decref(reply);
	if (ret == -EMSGSIZE) {
		reply = control_error_reply(CONTROL_FAILED, "the reply is too long: ask for less", NULL);
		ret = reply ? control_encode(reply, CONTROL_REPLY_MAX, &client->reply, &client->reply_size) : -ENOMEM;
		json_decref(reply);
	}
	return ret ? ret : send_reply(client);
}

/* At most one message; 1: there was one. */
static int answer_one(struct client *client)
{
	char why[CONTROL_WHY_MAX];
	json_t *message = NULL, *reply;
	int ret = control_decoder_next(&client->decoder, &message, why);

	if (!ret)
		return 0;
	if (ret == -EMSGSIZE) {
		client->ended = true;
		control_decoder_free(&client->decoder);
		snprintf(why, sizeof(why), "the request has more than %u bytes", request_max(&client->peer));
	}
	if (ret < 0)
		reply = control_error_reply(CONTROL_BAD_REQUEST, why, NULL);
	else
		reply = methods_answer(client->server->daemon, message, &client->peer);
	json_decref(message);
	ret = queue_reply(client, reply);
	return ret ? ret : 1;
}

/*
 * One request a turn, so that a client with many does not keep the others waiting; nothing is read while a reply waits
 * to be sent, so that nobody can make the daemon hold more than one.
 */
static void turn(struct client *client)
{
	int ret = client->reply ? send_reply(client) : 0;

	if (!ret && !client->reply)
		ret = answer_one(client);
	if (ret < 0 || (client->ended && !client->reply && !ret)) {
		drop(client);
		return;
	}
	sd_event_source_set_io_events(client->io, (client->reply ? EPOLLOUT : 0) |
							  (!client->reply && !client->ended ? EPOLLIN : 0));
	sd_event_source_set_enabled(client->more, ret == 1 && !client->reply ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
}

static int on_more(sd_event_source *source, void *arg)
{
	(void)source;
	turn(arg);
	return 0;
}

static int on_client(sd_event_source *source, int fd, uint32_t events, void *arg)
{
	struct client *client = arg;
	char buffer[READ_SIZE];
	ssize_t n;

	(void)source;
	if ((events & EPOLLIN) && !client->ended && !client->reply) {
		n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n == 0)
			client->ended = true;
		else if (n > 0)
			client->active = daemon_now();
		if ((n < 0 && errno != EAGAIN && errno != EINTR) ||
		    (n > 0 && control_decoder_feed(&client->decoder, buffer, (size_t)n))) {
			drop(client);
			return 0;
		}
	} else if (events & (EPOLLHUP | EPOLLERR)) {
		drop(client);
		return 0;
	}
	turn(client);
	return 0;
}

static void sweep_later(struct server *server, uint64_t delay)
{
	sd_event_source_set_time_relative(server->sweeper, delay);
	sd_event_source_set_enabled(server->sweeper, SD_EVENT_ONESHOT);
}

static int on_sweep(sd_event_source *source, uint64_t usec, void *arg)
{
	struct server *server = arg;
	struct client *client, *next;

	(void)source;
	for (client = TAILQ_FIRST(&server->clients); client; client = next) {
		next = TAILQ_NEXT(client, others);
		if (client->active + IDLE_US < usec)
			drop(client);
	}
	sd_event_source_set_enabled(server->listener, SD_EVENT_ON);
	if (server->n_clients)
		sweep_later(server, SWEEP_US);
	return 0;
}

/* ---- accepting ---- */

static bool has_room(const struct server *server, uid_t uid)
{
	const struct client *client;
	unsigned int of_user = 0;

	if (server->n_clients >= CLIENTS_MAX)
		return false;
	if (uid == 0)
		return true;
	for (client = TAILQ_FIRST(&server->clients); client; client = TAILQ_NEXT(client, others))
		of_user += client->peer.uid == uid;
	return of_user < CLIENTS_PER_USER && server->n_users < CLIENTS_OF_USERS;
}

static void refuse(int fd)
{
	json_t *reply = control_error_reply(CONTROL_FAILED, "the daemon has too many clients: try again later", NULL);
	char *text;
	size_t length;

	if (reply && !control_encode(reply, CONTROL_REPLY_MAX, &text, &length)) {
		if (send(fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			log_debug("a client that was refused is gone");
		free(text);
	}
	json_decref(reply);
	close(fd);
}

static int add_client(struct server *server, int fd, const struct peer *peer)
{
	struct client *client = calloc(1, sizeof(*client));
	sd_event *event = server->daemon->event;

	if (!client)
		return -ENOMEM;
	client->server = server;
	client->fd = fd;
	client->peer = *peer;
	client->active = daemon_now();
	control_decoder_init(&client->decoder, request_max(peer));
	if (sd_event_add_io(event, &client->io, fd, EPOLLIN, on_client, client) < 0 ||
	    sd_event_add_defer(event, &client->more, on_more, client) < 0) {
		sd_event_source_disable_unref(client->io);
		free(client);
		return -ENOMEM;
	}
	sd_event_source_set_enabled(client->more, SD_EVENT_OFF);
	if (!server->n_clients)
		sweep_later(server, SWEEP_US);
	TAILQ_INSERT_TAIL(&server->clients, client, others);
	server->n_clients++;
	server->n_users += peer->uid != 0;
	return 0;
}

static int on_connect(sd_event_source *source, int listener, uint32_t events, void *arg)
{
	struct server *server = arg;
	struct peer peer;
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	(void)events;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
		/* The connection stays ready, and would be tried without end: wait for the sweeper. */
		log_warning("cannot take a client: %s", strerror(errno));
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
		sweep_later(server, RETRY_US);
	}
	if (fd < 0)
		return 0;
	if (peer_of(fd, server->daemon->options->admin_group, &peer)) {
		close(fd);
		return 0;
	}
	if (!has_room(server, peer.uid))
		refuse(fd);
	else if (add_client(server, fd, &peer))
		close(fd);
	return 0;
}

/* ---- the socket ---- */

/* Bound aside and renamed, so that the name is never a socket that nobody listens on or that only some may open. */
static int listen_at(const char *path, struct report *report)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return report_error(report, -errno, "cannot make a socket: %s", strerror(errno));
	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s~", path) >= (int)sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		goto failed;
	}
	unlink(address.sun_path);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) || chmod(address.sun_path, 0666) ||
	    listen(fd, SOMAXCONN) || rename(address.sun_path, path))
		goto failed;
	return fd;
failed:
	ret = report_error(report, -errno, "cannot listen on %s: %s", path, strerror(errno));
	close(fd);
	return ret;
}

static int add_sources(struct server *server)
{
	sd_event *event = server->daemon->event;
	int ret = sd_event_add_io(event, &server->listener, server->fd, EPOLLIN, on_connect, server);

	if (ret < 0)
		return ret;
	ret = sd_event_add_time(event, &server->sweeper, CLOCK_MONOTONIC, 0, 1000000, on_sweep, server);
	if (ret < 0)
		return ret;
	return sd_event_source_set_enabled(server->sweeper, SD_EVENT_OFF);
}

int server_open(struct daemon *daemon, struct server **out, struct report *report)
{
	struct server *server = calloc(1, sizeof(*server));
	int ret;

	if (!server)
		return report_error(report, -ENOMEM, "out of memory for the control socket");
	server->daemon = daemon;
	server->fd = -1;
	TAILQ_INIT(&server->clients);
	ret = control_path(daemon->options->instance, server->path);
	if (!ret)
		ret = server->fd = listen_at(server->path, report);
	if (ret >= 0)
		ret = add_sources(server);
	if (ret < 0) {
		server_close(server);
		return ret;
	}
	*out = server;
	return 0;
}

void server_close(struct server *server)
{
	struct client *client, *next;

	if (!server)
		return;
	for (client = TAILQ_FIRST(&server->clients); client; client = next) {
		next = TAILQ_NEXT(client, others);
		drop(client);
	}
	sd_event_source_disable_unref(server->listener);
	sd_event_source_disable_unref(server->sweeper);
	if (server->fd >= 0) {
		unlink(server->path);
		close(server->fd);
	}
	free(server);
}
