/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The engine: from a model and what is known of next hops to what is in the maps.  It gives ids to pools, backends and
 * services, builds tables, publishes them epoch by epoch, keeps the state directory, and adopts what it finds pinned.
 * One thread; calls return when what they changed is in force.
 *
 * Order: intent on disk, publish, acknowledge.  New backends are written before a table names them; a pool's table
 * before the snapshot that names the pool; taking away goes the other way round.  An id is not used again until nothing
 * can name it, and then with the next generation.
 */
#ifndef SHUNT_ENGINE_H
#define SHUNT_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "maps.h"
#include "model.h"
#include "origin.h"
#include "report.h"
#include "state.h"
#include "table/table.h"

struct engine;

/* The way to a backend, as the routing and neighbour tables have it. */
struct engine_nexthop {
	bool known;   /* a link-layer address is known; false: keep the last one */
	bool gateway; /* it is a gateway's, not the backend's own */
	uint32_t ifindex;
	uint8_t mac[6];
	uint8_t source_mac[6];	    /* of the interface */
	uint32_t mtu;		    /* path MTU: of the route if it has one, else of the interface */
	union shunt_address source; /* the host's preferred source towards the backend */
	char why[64];		    /* where not known: "no route", "neighbour 10.1.0.1 does not answer", ... */
};

/* What a model that is to be applied does to one pool's table. */
struct engine_pool_change {
	const char *pool;      /* the strings live as long as both models */
	const char *algorithm; /* of the new table; of the old one where the pool is removed */
	bool added, removed;   /* the pool itself */
	bool resized;	       /* every slot counts as moved */
	bool history;	       /* its algorithm depends on the table before */
	bool ramps;	       /* a slow start is under way */
	uint32_t balance_percent, vnodes;
	uint32_t slots;		/* of the new table; of the old one where the pool is removed */
	uint64_t epoch, digest; /* of the new table */
	uint64_t digest_before; /* 0: there was no table */
	uint32_t moved, minimum;
	uint32_t backends_before, backends_after; /* that have slots */
	uint32_t leaving;			  /* had slots, and have none */
	uint64_t connections;			  /* recorded, of owners of slots that move: they have to drain */
	uint32_t waiting;			  /* have a weight, and no slots until the way to them is known */
	uint32_t down;				  /* have a weight, and no slots because of their checks */
	uint32_t without;			  /* slots whose connections there is no room to record */
	double max_mean_before, max_mean_after;	  /* largest share against what the weights say; 0: no backend */
	const struct table_member *members;	  /* whom the new table was built from */
	const uint32_t *member_slots;		  /* beside members */
	size_t n_members;
};

/* A table came into force as a new epoch. */
typedef void engine_epoch_fn(const struct engine_pool_change *change, void *arg);

struct engine_options {
	const char *instance;
	const char *state_dir; /* NULL: keep no state (tests) */
	struct maps_capacities capacities;
	engine_epoch_fn *epoch; /* NULL: nobody is told */
	void *epoch_arg;
};

/*
 * Open maps and state.  Afterwards engine_model() is what was last acknowledged (NULL on a fresh instance) and nothing
 * has been written to a map: traffic goes on as it was.  A corrupt state file: -EUCLEAN, reported with the way to
 * recover.
 */
int engine_open(const struct engine_options *options, struct engine **out, struct report *report);
void engine_close(struct engine *engine);

const struct model *engine_model(const struct engine *engine);
const struct maps *engine_maps(const struct engine *engine);

/* Of the snapshot in force: one more for every engine_apply(), 0 if there was none. */
uint64_t engine_revision(const struct engine *engine);

/* siphash of the document last applied, keyed with its own key: 0 if none.  For "did the file change?". */
uint64_t engine_document_tag(const struct engine *engine);

/* Judge a change before anything of it is done: 0, or an error, reported, that refuses it. */
typedef int engine_judge_fn(const struct engine_pool_change *pools, size_t n, void *arg, struct report *report);

