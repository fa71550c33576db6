/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "addr.h"
#include "check_internal.h"
#include "hook.h"

enum check_verdict check_end(struct check *check, enum check_verdict verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(check->why, sizeof(check->why), format, args);
	va_end(args);
	return verdict;
}

/* ---- sockets ---- */

static socklen_t to_sockaddr(const union shunt_address *address, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	*out = (struct sockaddr_storage){};
	if (addr_is_v4(address)) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, address->byte + 12, sizeof(v4->sin_addr));
		return sizeof(*v4);
	}
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, address, sizeof(v6->sin6_addr));
	return sizeof(*v6);
}

int check_source(const union shunt_address *towards, union shunt_address *out)
{
	struct sockaddr_storage name;
	socklen_t length = to_sockaddr(towards, 9, &name);
	int fd = socket(name.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&name, length) || getsockname(fd, (struct sockaddr *)&name, &length))
		ret = -errno;
	close(fd);
	if (ret)
		return ret;
	*out = (union shunt_address){.byte = {[10] = 0xff, [11] = 0xff}};
	if (name.ss_family == AF_INET)
		memcpy(out->byte + 12, &((struct sockaddr_in *)&name)->sin_addr, 4);
	else
		memcpy(out, &((struct sockaddr_in6 *)&name)->sin6_addr, sizeof(*out));
	return 0;
}

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

static int bind_source(int fd, const union shunt_address *source)
{
	struct sockaddr_storage name;
	socklen_t length = to_sockaddr(source, 0, &name);

	/* So that a port is chosen at connect(), where the same one can go to many destinations. */
	set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	return bind(fd, (struct sockaddr *)&name, length) ? -errno : 0;
}

/* A connection that is let go leaves nothing behind on either side; datagrams are never cut into pieces. */
static int prepare(int fd, bool stream, const struct check_request *request)
{
	const struct linger reset = {.l_onoff = 1};
	int ret = request->mark ? set(fd, SOL_SOCKET, SO_MARK, (int)request->mark) : 0;

	if (!ret && stream && setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)))
		ret = -errno;
	if (!ret && !stream && addr_is_v4(&request->address))
		ret = set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
	if (!ret && !addr_is_unspecified(&request->source))
		ret = bind_source(fd, &request->source);
	return ret;
}

static enum check_verdict start_socket(struct check *check, const struct check_request *request)
{
	bool stream = model_check_streams(request->health->type);
	struct sockaddr_storage name;
	socklen_t length = to_sockaddr(&request->address, request->port, &name);
	int ret;

	if (request->trust && check_tls_new(check, request->trust))
		return check_unable(check, "out of memory");
	check->fd = socket(name.ss_family, (stream ? SOCK_STREAM : SOCK_DGRAM) | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (check->fd < 0)
		return check_unable(check, "no socket: %s", strerror(errno));
	ret = prepare(check->fd, stream, request);
	if (!ret && connect(check->fd, (struct sockaddr *)&name, length) && errno != EINPROGRESS)
		ret = -errno;
	if (ret)
		return check_fail(check, "cannot begin: %s", strerror(-ret));
	check->events = EPOLLOUT;
	return stream ? CHECK_RUNNING : check_say(check);
}

static enum check_verdict connected(struct check *check)
{
	int error = 0;
	socklen_t length = sizeof(error);

	if (getsockopt(check->fd, SOL_SOCKET, SO_ERROR, &error, &length))
		error = errno;
	if (error)
		return check_fail(check, "%s", strerror(error));
	check->connected = true;
	if (check->health->type == MODEL_CHECK_TCP)
		return CHECK_PASSED;
	return check->tls ? check_tls_step(check) : check_say(check);
}

/* ---- what the caller sees ---- */

enum check_verdict check_start(struct check *check, const struct check_request *request)
{
	enum check_verdict verdict;

	*check = (struct check){.fd = -1, .health = request->health};
	if (request->health->type == MODEL_CHECK_EXEC)
		verdict = check_hook_start(check, request);
	else
		verdict = start_socket(check, request);
	if (verdict != CHECK_RUNNING)
		check_stop(check);
	return verdict;
}

enum check_verdict check_step(struct check *check)
{
	if (check->child)
		return check_hook_step(check);
	if (check->sent)
		return check_hear(check);
	return check->connected ? check_tls_step(check) : connected(check);
}

const char *check_lacks(const struct check *check)
{
	if (check->sent && check->length)
		return "no whole answer";
	if (check->sent && model_check_speaks_http(check->health->type))
		return "no answer to the request";
	if (!check->connected || !check->tls)
		return "no answer";
	return check_tls_heard(check->tls) ? "no end of the TLS handshake" : "no answer to the TLS handshake";
}

void check_stop(struct check *check)
{
	if (check->child) {
		hook_kill(check->child);
	}
	if (check->fd >= 0)
		close(check->fd);
	check_tls_free(check->tls);
	free(check->answer);
	check->child = 0;
	check->fd = -1;
	check->tls = NULL;
	check->answer = NULL;
}
