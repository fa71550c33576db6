/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transit.h"

#define NONE SHUNT_BACKEND_NONE
#define CAP 4 /* times settle: so long it waits while blocked */

/* A slot, unpacked. */
struct slot {
	uint16_t owner, base;
	bool tracked, learn;
	uint32_t t0;
};

static struct slot get(const struct transit *transit, uint32_t i)
{
	return (struct slot){
		.owner = transit->owner[i] & NONE,
		.base = transit->base[i] & NONE,
		.tracked = transit->owner[i] & SHUNT_SLOT_TRACKED,
		.learn = transit->base[i] & SHUNT_SLOT_LEARN,
		.t0 = transit->t0[i],
	};
}

static void put(struct transit *transit, uint32_t i, struct slot slot)
{
	/* Nothing of an untracked slot but its owner means anything. */
	if (!slot.tracked)
		slot = (struct slot){.owner = slot.owner, .base = slot.owner};
	transit->owner[i] = (uint16_t)(slot.owner | (slot.tracked ? SHUNT_SLOT_TRACKED : 0));
	transit->base[i] = (uint16_t)(slot.base | (slot.learn ? SHUNT_SLOT_LEARN : 0));
	transit->t0[i] = slot.base == slot.owner ? 0 : slot.t0;
	if (!slot.tracked)
		transit->range[i] = 0;
}

int transit_init(struct transit *out, uint32_t slots)
{
	struct transit transit = {
		.slots = slots,
		.owner = calloc(slots + 1ul, sizeof(*transit.owner)),
		.base = calloc(slots + 1ul, sizeof(*transit.base)),
		.range = calloc(slots + 1ul, sizeof(*transit.range)),
		.t0 = calloc(slots + 1ul, sizeof(*transit.t0)),
	};

	if (!transit.owner || !transit.base || !transit.range || !transit.t0) {
		transit_free(&transit);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < slots; i++)
		transit.owner[i] = transit.base[i] = NONE;
	*out = transit;
	return 0;
}

void transit_free(struct transit *transit)
{
	free(transit->owner);
	free(transit->base);
	free(transit->range);
	free(transit->t0);
	*transit = (struct transit){};
}

bool transit_same(const struct transit *a, const struct transit *b)
{
	return a->slots == b->slots && a->own == b->own && !memcmp(a->owner, b->owner, a->slots * sizeof(*a->owner)) &&
	       !memcmp(a->base, b->base, a->slots * sizeof(*a->base)) &&
	       !memcmp(a->range, b->range, a->slots * sizeof(*a->range)) &&
	       !memcmp(a->t0, b->t0, a->slots * sizeof(*a->t0));
}

uint32_t transit_tracked(const struct transit *transit)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < transit->slots; i++)
		n += !!(transit->owner[i] & SHUNT_SLOT_TRACKED);
	return n;
}

/* ---- changes of owners ---- */

/* gone: the old owner is, or there was none, so that nothing can be alive there. */
static struct slot change(struct slot slot, uint16_t owner, bool gone, uint32_t now)
{
	if (owner == slot.owner)
		return slot;
	if (slot.tracked && slot.base != slot.owner)
		return (struct slot){owner, slot.base, true, slot.learn && owner != slot.base, slot.t0};
	if (gone)
		return (struct slot){owner, owner, slot.tracked, false, 0};
	return (struct slot){owner, slot.owner, true, true, now};
}

static uint16_t now_called(const uint16_t *called, uint16_t id)
{
	return called[id] == NONE ? id : called[id];
}

void transit_change(struct transit *transit, const uint16_t *owner, const uint16_t *called, uint32_t now)
{
	for (uint32_t i = 0; i < transit->slots; i++) {
		struct slot slot = get(transit, i);
		bool gone = called[slot.owner] == NONE;

		slot.owner = now_called(called, slot.owner);
		slot.base = now_called(called, slot.base);
		slot = change(slot, owner[i], gone, now);
		if (called[slot.base] == NONE && slot.base != slot.owner)
			slot = (struct slot){slot.owner, slot.owner, slot.tracked, false, 0};
		put(transit, i, slot);
	}
}

void transit_restart(struct transit *transit, const uint16_t *owner, const uint16_t *called)
{
	for (uint32_t i = 0; i < transit->slots; i++) {
		struct slot slot = get(transit, i);

		/* No entry is left that could disagree with a base that is the owner, or is gone. */
		if (!slot.tracked || called[slot.base] == NONE || called[slot.base] == owner[i])
			slot = (struct slot){.owner = owner[i]};
		else
			slot = (struct slot){owner[i], called[slot.base], true, slot.learn, slot.t0};
		put(transit, i, slot);
	}
}