/* What comes with a model. */
struct engine_change {
	uint64_t document_tag; /* 0 leaves the recorded one */
	bool document;	       /* a whole one: takes deletions back that wait for their drain */
	bool by_itself;	       /* nobody asked: nothing is refused for want of room, and what waits goes on to wait */
	struct origin origin;
	uint32_t confirm; /* seconds in which the change is to be confirmed; 0: it stands by itself */
	bool dry_run;	  /* plan and judge, change nothing, and leave the model to the caller */
	engine_judge_fn *judge;
	void *judge_arg;
};

/*
 * Make `model` the one in force: capacities are checked first (-ENOSPC names the command that grows them), then it is
 * judged, and nothing is changed on failure.  Takes the model on success.  change: NULL for one without anything.
 */
int engine_apply(struct engine *engine, struct model *model, const struct engine_change *change, struct report *report);

/* Of the model in force; empty if that is not known. */
const struct origin *engine_origin(const struct engine *engine);

/* The change that waits to be confirmed: revision 0 if there is none. */
const struct state_pending *engine_pending(const struct engine *engine);

/* The change that waits stands.  0, or what the disk says, reported, and it goes on to wait. */
int engine_confirm(struct engine *engine, struct report *report);

/*
 * What is known of the way to a backend address.  Only remembers; call engine_publish() after a batch.  A MAC change is
 * one word in the next-hop array; a backend known for the first time gets its slots; all slots stay where next hops go
 * away later.  Addresses that no backend of the model has yet are remembered too, until the next engine_apply() has
 * taken or dropped them: so a document that replaces backends is applied with the new ones' ways known.
 * -EINVAL for a known next hop without interface or link-layer address.
 */
int engine_set_nexthop(struct engine *engine, const union shunt_address *backend, const struct engine_nexthop *nexthop);

/*
 * Bring the maps to what model and next hops say; does nothing where they agree.  Called by engine_apply(), after next
 * hops changed, and at start to adopt: tables whose digest and backends agree are left alone.
 */
int engine_publish(struct engine *engine, struct report *report);

/*
 * Whether the state file says what is in force.  It may not, when engine_publish() could not write it: what the checks
 * say is in force all the same, and is written down by the next one that can.
 */
bool engine_state_saved(const struct engine *engine);

/*
 * What the checks say of a backend: who is down loses its slots, and packets of its connections go to the new owners.
 * Only remembers, and does so over restarts of the daemon, in the maps; call engine_publish() after a batch.  -ENOENT.
 */
enum engine_verdict { ENGINE_UP, ENGINE_DOWN, ENGINE_UP_AT_ONCE /* without slow start */ };
int engine_set_down(struct engine *engine, const char *pool, const char *backend, enum engine_verdict verdict);

/* An operator's decisions on a backend.  They survive restarts and other documents that name the backend. */
enum engine_drain {
	ENGINE_DRAIN,	 /* no new connections, those that it has go on */
	ENGINE_UNDRAIN,	 /* takes a deletion back too; -EBUSY of one that is in maintenance */
	ENGINE_LEAVE,	 /* drains, and is deleted by engine_tick() when nothing names it any more */
	ENGINE_MAINTAIN, /* drains, and is never cut off */
	ENGINE_ACTIVATE, /* takes all of these back */
};
/* Each is a revision of the same model.  change: its origin, judge and dry_run count, or NULL. */
int engine_drain(struct engine *engine, const char *pool, const char *backend, enum engine_drain drain,
		 const struct engine_change *change, struct report *report);

/*
 * Do what is due at `now` (CLOCK_MONOTONIC, milliseconds): learning windows end, slots settle, entries are scanned and
 * slots come to rest, drains that took too long end, path MTUs that errors lowered ten minutes ago are restored.
 * *next: when there is something to do again, the same clock, UINT64_MAX for nothing known: packets may lower a path
 * MTU meanwhile, so a call a minute finds it in time.  Call it after every other change, too.
 */
int engine_tick(struct engine *engine, uint64_t now, uint64_t *next, struct report *report);

/*
 * Delete the backends whose drain for that is over; call it after engine_tick().  *deleted: how many.  Where that
 * cannot be written down they stay, and drain on.
 */
int engine_delete_drained(struct engine *engine, const struct origin *origin, size_t *deleted, struct report *report);

/* Whether there are any that are to be deleted when they have drained. */
bool engine_has_leaving(const struct engine *engine);

