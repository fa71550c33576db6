/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What checks say to a server, and how they take its answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "check_internal.h"

#define ANSWER_MAX 65536u /* bytes in which a match is looked for */
#define DNS_MAX 512	  /* bytes of a query (RFC 1035, 4.2.1) */
#define DNS_HEADER 12
#define LABEL_MAX 63u

/* ---- requests ---- */

static int http_request(const struct model_health *health, char *out, size_t size)
{
	return snprintf(out, size,
			"GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: shunt-check\r\nAccept: */*\r\n"
			"Connection: close\r\n\r\n",
			health->path ? health->path : "/", health->host ? health->host : "shunt-check");
}

/* A query for the name's address (RFC 1035, 4.1).  Its length, or -1 where the name cannot be one. */
static int dns_request(struct check *check, unsigned char out[static DNS_MAX])
{
	static const unsigned char rest[] = {0, 0, 1, 0, 1}; /* root, type A, class IN */
	const char *label = check->health->query;
	size_t at = DNS_HEADER;

	if (getrandom(&check->id, sizeof(check->id), GRND_NONBLOCK) != sizeof(check->id))
		return -1;
	memset(out, 0, DNS_HEADER);
	out[0] = (unsigned char)(check->id >> 8);
	out[1] = (unsigned char)check->id;
	out[2] = 1; /* recursion desired */
	out[5] = 1; /* one question */
	while (*label) {
		size_t length = strcspn(label, ".");

		if (!length || length > LABEL_MAX || at + length + 6 > 255 + DNS_HEADER)
			return -1;
		out[at++] = (unsigned char)length;
		memcpy(out + at, label, length);
		at += length;
		label += length + (label[length] == '.');
	}
	memcpy(out + at, rest, sizeof(rest));
	return (int)(at + sizeof(rest));
}

enum check_verdict check_say(struct check *check)
{
	char text[3 * MODEL_HEALTH_TEXT_MAX];
	const struct model_health *health = check->health;
	ssize_t sent;
	int length;

	switch (health->type) {
	case MODEL_CHECK_HTTP:
	case MODEL_CHECK_HTTPS:
		length = http_request(health, text, sizeof(text));
		break;
	case MODEL_CHECK_DNS:
		length = dns_request(check, (unsigned char *)text);
		break;
	default:
		length = snprintf(text, sizeof(text), "%s", health->send);
	}
	if (length < 0)
		return check_fail(check, "cannot ask for the name %.60s", health->query);
	if (check->tls)
		sent = check_tls_send(check, text, (size_t)length);
	else
		sent = send(check->fd, text, (size_t)length, MSG_NOSIGNAL);
	if (sent != length)
		return check_fail(check, "cannot send: %s", strerror(errno));
	check->sent = true;
	check->events = EPOLLIN;
	return CHECK_RUNNING;
}

/* ---- answers ---- */

static bool matches(const struct check *check, size_t from)
{
	const char *match = check->health->match;

	return !match || memmem(check->answer + from, check->length - from, match, strlen(match));
}

static enum check_verdict judge_http(struct check *check, bool ended)
{
	const struct model_health *health = check->health;
	unsigned int minor, status;
	const char *body;

	if (check->length < 12 || !memchr(check->answer, '\n', check->length))
		return ended ? check_fail(check, "ended without an HTTP answer") : CHECK_RUNNING;
	if (sscanf(check->answer, "HTTP/1.%1u %3u", &minor, &status) != 2)
		return check_fail(check, "the answer is no HTTP");
	if (status < health->status_first || status > health->status_last)
		return check_fail(check, "HTTP status %u", status);
	body = strstr(check->answer, "\r\n\r\n");
	if (!health->match || (body && matches(check, (size_t)(body - check->answer) + 4)))
		return CHECK_PASSED;
	if (ended)
		return check_fail(check, "HTTP status %u, but \"%.40s\" is not in the body", status, health->match);
	return CHECK_RUNNING;
}

static enum check_verdict judge_dns(struct check *check)
{
	const unsigned char *header = (const unsigned char *)check->answer;

	/* Somebody else's answer, to an earlier query or forged. */
	if (check->length < DNS_HEADER || (header[0] << 8 | header[1]) != check->id || !(header[2] & 0x80))
		return CHECK_RUNNING;
	if (header[3] & 0xf)
		return check_fail(check, "DNS answer code %d", header[3] & 0xf);
	if (!header[6] && !header[7])
		return check_fail(check, "the DNS answer is empty");
	return CHECK_PASSED;
}

static enum check_verdict judge_datagram(struct check *check)
{
	enum check_verdict verdict;

	if (check->health->type == MODEL_CHECK_DNS)
		verdict = judge_dns(check);
	else
		verdict = matches(check, 0) ? CHECK_PASSED
					    : check_fail(check, "\"%.40s\" is not in the answer", check->health->match);
	check->length = 0;
	return verdict;
}

/* Bytes; 0: the end; -errno. */
static ssize_t receive(struct check *check)
{
	char *to = check->answer + check->length;
	size_t room = ANSWER_MAX - check->length;
	ssize_t got;

	if (check->tls)
		return check_tls_receive(check, to, room);
	got = recv(check->fd, to, room, 0);
	return got < 0 ? -errno : got;
}

enum check_verdict check_hear(struct check *check)
{
	enum check_verdict verdict;
	ssize_t got;

	if (!check->answer)
		check->answer = malloc(ANSWER_MAX + 1);
	if (!check->answer)
		return check_fail(check, "out of memory");
	do {
		got = receive(check);
		if (got == -EAGAIN)
			return CHECK_RUNNING;
		if (got < 0)
			return *check->why ? CHECK_FAILED : check_fail(check, "%s", strerror((int)-got));
		check->length += (size_t)got;
		check->answer[check->length] = '\0';
		verdict = model_check_speaks_http(check->health->type)
				  ? judge_http(check, !got || check->length == ANSWER_MAX)
				  : judge_datagram(check);
	} while (verdict == CHECK_RUNNING && check->tls && check_tls_has_more(check->tls));
	return verdict;
}