void transit_set(struct transit *transit, const uint16_t *owner)
{
	for (uint32_t i = 0; i < transit->slots; i++)
		put(transit, i, (struct slot){.owner = owner[i]});
}

uint32_t transit_removed(struct transit *transit, uint32_t id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < transit->slots; i++) {
		struct slot slot = get(transit, i);

		if (!slot.tracked || slot.base != id || slot.owner == id)
			continue;
		put(transit, i, (struct slot){slot.owner, slot.owner, true, false, 0});
		n++;
	}
	return n;
}

/* ---- time ---- */

/* Deciseconds until t0 + span; 0: it is past. */
static uint32_t left(uint32_t t0, uint32_t span, uint32_t now)
{
	uint32_t age = now - t0;

	return age >= span ? 0 : span - age;
}

static bool settles(const struct slot *slot)
{
	return slot->tracked && slot->base != slot->owner && slot->owner != NONE;
}

static uint32_t settle_span(const struct transit_times *times)
{
	return times->blocked ? CAP * times->settle : times->settle;
}

struct transit_done transit_pass(struct transit *transit, const struct transit_times *times)
{
	struct transit_done done = {};

	for (uint32_t i = 0; i < transit->slots; i++) {
		struct slot slot = get(transit, i);

		if (slot.learn && !left(slot.t0, times->learn, times->now)) {
			slot.learn = false;
			done.learned++;
		}
		if (settles(&slot) && !left(slot.t0, settle_span(times), times->now)) {
			slot.base = slot.owner;
			slot.learn = false;
			done.settled++;
			done.forced += times->blocked;
		}
		if (slot.tracked)
			put(transit, i, slot);
	}
	return done;
}

uint32_t transit_due(const struct transit *transit, const struct transit_times *times)
{
	uint32_t due = UINT32_MAX;

	for (uint32_t i = 0; i < transit->slots; i++) {
		struct slot slot = get(transit, i);
		uint32_t at;

		if (slot.learn) {
			at = left(slot.t0, times->learn, times->now);
			due = at < due ? at : due;
		}
		if (settles(&slot)) {
			at = left(slot.t0, settle_span(times), times->now);
			due = at < due ? at : due;
		}
	}
	return due;
}

uint32_t transit_untrack(struct transit *transit, const bool *dirty)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < transit->slots; i++) {
		struct slot slot = get(transit, i);

		if (!slot.tracked || slot.base != slot.owner || dirty[i])
			continue;
		slot.tracked = false;
		put(transit, i, slot);
		n++;
	}
	return n;
}

/* ---- ages ---- */

#define SHIFT_MIN 30  /* 1.07 s */
#define LIMIT_MAX 127 /* units: above 128 an age says nothing */
#define TCP_UNITS 120
#define UDP_UNITS 10
#define CLOSING_MS 240000u
#define NS_PER_MS 1000000ull

/* Rounded up, so that a limit is never shorter than asked for. */
static uint64_t units(uint64_t ms, uint32_t shift)
{
	return (ms * NS_PER_MS + (1ull << shift) - 1) >> shift;
}

static uint32_t shift_for(uint64_t ms, uint64_t most)
{
	uint32_t shift = SHIFT_MIN;

	while (units(ms, shift) > most)
		shift++;
	return shift;
}

static uint64_t limit(uint64_t ms, uint32_t shift)
{
	uint64_t n = units(ms, shift);

	return n > LIMIT_MAX ? LIMIT_MAX : n;
}

uint64_t transit_limits(uint64_t settle_ms, uint64_t learn_ms, uint64_t in_force)
{
	uint32_t tcp = in_force ? SHUNT_LIMITS_TCP_SHIFT(in_force) : shift_for(settle_ms, TCP_UNITS);
	uint32_t udp = in_force ? SHUNT_LIMITS_UDP_SHIFT(in_force) : shift_for(learn_ms, UDP_UNITS);
	uint64_t closing_ms = settle_ms < CLOSING_MS ? settle_ms : CLOSING_MS;

	return SHUNT_LIMITS(tcp, udp, limit(settle_ms, tcp), limit(closing_ms, tcp), limit(learn_ms, udp));
}

uint64_t transit_settle_ms(uint64_t limits)
{
	return ((uint64_t)SHUNT_LIMITS_SETTLE(limits) << SHUNT_LIMITS_TCP_SHIFT(limits)) / NS_PER_MS;
}