/*
 * Slow starts: whether a step of one is due, so that engine_publish() is to be called, and which (of the last, for the
 * history).  *wait: milliseconds to the next one, UINT64_MAX: there is none.
 */
#define ENGINE_RAMP_WHY_MAX 160
bool engine_ramp_due(const struct engine *engine, uint64_t *wait, char why[static ENGINE_RAMP_WHY_MAX]);

/* The way to a backend, for checks: false where it was never known, and nothing can be sent. */
struct engine_way {
	uint32_t id;
	bool down;
	bool draining;		    /* or in maintenance */
	union shunt_address source; /* unspecified: not known */
};
bool engine_backend_way(const struct engine *engine, const char *pool, const char *backend, struct engine_way *out);

/* The maps were rebuilt with other capacities (maps_current() is false): open them again. */
int engine_reopen(struct engine *engine, struct report *report);

/* Each backend address in use, once. */
typedef void engine_address_fn(const union shunt_address *address, void *arg);
void engine_addresses(const struct engine *engine, engine_address_fn *fn, void *arg);

/* Whether new connections are given to a backend of the pool: its table is in force, and not empty. */
bool engine_pool_serves(const struct engine *engine, const char *pool);

/* ---- for people ---- */

struct engine_pool_info {
	uint32_t index;
	bool published;
	uint64_t epoch, digest, activated;
	uint32_t phase;
	uint32_t with_slots, reachable; /* backends */

	struct shunt_pool_stats stats;
	/* while slots are in transition, else 0 */
	uint32_t tracked;	/* slots */
	uint32_t unsettled;	/* of those: owner and base differ */
	uint32_t without;	/* of those tracked: no room to record connections */
	uint32_t forced;	/* settled although insertions were refused */
	uint64_t settles_in;	/* milliseconds until the next slots settle; UINT64_MAX: not to be told */
	uint64_t range_buckets; /* in use by its slots */
	uint64_t entries[4];	/* by enum shunt_flow_status, when scanned last */
	double base_rate;	/* packets a second that went to base without an entry */
	bool blocked;		/* settling waits, because insertions were refused lately */
};

struct engine_backend_info {
	uint32_t id, generation;
	uint32_t slots, quota; /* in force; by weight among those that can have slots */
	bool reachable;	       /* its next hop was known at least once */
	uint64_t draining;     /* since when, UNIX seconds; 0: it does not drain */
	bool leaving;	       /* to be deleted when it has drained */
	bool maintenance;
	uint32_t ramp_percent; /* of its weight that counts during a slow start; 100: none is under way */
	bool down;	       /* as engine_set_down() said */
	uint32_t bases;	       /* slots of which it is base and not owner */
	uint32_t entries;      /* of the flow table, when scanned last */
	struct engine_nexthop nexthop;
	uint32_t mtu;	      /* path MTU in force: the next hop's, or less */
	bool mtu_lowered;     /* less, as an ICMP error from the path told within the last ten minutes */
	uint64_t path_errors; /* ICMP errors that quoted packets to it */
	struct shunt_stats stats;
};

int engine_pool_info(const struct engine *engine, const char *pool, struct engine_pool_info *out);
/* Of these slots no connections are, or were, recorded as they should: without reading the table.  -ENOENT. */
struct engine_pool_lacks {
	uint32_t without, forced; /* as in struct engine_pool_info */
};
int engine_pool_lacks(const struct engine *engine, const char *pool, struct engine_pool_lacks *out);
int engine_backend_info(const struct engine *engine, const char *pool, const char *backend,
			struct engine_backend_info *out);
/* The same without `stats`, each of which costs a system call. */
int engine_backend_standing(const struct engine *engine, const char *pool, const char *backend,
			    struct engine_backend_info *out);
/* Of the flow table: buckets in ranges of slots, and entries when scanned last. */
struct engine_flow_use {
	uint64_t buckets, used_buckets, entries, bytes;
};
void engine_flow_use(const struct engine *engine, struct engine_flow_use *out);
int engine_service_stats(const struct engine *engine, const char *service, struct shunt_stats *out);
/* Its index in `service_stats`, which is all that the packet path knows of its name; -ENOENT. */
int engine_service_index(const struct engine *engine, const char *service, uint32_t *out);

#endif
