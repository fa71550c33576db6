/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of engine*.c share. */
#ifndef SHUNT_ENGINE_INTERNAL_H
#define SHUNT_ENGINE_INTERNAL_H

#include "engine.h"
#include "published.h"
#include "snapshot.h"
#include "state.h"
#include "transit.h"
#include "transit_copy.h"

#define ENGINE_T0_MS 100 /* unit of t0 in the maps */

/* The way to an address, as last told; or, after a start, as the maps still have it. */
struct way {
	union shunt_address address;
	bool once;   /* nexthop.mac and ifindex are, or were, right */
	bool seeded; /* from the maps, which do not say whether it leads through a gateway; never known since the start
		      */
	struct engine_nexthop nexthop;
};

/* A table in force. */
struct live_table {
	bool published; /* after a failed publication: perhaps */
	struct shunt_table header;
	uint64_t inputs; /* fingerprint of what it was built from; 0: not compared with anything yet */
};

/* What is watched of a pool while slots of it are in transition; times are CLOCK_MONOTONIC in milliseconds. */
struct watch {
	uint64_t scanned;	/* when its ranges were scanned last; 0: never */
	uint64_t entries[4];	/* by enum shunt_flow_status, then */
	uint64_t base, base_at; /* packets that went to base without an entry, when counted */
	double base_rate;	/* a second */
	uint32_t forced;	/* slots that settled although insertions were refused */
	uint32_t without;	/* tracked slots that have no range, in the table in force */
	uint64_t range_buckets; /* of those that have */
	uint64_t former; /* when the table of former_epoch and _phase was first seen with ranges of the one before */
	uint64_t former_epoch;
	uint32_t former_phase;
};

/* The maps, open, and what is in force in them. */
struct pinned {
	struct maps maps;
	struct shunt_backend *backends;	 /* mapped: [meta.backends] */
	struct shunt_path *paths;	 /* mapped: [meta.backends] */
	uint64_t outer_now;		 /* fingerprint of what `outer_sources` and `endpoints` have; 0: not known */
	struct shunt_flow_bucket *flows; /* mapped: [n_buckets] */
	uint32_t n_buckets;
	uint64_t *nexthops; /* mapped: [n_nexthops] */
	uint32_t n_nexthops;
	struct shunt_iface ifaces[SHUNT_IFACES];
	struct live_table *tables; /* [class * meta.pools + index] */
	void *snapshot;		   /* the value in force, or NULL */
	bool *counter_live;	   /* [meta.services]: named by the snapshot in force */
	uint32_t *slots, *quotas;  /* [meta.backends]: of each backend, by id */
	uint32_t *bases, *entries; /* beside: slots of which it is base and not owner; entries, when scanned last */
	struct watch *watches;	   /* [meta.pools] */
};

struct engine {
	engine_epoch_fn *epoch;
	void *epoch_arg;
	char *state_dir; /* NULL: none */
	struct state state;
	bool state_saved;     /* the state is what the file says */
	uint64_t on_disk;     /* revision of the file; 0: there is none */
	bool snapshot_agrees; /* the snapshot in force, with state.model */
	struct pinned pinned;
	struct way **ways; /* sorted by address */
	size_t n_ways;
	bool scan_owed;		   /* ids or slots were given up: entries may name them, and are to be counted */
	bool grace_owed;	   /* before that: packets may still insert such entries */
	bool copy_stale;	   /* the copy in the state directory is not what is in force */
	struct transit_copy *copy; /* of before a reboot, until the tables are published; or NULL */
};

struct plan_backend {
	const struct model_backend *model;
	struct state_backend *ids;
	const struct way *way; /* NULL or !once: never known */
	bool reached;	       /* may have slots; the rest is valid only then */
	bool written;	       /* the entry is in the map already */
	struct state_backend
		may_stay;	    /* ids it has now, if only its outer source is to change; else SHUNT_BACKEND_NONE */
	struct shunt_backend entry; /* but for its state */
};

