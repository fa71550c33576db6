/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of checks*.c share. */
#ifndef SHUNTD_CHECKS_H
#define SHUNTD_CHECKS_H

#include "check.h"
#include "daemon.h"
#include "health.h"
#include "probe.h"

#define CHECKS_ADDRESSES_MAX 16u /* service addresses that one round asks */

struct endpoint {
	union shunt_address address;
	uint16_t port;
};

/* This host's addresses. */
struct locals {
	struct model_local *list;
	size_t n;
};

/* A backend that is checked. */
struct target {
	char *pool, *backend;
	uint64_t identity;
	struct model_health *health;
	struct health_params params;
	struct endpoint endpoints[CHECKS_ADDRESSES_MAX];
	size_t n_endpoints, at; /* asked one after the other in each round */
	bool counts;		/* has a weight */
	bool judged;		/* and does not drain: when its pool was judged last */
	bool waits;
	struct health state;
	struct check check;
	char why[CHECK_WHY_MAX]; /* the last round failed; or it cannot be asked */
	bool unable;		 /* it cannot */
	uint32_t n_unable;	 /* rounds in a row in which it could not, although there was a way to it */
	uint64_t seed, n_rounds;
	uint64_t started, ended; /* of rounds, CLOCK_MONOTONIC in milliseconds; 0: never */
	uint64_t due;		 /* begin or, while one runs, give up */
	size_t heap_at;
	bool taken; /* while targets are compared with a new model */
};

struct checked_pool {
	char *name;
	struct health_policy policy;
	struct health_pool state;
	size_t first, n; /* of the targets */
};

/* Whom the checks of one setting believe. */
struct trusted {
	char *ca_file;	     /* NULL: any certificate */
	struct trust *trust; /* NULL: it could not be read */
	char *why;	     /* then */
};

struct trusts {
	struct trusted *list;
	size_t n;
};

struct checks {
	struct daemon *daemon;
	struct target **targets; /* by pool and name */
	size_t n_targets;
	struct checked_pool *pools;
	size_t n_pools;
	struct trusts *trusts; /* of the model in force, or NULL */
	struct probe *probe;   /* NULL: not needed, or not to be had */
	uint64_t probe_tried, asked_addresses;
	struct locals locals; /* as of then, sorted */
	bool has_address[2];  /* [v4]: one of them is not for the host or the link alone */
	int epoll;
	sd_event_source *events, *timer, *publish;
	struct target **heap; /* by due */
	size_t n_running;
	size_t at_once;		/* rounds that run side by side, at most */
	bool started;		/* later backends are new ones */
	uint64_t first_verdict; /* of those that `publish` waits to bring into force */
	uint64_t n_rounds;
};

/* checks_run.c */
uint64_t checks_now(void);
/* The heap from the targets, and the timer. */
int checks_schedule(struct checks *checks);
void checks_forget(struct checks *checks, struct target *target); /* it runs no more */
int checks_on_events(sd_event_source *source, int fd, uint32_t revents, void *arg);
int checks_on_due(sd_event_source *source, uint64_t usec, void *arg);

/* What the checks of a pool ask, of each backend. */
struct asked {
	uint64_t tag; /* of what the document says of them */
	bool direct;  /* the backend's own address, which then stands for that of the endpoint */
	struct endpoint endpoints[CHECKS_ADDRESSES_MAX];
	size_t n;
};

/* checks_target.c: of each pool of the model, malloc'd; NULL: out of memory. */
struct asked *checks_asked(const struct model *model);
/* Of all that makes the check of a backend what it is. */
uint64_t checks_identity(const struct asked *asked, const struct model_backend *backend);
/* Without its state.  NULL: out of memory. */
struct target *checks_target_new(const struct model_pool *pool, const struct model_backend *backend,
				 const struct asked *asked);
void checks_target_free(struct target *target); /* NULL is allowed */

/* checks_trust.c: whom a check by https believes.  NULL, and *why, where that is not known. */
struct trust *trusts_find(const struct trusts *trusts, const struct model_health *health, const char **why);

/* checks.c */
struct target *checks_target(const struct checks *checks, const char *pool, const char *backend);

/* A round of the target ended. */
void checks_take(struct checks *checks, struct target *target, bool passed);
/* The target waited for its first checks, and cannot be asked: it serves as if it were well, as others do. */
void checks_wait_no_more(struct checks *checks, struct target *target);
/* The way down the data path, if it can be had. */
struct probe *checks_probe(struct checks *checks);

#endif
