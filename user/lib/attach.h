/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs on interfaces.  Each is held by a bpf_link, pinned as
 * SHUNT_PIN_ROOT/<instance>/links/<netns>-<ifindex>-<role>-<plain|frags>: outside the ABI's folder, because a link
 * outlives an upgrade, and keyed by the network namespace (inode number) because interface indexes are of one.  A link
 * whose interface is gone is dead: the kernel shows index 0 for it, and its pin is removed by the next change.
 *
 * All functions that change something want the caller to hold maps_lock().
 */
#ifndef SHUNT_ATTACH_H
#define SHUNT_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device.h"
#include "maps.h"
#include "program.h"
#include "report.h"

enum attach_mode { ATTACH_NONE, ATTACH_NATIVE, ATTACH_GENERIC, ATTACH_OFFLOAD, ATTACH_AUTO };

/* "native", "generic", ... */
const char *attach_mode_name(enum attach_mode mode);
const char *attach_role_name(enum program_role role);

#define ATTACH_PIN_MAX 160 /* bytes of a pin's path */

/* A pinned link. */
struct attach_link {
	char instance[SHUNT_INSTANCE_MAX + 1];
	char pin[ATTACH_PIN_MAX]; /* its path */
	uint64_t netns;		  /* inode number of the interface's network namespace */
	uint32_t ifindex;	  /* there */
	enum program_role role;
	bool frags; /* the program takes multi-buffer frames */
	bool alive; /* the interface is still there */
	uint32_t link_id, program_id;
};

/* Inode number of this process's network namespace; 0 if it cannot be told. */
uint64_t attach_netns(void);

/* "<netns>-<ifindex>-<role>-<variant>" to its parts.  False, and *out untouched, if the name is no such thing. */
bool attach_parse_pin(const char *name, struct attach_link *out);

/* All pinned links of an instance (NULL: of all instances).  *out is malloc'd; none is no error. */
int attach_links(const char *instance, struct attach_link **out, size_t *count);

/* The name of the link's interface, or "ifindex N in network namespace M" if that is another. */
const char *attach_link_name(const struct attach_link *link, char out[static 64]);

/*
 * Whether the link's program runs on other maps than those that are pinned for its role, so that nothing that is
 * published reaches it.  False also where that cannot be told (CAP_SYS_ADMIN).
 */
bool attach_is_stale(const struct attach_link *link);

/* What the kernel says is attached to an interface of this network namespace. */
struct attach_state {
	enum attach_mode mode; /* ATTACH_NONE: nothing */
	uint32_t program_id;
	char program[16]; /* its name; "" where the kernel does not tell us */
	char tag[17];	  /* 16 hexadecimal digits, or "" */
};

int attach_query(uint32_t ifindex, struct attach_state *out);
/* Name and tag of a program by its id; empty where we may not open it. */
void attach_describe(uint32_t program_id, struct attach_state *out);

struct attach_request {
	const char *instance;
	enum program_role role;
	enum attach_mode mode; /* ATTACH_NATIVE, ATTACH_GENERIC, ATTACH_AUTO; ATTACH_NONE: native, or what is there */
	uint16_t gue_port;     /* decap: UDP port of GUE, 0: none */
	const struct maps *maps;
	const char *const *names; /* interfaces of this network namespace */
	size_t n_names;
};

/* What attach_interfaces() checks before it changes anything, alone; request->maps is not used. */
int attach_check(const struct attach_request *request, struct report *report);

/*
 * Attach to all the interfaces, or to none: whatever fails names its interface, and what was done for the others is
 * undone.  An interface that has our program already gets the new one in place, without losing a packet.  Reports, as
 * information, the mode in force of each as the kernel tells it, and warns of what would hide or lose traffic.
 * -EINVAL (no Ethernet, unknown), -EBUSY (a program that is not ours), or what the kernel refused with.
 */
int attach_interfaces(const struct attach_request *request, struct report *report);

/* The same for the load balancer's program, with the instance's maps, which are made where there are none. */
int attach_balancer(const struct attach_request *request, const struct maps_capacities *capacities,
		    struct report *report);

/*
 * Take our program from the interfaces and ask the kernel whether it is gone.  Interfaces are independent: those after
 * one that fails are still detached, and the first error is returned.
 */
int attach_detach(const char *instance, const char *const *names, size_t n_names, struct report *report);

/*
 * Load the role's program anew onto `maps` and put it in place on all links of the instance, each with the options that
 * it had; all or none.  ready, if
 * not NULL, is called once all that takes time is done, just before the first link is changed; its error ends the
 * update.
 */
typedef int attach_ready_fn(void *arg, struct report *report);
int attach_update(const struct maps *maps, enum program_role role, attach_ready_fn *ready, void *arg, size_t *updated,
		  struct report *report);

/* Remove the pins of links whose interfaces are gone. */
int attach_sweep(const char *instance);

#endif
