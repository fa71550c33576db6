/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of announce*.c share. */
#ifndef SHUNTD_ANNOUNCE_H
#define SHUNTD_ANNOUNCE_H

#include <libmnl/libmnl.h>

#include "announce_kept.h"
#include "daemon.h"

#define ANNOUNCE_WHY_MAX 200

/* A service address. */
struct announced {
	union shunt_address address;
	bool wanted;		    /* it shall be announced */
	char why[ANNOUNCE_WHY_MAX]; /* it shall not */
	bool present;		    /* its route is there, as far as was last seen */
	int error;		    /* of putting it there, or 0 */
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
};

/* announce_judge.c: the list anew from the model in force.  0 or -ENOMEM, and the list is as it was. */
int announce_judge(struct announce *announce);
struct announced *announce_find(const struct announce *announce, const union shunt_address *address);

/* announce_sync.c: the routes as the list wants them, and none of ours elsewhere. */
void announce_sync(struct announce *announce);

/* announce.c: judge and synchronize now. */
void announce_look(struct announce *announce);
/* Addresses that are announced, as far as was last seen. */
size_t announce_count(const struct announce *announce);

#endif