/* What is wiped before a table comes into force. */
struct engine_fresh {
	uint32_t *slots; /* that come to be tracked, or are given a range */
	size_t n;
	bool own; /* all own words */
};

struct plan_pool {
	const struct model_pool *model;
	struct state_pool *ids;
	struct plan_backend *backends; /* beside model->backends */
	enum shunt_table_class class;
	uint64_t inputs;
	uint16_t *owner;	/* ids, [model->slots]: to be adopted or published; NULL: the table in force is right */
	struct transit transit; /* with owner: all of the slots */
	struct engine_fresh fresh;
	uint32_t without; /* slots that come to be tracked without a range */
	uint32_t *quotas; /* beside backends; with owner */
	bool ramps;	  /* a slow start is under way */
	bool publish;	  /* the slots are not what is in force: header is what to publish */
	bool new_epoch;	  /* and has other owners: change says which */
	struct engine_pool_change change;
	struct shunt_table header;
};

/* From what is in force to a model, all of it in memory. */
struct plan {
	struct state next;
	struct plan_pool *pools;       /* beside next.model->pools */
	struct plan_backend *backends; /* of all pools */
	size_t n_backends;
	size_t n_waiting;	  /* backends that keep their old outer source for want of free ids */
	bool dirty;		  /* next is not what the state file says */
	bool asked;		  /* somebody waits for it, and is told where it cannot be written down */
	bool strict;		  /* an operator's change: refused where slots would be without ranges */
	bool document;		  /* a whole document: takes deletions of what it names back */
	uint16_t *called;	  /* [TRANSIT_IDS]: what becomes of each id */
	bool renames;		  /* some id gets another name */
	struct transit_room room; /* beside ranges in force and those newly given; looked at when the first is */
	void *snapshot;		  /* to publish, or NULL */
};

/* engine_pinned.c: the maps, and what is found in them. */
int pinned_open(const char *instance, const struct maps_capacities *want, struct pinned *out, struct report *report);
void pinned_close(struct pinned *pinned);
struct live_table *pinned_table(const struct pinned *pinned, enum shunt_table_class class, uint32_t index);
/* The snapshot in force became `value`, whose ownership moves.  -ENOMEM, -EUCLEAN. */
int pinned_take_snapshot(struct pinned *pinned, void *value);
/* On return no packet sees anything that was replaced before the call. */
int pinned_grace(const struct pinned *pinned);

/* engine_ways.c */
struct way *engine_way(const struct engine *engine, const union shunt_address *address);
/* After a start: what the maps say of backends that have slots. */
int engine_seed_ways(struct engine *engine);
/* Forget addresses that no backend has. */
void engine_drop_ways(struct engine *engine);

/* engine.c: the instance's lock, around every change of maps; opens them again first where they were rebuilt. */
int engine_lock(struct engine *engine, struct report *report);

/* engine_capacity.c: -ENOSPC, reported with the command that makes room. */
int engine_check_capacities(const struct engine *engine, const struct model *model, struct report *report);
int engine_no_number(const struct engine *engine, const char *what, const char *option, uint32_t capacity,
		     struct report *report);
void engine_warn_waiting(const struct engine *engine, size_t n_waiting, struct report *report);

/* engine_ids.c */
int engine_plan_ids(const struct engine *engine, struct plan *plan, struct report *report);

/* engine_transit.c */
uint64_t engine_clock_ms(void); /* CLOCK_MONOTONIC */
bool engine_in_transition(const struct live_table *live);
/* in_force: of the same number of slots, or NULL.  Sets pool->transit, what the header says of it, and publish. */
int engine_plan_transit(const struct engine *engine, struct plan *plan, struct plan_pool *pool,
			const struct published *in_force);
/*
 * A pool's counters speak of it alone, not of who had its number before.  lost: after a reboot, which took the entries
 * of its slots in transition: as if they had been refused now.
 */
