/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One health check, from its start to its verdict, without blocking: the caller waits for the descriptor's events and
 * keeps the time.
 */
#ifndef SHUNT_CHECK_H
#define SHUNT_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <shunt/types.h>

#include "model_health.h"
#include "trust.h"

/* CHECK_UNABLE: this host could not ask, which says nothing about the backend; check_start() alone ends so. */
enum check_verdict { CHECK_RUNNING, CHECK_PASSED, CHECK_FAILED, CHECK_UNABLE };

struct check_request {
	const struct model_health *health; /* lives as long as the check */
	union shunt_address address;	   /* of the service; direct: of the backend */
	uint16_t port;
	uint32_t mark;		    /* of the socket; 0: none */
	union shunt_address source; /* to send from; unspecified: as the system has it */
	struct trust *trust;	    /* for https; the check takes a reference */
	/* For hooks, which see them as SHUNT_POOL, SHUNT_BACKEND, SHUNT_ADDRESS, SHUNT_PORT. */
	const char *hooks_dir, *pool, *backend;
};

#define CHECK_WHY_MAX 120

struct check {
	int fd;		 /* to wait for; -1 when it does not run */
	uint32_t events; /* EPOLLIN or EPOLLOUT */
	const struct model_health *health;
	bool connected, sent;
	struct check_tls *tls;	 /* of https, or NULL */
	uint16_t id;		 /* of a DNS query */
	pid_t child;		 /* of a hook, its process group too */
	char *answer;		 /* what came so far, ended by NUL */
	size_t length;		 /* of it */
	char why[CHECK_WHY_MAX]; /* it failed, or could not be made */
};

/* What fails at once is CHECK_FAILED, or CHECK_UNABLE. */
enum check_verdict check_start(struct check *check, const struct check_request *request);

/* After an event.  Whatever the verdict, the descriptor stays until check_stop(). */
enum check_verdict check_step(struct check *check);

/* What is waited for while it runs, which a check that is given up lacked. */
const char *check_lacks(const struct check *check);

/* Ends it, if it runs; `why` stays. */
void check_stop(struct check *check);

/* The address that this host would send from towards another one.  0 or -errno. */
int check_source(const union shunt_address *towards, union shunt_address *out);

#endif
