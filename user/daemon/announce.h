/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of announce*.c share. */
#ifndef SHUNTD_ANNOUNCE_H
#define SHUNTD_ANNOUNCE_H

#include <libmnl/libmnl.h>

#include "announce_kept.h"
#include "daemon.h"
#include "hook.h"

#define ANNOUNCE_WHY_MAX 200
#define ANNOUNCE_RUNS 4u	  /* hooks side by side */
#define ANNOUNCE_HOOKS "announce" /* folder of them, in the hooks directory */

/* A service address. */
struct announced {
	union shunt_address address; /* first: announce_by_address() */
	bool wanted;		     /* it shall be announced */
	char why[ANNOUNCE_WHY_MAX];  /* it shall not */
	bool present;		     /* its route is there, as far as was last seen */
	int error;		     /* of putting it there, or 0 */
};

/* What a hook was told of an address, and shall be. */
struct told {
	union shunt_address address;			 /* first, too */
	bool want;					 /* up */
	bool maybe_up;					 /* it may have been told "up", and not "down" since */
	enum { TOLD_NOTHING, TOLD_DOWN, TOLD_UP } state; /* with success, since the start */
	bool running;
	unsigned int failures; /* in a row */
	uint64_t due;	       /* not before, CLOCK_MONOTONIC in microseconds */
	char why[HOOK_WHY_MAX];
};

struct running {
	union shunt_address address;
	bool up;
	pid_t child;
	int fd;
	sd_event_source *source;
	uint64_t deadline;
};

struct announce {
	struct daemon *daemon;
	sd_event_source *timer;
	struct mnl_socket *socket;
	int lock; /* of the table; -1: none */
	uint32_t locked;
	struct announce_kept kept;
	bool damaged;		/* what was kept cannot be read: nothing is changed */
	bool attached;		/* the program is on an interface */
	struct announced *list; /* by address */
	size_t n;
	char *problem, *kept_problem;

	struct told *told; /* by address: to be told, or told before */
	size_t n_told;
	struct running runs[ANNOUNCE_RUNS];
	size_t n_runs;
	bool unsaved; /* kept.up is not what it should be */
};

/* For bsearch() of an address in either list. */
int announce_by_address(const void *address, const void *element);

/* announce_judge.c: the list anew from the model in force.  0 or -ENOMEM, and the list is as it was. */
int announce_judge(struct announce *announce);
struct announced *announce_find(const struct announce *announce, const union shunt_address *address);

/* announce_sync.c: the routes as the list wants them, and none of ours elsewhere. */
void announce_sync(struct announce *announce);
/* What is kept, to disk; a failure is a problem that is shown. */
void announce_save(struct announce *announce);

/* announce_hook.c: tell the hook what it has not been told. */
void announce_hook_sync(struct announce *announce);
/* At start, from what is kept.  0 or -ENOMEM. */
int announce_hook_resume(struct announce *announce);
void announce_hook_close(struct announce *announce);
struct told *announce_told(const struct announce *announce, const union shunt_address *address);
/* How many addresses it could not be told of; the first, if there is one. */
size_t announce_hook_failures(const struct announce *announce, const struct told **first);

/* announce.c: judge and synchronize now. */
void announce_look(struct announce *announce);
/* Addresses that are announced, as far as was last seen. */
size_t announce_count(const struct announce *announce);
/* Routes that are there, and addresses that the hook may have been told are up. */
size_t announce_left(const struct announce *announce);

#endif