int engine_forget_stats(struct pinned *pinned, uint32_t index, bool lost);
/*
 * Ranges for a table to come, beside those in force: no packet reads them before the table names them.  header->ranges:
 * of the table in force, 0 for none; becomes that of the new one.  fresh: may be NULL.
 */
int engine_prepare_transit(const struct pinned *pinned, enum shunt_table_class class, struct shunt_table *header,
			   const struct transit *transit, const struct engine_fresh *fresh);
/* The table, after that.  On return no packet sees what was in force before. */
int engine_publish_transit(const struct pinned *pinned, enum shunt_table_class class, const struct shunt_table *header,
			   const struct transit *transit);
int engine_remove_ranges(const struct pinned *pinned, enum shunt_table_class class, uint32_t pool);
/* Count the slots of the pool's backends: as owner, and as base alone; and what ranges the pool has. */
void engine_count_slots(struct pinned *pinned, const struct state_pool *ids, size_t n_backends,
			const struct transit *transit);

/* engine_scan.c */
struct scan_options {
	uint64_t now;		/* CLOCK_MONOTONIC, milliseconds */
	const uint16_t *called; /* see struct transit_scan; may be NULL */
	const bool *cut;
};
/* One pool's ranges; dirty may be NULL. */
void engine_scan_pool(struct engine *engine, uint32_t index, const struct published *published,
		      const struct scan_options *options, bool *dirty);
/* Every range in use. */
int engine_scan_all(struct engine *engine, const struct scan_options *options);
/* After a grace period, the scan that is owed; ids that were given up are free after it. */
int engine_pay_scan(struct engine *engine);

/* engine_tick.c */
int engine_pool_stats(const struct maps *maps, uint32_t index, struct shunt_pool_stats *out);
struct transit_times engine_times(const struct model_pool *pool, const struct shunt_pool_stats *stats, uint64_t limits,
				  uint64_t now);
/* engine_leaving.c: no slot and no entry names it, as far as the last scan has seen. */
bool engine_drained(const struct pinned *pinned, const struct state_backend *ids);

/* The copy in the state directory, where it is stale.  0, or -errno. */
int engine_save_copy(struct engine *engine);

/* engine_backends.c */
bool engine_backend_entry(const struct model_pool *pool, const struct model_backend *backend, const struct way *way,
			  const struct shunt_backend *old, struct shunt_backend *out);
/* Whether the way can be used at all, by the pool's encapsulation. */
bool engine_can_reach(const struct model_pool *pool, const struct way *way);
/* Whether both put the same kind of header for the same address in front. */
bool engine_same_destination(const struct shunt_backend *a, const struct shunt_backend *b);
int engine_write_backends(struct engine *engine, const struct plan *plan, struct report *report);
/* Those that drain or are down, and are no owner any more, say so. */
void engine_take_bits(struct engine *engine, const struct plan *plan);
void engine_seed_down(struct engine *engine);
/* Withdraw what no backend of the state has; nothing names it any more. */
void engine_clear_backends(struct engine *engine);

/* engine_paths.c */
#define ENGINE_PATH_RESTORE_MS 600000u /* after a path MTU was lowered last (RFC 8201, section 4) */
/* Of an entry that puts an IP header in front; low bits of the source may be the flow's. */
void engine_outer_addresses(const struct shunt_backend *entry, union shunt_address *source,
			    union shunt_address *destination);
/*
 * Let `outer_sources` and `endpoints` have exactly who is present in the map of backends: before tables name a new one,
 * and after what leaves is withdrawn.  What cannot be written now is written the next time.
 */
int engine_bring_paths(struct engine *engine, struct report *report);
/* What the state word is to have: `mtu`, which the way has, or the less that errors told. */
uint32_t engine_path_mtu(struct pinned *pinned, uint32_t id, uint32_t mtu);
/* Give back what was lowered long enough before `now`; when the next one is due.  Both CLOCK_MONOTONIC, milliseconds.
 */
