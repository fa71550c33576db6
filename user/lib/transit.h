/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots in transition: what a change of owners makes of them, and how they come to rest again.  The rules are those of
 * docs/connections.md.  Pure: no system call; times are deciseconds of CLOCK_MONOTONIC, compared modulo 2^32.
 */
#ifndef SHUNT_TRANSIT_H
#define SHUNT_TRANSIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <shunt/flow.h>

/* The slots of one pool, in the form in which they are published. */
struct transit {
	uint32_t slots;
	uint16_t *owner; /* id, SHUNT_SLOT_TRACKED */
	uint16_t *base;	 /* id, SHUNT_SLOT_LEARN */
	uint32_t *range; /* 0 where untracked, or where no buckets were left */
	uint32_t *t0;	 /* when the slot left rest; 0 where nothing is measured */
	uint32_t own;	 /* number of the first of the slots' own words (flow.h); 0: there are none */
};

/* Slots at rest without an owner.  0, or -ENOMEM with *out untouched. */
int transit_init(struct transit *out, uint32_t slots);
void transit_free(struct transit *transit);

bool transit_same(const struct transit *a, const struct transit *b);

/* How many slots are tracked. */
uint32_t transit_tracked(const struct transit *transit);

/* How many of them have no range. */
uint32_t transit_without(const struct transit *transit);

/* ---- changes of owners ---- */

#define TRANSIT_IDS (SHUNT_BACKENDS_MAX + 1)

/*
 * owner[slots] becomes the owner of each slot.  called[TRANSIT_IDS] says what became of each id: itself, the id that
 * the same server has now, or SHUNT_BACKEND_NONE where it is gone.
 */
void transit_change(struct transit *transit, const uint16_t *owner, const uint16_t *called, uint32_t now);

/*
 * The same after a reboot, where slots that were in transition are tracked and have no owner (transit_copy_take()), and
 * nothing is known of the others: they are at rest.
 */
void transit_restart(struct transit *transit, const uint16_t *owner, const uint16_t *called);

/* owner[slots] without keeping anything: for pools that track no connections. */
void transit_set(struct transit *transit, const uint16_t *owner);

/* A base that is `id` becomes the owner.  How many there were. */
uint32_t transit_removed(struct transit *transit, uint32_t id);

/*
 * t0 of all slots to and from the form of SHUNT_RANGES_T0(): exact up to SHUNT_T0_OLDEST before the newest; what is
 * older comes back as that old.
 */
void transit_pack_t0(const struct transit *transit, void *out);
void transit_unpack_t0(struct transit *transit, const void *in);

/* ---- time ---- */

struct transit_times {
	uint32_t now;
	uint32_t learn, settle; /* deciseconds */
	bool blocked;		/* insertions were refused lately: settle only those that waited four times as long */
};

struct transit_done {
	uint32_t learned, settled;
	uint32_t forced; /* of those settled: although blocked */
};

/* End learning windows and settle what is due. */
struct transit_done transit_pass(struct transit *transit, const struct transit_times *times);

/* The next time at which transit_pass() has something to do, as deciseconds from now; UINT32_MAX: never. */
uint32_t transit_due(const struct transit *transit, const struct transit_times *times);

/* Settled slots that a scan found clean come to rest.  How many. */
uint32_t transit_untrack(struct transit *transit, const bool *dirty);

/* ---- ranges of buckets ---- */

/* What is free of the arena, in order. */
struct transit_gap {
	uint32_t from, to; /* buckets */
};

struct transit_room {
	struct transit_gap *gaps;
	size_t n;
	uint64_t free; /* buckets in them */
	size_t used;   /* ranges */
};

/* Of an arena of so many buckets, what used[n] (sorted here) leaves.  0, or -ENOMEM with *out untouched. */
int transit_room_init(struct transit_room *out, uint32_t buckets, uint32_t *used, size_t n);
void transit_room_free(struct transit_room *room);

/*
 * Give ranges to the tracked slots that have none, and take them from the room: all of one size, up to four times the
 * even share of all slots that may yet be tracked, so that small changes get large ranges (smaller ones where what is
 * free is in pieces); at most three quarters of what is free, and a bucket is left for each of the `others`, which are
 * those that may yet be tracked beside these.  Where even a bucket each is too much, to as many slots as there are
 * buckets.
 */
void transit_allot(struct transit *transit, struct transit_room *room, uint64_t others);

/* Then own words for the slots, if all that are tracked have ranges and the `others` keep a bucket each. */
void transit_allot_own(struct transit *transit, struct transit_room *room, uint64_t others);

/* How many buckets the own words fill; 0 once no slot is tracked. */
uint32_t transit_own_buckets(const struct transit *transit);

/* The buckets of own words as ranges, for transit_room_init(): at most TRANSIT_OWN_RANGES.  How many. */
#define TRANSIT_OWN_RANGES 96
size_t transit_own_ranges(const struct transit *transit, uint32_t *out);

/* ---- ages ---- */

/*
 * Units and idle limits for a pool, as its table's header has them.  in_force: those of a table with entries, whose
 * units must stay (limits that do not fit are cut at 127 units), or 0.
 */
uint64_t transit_limits(uint64_t settle_ms, uint64_t learn_ms, uint64_t in_force);

/* The idle limit of a live entry of TCP, in milliseconds rounded down. */
uint64_t transit_settle_ms(uint64_t limits);

/* ---- scanning (transit_scan.c) ---- */

struct transit_scan {
	struct shunt_flow_bucket *buckets; /* the arena */
	const struct shunt_backend *backends;
	uint32_t n_backends;
	uint64_t limits;
	uint64_t clock;		/* nanoseconds of CLOCK_MONOTONIC_COARSE */
	const uint16_t *called; /* as above, or NULL: entries of ids that have another name now are renamed */
	const bool *cut;	/* [TRANSIT_IDS], or NULL: backends whose entries are deleted */
	/* Added up, if not NULL: entries of each backend id, and of each enum shunt_flow_status. */
	uint32_t *of_backend;
	uint64_t *of_status;
};

/*
 * Delete stale and idle entries of the pool's ranges, by compare-and-exchange; dirty[slots], if not NULL: whether the
 * slot has a valid entry that disagrees with its owner.
 */
void transit_scan(const struct transit *transit, const struct transit_scan *scan, bool *dirty);

/* Whether an entry's backend exists as the one it named. */
bool transit_valid(uint64_t word, const struct shunt_backend *backends, uint32_t n_backends);

/* How long ago an entry was used, in units of its protocol. */
uint32_t transit_age(uint64_t word, uint64_t limits, uint64_t clock);

#endif
