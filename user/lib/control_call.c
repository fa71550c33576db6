/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "control.h"

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Let the next connect, send or receive take what is left until the deadline.  -ETIMEDOUT if nothing is. */
static int arm(int fd, int option, int64_t deadline)
{
	int64_t left = deadline - now_ms();
	struct timeval timeout = {left / 1000, left % 1000 * 1000};

	if (left <= 0)
		return -ETIMEDOUT;
	return setsockopt(fd, SOL_SOCKET, option, &timeout, sizeof(timeout)) ? -errno : 0;
}

/* -ENOTCONN where nobody listens; a full backlog of a daemon that hangs ends as -ETIMEDOUT. */
static int connect_to(int fd, const char *path, int64_t deadline)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	do {
		err = arm(fd, SO_SNDTIMEO, deadline);
		if (err)
			return err;
		if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
			return 0;
	} while (errno == EINTR);
	switch (errno) {
	case ENOENT:
	case ECONNREFUSED:
		return -ENOTCONN;
	case EAGAIN:
		return -ETIMEDOUT;
	case EPERM:
		return -EACCES;
	default:
		return -errno;
	}
}

/* A peer that closes early may have said why: that is no failure here, the reply is read next. */
static int send_all(int fd, const char *bytes, size_t length, int64_t deadline)
{
	while (length) {
		int err = arm(fd, SO_SNDTIMEO, deadline);
		ssize_t n;

		if (err)
			return err;
		n = send(fd, bytes, length, MSG_NOSIGNAL);
		if (n > 0) {
			bytes += n;
			length -= (size_t)n;
		} else if (errno == EPIPE || errno == ECONNRESET) {
			return 0;
		} else if (errno == EAGAIN) {
			return -ETIMEDOUT;
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

static int receive_one(int fd, struct control_decoder *decoder, int64_t deadline, json_t **reply,
		       char why[static CONTROL_WHY_MAX])
{
	char bytes[1 << 14];

	for (;;) {
		int err = control_decoder_next(decoder, reply, why);
		ssize_t n;

		if (err)
			return err > 0 ? 0 : err;
		err = arm(fd, SO_RCVTIMEO, deadline);
		if (err)
			return err;
		n = recv(fd, bytes, sizeof(bytes), 0);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		err = control_decoder_feed(decoder, bytes, (size_t)n);
		if (err)
			return err;
	}
}

static int transact(int fd, const char *path, const char *text, size_t length, int64_t deadline, json_t **reply,
		    char why[static CONTROL_WHY_MAX])
{
	struct control_decoder decoder;
	int err = connect_to(fd, path, deadline);

	if (err)
		return err;
	err = send_all(fd, text, length, deadline);
	if (err)
		return err;
	control_decoder_init(&decoder, CONTROL_REPLY_MAX);
	err = receive_one(fd, &decoder, deadline, reply, why);
	control_decoder_free(&decoder);
	if (err == -EMSGSIZE)
		strcpy(why, "longer than any reply can be");
	return err == -EBADMSG || err == -EMSGSIZE ? -EPROTO : err;
}

static int explain(struct report *report, int err, const char *path, unsigned int timeout_ms, const char *why)
{
	switch (err) {
	case 0:
		return 0;
	case -ENOTCONN:
		return report_error(report, err,
				    "no shuntd listens on %s: start it, or name another instance with --instance",
				    path);
	case -EACCES:
		return report_error(report, err, "%s may not be opened by this user: run as root", path);
	case -ETIMEDOUT:
		return report_error(report, err,
				    "shuntd does not answer on %s within %g s: it hangs or is very busy; see its log",
				    path, timeout_ms / 1e3);
	case -ECONNRESET:
		return report_error(report, err, "shuntd closed %s without an answer: see its log", path);
	case -EPROTO:
		return report_error(report, err, "what answers on %s is no shuntd that this program understands: %s",
				    path, why);
	default:
		return report_error(report, err, "cannot talk to shuntd on %s: %s", path, strerror(-err));
	}
}

int control_call(const char *path, const json_t *request, unsigned int timeout_ms, json_t **reply,
		 struct report *report)
{
	int64_t deadline = now_ms() + timeout_ms;
	char why[CONTROL_WHY_MAX] = "";
	size_t length = 0;
	char *text;
	int fd, err;

	err = control_encode(request, CONTROL_ADMIN_REQUEST_MAX, &text, &length);
	if (err == -EMSGSIZE)
		return report_error(report, err, "the request is longer than %u bytes", CONTROL_ADMIN_REQUEST_MAX);
	if (err)
		return report_error(report, err, "cannot make the request: %s", strerror(-err));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	err = fd < 0 ? -errno : transact(fd, path, text, length, deadline, reply, why);
	if (fd >= 0)
		close(fd);
	free(text);
	return explain(report, err, path, timeout_ms, why);
}