uint64_t engine_restore_paths(struct engine *engine, uint64_t now);

/* engine_nexthops.c */
/* Next-hop index of each reached backend into index[] (beside plan->backends), written to the maps. */
int engine_write_nexthops(struct engine *engine, const struct plan *plan, uint32_t *index, struct report *report);

/* engine_tables.c, engine_snapshot.c: in memory.  Classes and indexes of the pools are planned by the first. */
enum shunt_table_class engine_table_class(uint32_t slots);
int engine_plan_tables(const struct engine *engine, struct plan *plan, struct report *report);
int engine_plan_snapshot(const struct engine *engine, struct plan *plan, struct report *report);

/* engine_ramp.c */
#define ENGINE_RAMP_STEPS 10u
uint64_t engine_realtime_ms(void); /* CLOCK_REALTIME */
bool engine_may_have_slots(const struct plan_backend *backend);
/* Who begins a slow start, who goes on with it, and in which step. */
void engine_plan_ramps(const struct engine *engine, struct plan *plan, struct plan_pool *pool);
/* What weights are multiplied by, so that parts of them are whole numbers; and the weight of a backend. */
uint32_t engine_ramp_units(const struct model_pool *pool, const struct state_pool *ids);
uint32_t engine_ramp_weight(const struct model_backend *backend, const struct state_backend *ids, uint32_t units);

/*
 * engine_parallel.c: step(arg, 0 .. n-1), by up to `threads` threads (a few dozen at most), each number once.  The
 * first error ends it: returned, with its number in *failed.
 */
typedef int engine_step_fn(void *arg, size_t i);
int engine_side_by_side(size_t n, size_t threads, engine_step_fn *step, void *arg, size_t *failed);
/* The same, begun beside what the caller does until the end, which takes part in it.  NULL: out of memory. */
struct engine_work *engine_work_begin(size_t n, size_t threads, engine_step_fn *step, void *arg);
int engine_work_end(struct engine_work *work, size_t *failed);

/* The table in force as its builder saw it: owners by index into the members of then. */
struct previous_table {
	struct table table;
	struct table_member *members;
	uint16_t *owner;
};
/* Empty where the model in force does not have the pool. */
int engine_previous_table(const struct engine *engine, const struct plan_pool *pool, const struct transit *transit,
			  struct previous_table *out);
void engine_previous_free(struct previous_table *previous);

/* engine_movement.c */
/* Fill pool->change: `after` is to be published, with pool->header; in_force is there now, or NULL.  -ENOMEM. */
int engine_plan_movement(const struct engine *engine, const struct plan *plan, struct plan_pool *pool,
			 const struct table *after, const struct published *in_force);
void engine_movement_free(struct plan_pool *pool);
/* All that the plan does to tables: malloc'd, the caller frees it.  -ENOMEM. */
int engine_plan_changes(const struct engine *engine, const struct plan *plan, struct engine_pool_change **out,
			size_t *n);

/* engine_publish.c */
/*
 * Ranges that the plan's tables will name are published beside what the caller does until the end.  Where the plan is
 * given up they are taken back, but for tables that have others: those are left for the next change to replace.
 */
struct preparing {
	const struct pinned *pinned;
	const struct plan *plan;
	struct engine_work *work; /* NULL: there is nothing to do */
};
int engine_prepare_begin(const struct engine *engine, const struct plan *plan, struct preparing *out);
int engine_prepare_end(struct preparing *preparing, struct report *report);
void engine_prepare_undo(const struct preparing *preparing);
int engine_publish_tables(struct engine *engine, const struct plan *plan, struct report *report);
int engine_publish_snapshot(struct engine *engine, struct plan *plan, struct report *report);
int engine_remove_tables(struct engine *engine, const struct plan *plan, struct report *report);

#endif
