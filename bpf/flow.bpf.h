/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flow table: entries are found, made, changed and given up, by the rules of flow_rules.bpf.h.
 * Out of line: in steady state no packet comes here.
 */
#ifndef SHUNT_FLOW_BPF_H
#define SHUNT_FLOW_BPF_H

#include "flow_places.bpf.h"
#include "trace.bpf.h"

/*
 * How gladly a word is given up for a new one: 0 never; empty before stale before idle; then the oldest ADOPTED, and
 * for a SYN alone the oldest HALF of at least two units.
 */
#define FLOW_WORTH_ADOPTED 0x200

__noinline int flow_worth(struct flow *f, __u64 word)
{
	__u32 udp = SHUNT_FLOW_IS_UDP(word), status = SHUNT_FLOW_STATUS(word), age;

	if (!f)
		return 0;
	if (!word)
		return 0x500;
	if (!valid(word, backend_state(SHUNT_FLOW_BACKEND(word))))
		return 0x400;
	age = shunt_flow_age(udp ? f->now_udp : f->now_tcp, word);
	if ((status == SHUNT_FLOW_CLOSING && age > f->closing) ||
	    (status == SHUNT_FLOW_LIVE && age > (udp ? f->window : f->settle)))
		return 0x300;
	if (status == SHUNT_FLOW_ADOPTED)
		return FLOW_WORTH_ADOPTED | age;
	if (status == SHUNT_FLOW_HALF && f->kind == FLOW_SYN && age >= 2)
		return 0x100 | age;
	return 0;
}

/* Sets f->at and f->word to the word that is given up first, and returns its worth; 0: there is none. */
__noinline int flow_victim(struct flow *f)
{
	__u32 places;
	int best = 0;

	if (!f)
		return 0;
	places = flow_one_bucket(f) ? SHUNT_FLOW_WAYS : FLOW_PLACES;
	for (__u32 i = 0; i <= FLOW_OWN; i++) {
		__u64 *place = i < places || i == FLOW_OWN ? flow_word(f, i) : NULL, word;
		int worth;

		if (!place)
			continue;
		word = READ_ONCE(*place);
		worth = flow_worth(f, word);
		if (worth <= best)
			continue;
		best = worth;
		f->at = i;
		f->word = word;
	}
	return best;
}

enum flow_outcome { FLOW_DONE, FLOW_AGAIN, FLOW_REFUSED, FLOW_INSERT };

/* Replace the word at f->at by f->next if it still is f->word. */
static __always_inline bool flow_swap(struct flow *f, __u64 from, __u64 to)
{
	__u64 *place = flow_word(f, FLOW_AT(f->at));

	return place && (SHUNT_EXPLAIN || __sync_val_compare_and_swap(place, from, to) == from);
}

/* The key is copied: kernel 6.1 takes none that lies where a global function's argument points. */
static __always_inline struct shunt_pool_stats *flow_stats(const struct flow *f)
{
	__u32 pool = f->pool;

	return SHUNT_EXPLAIN ? NULL : bpf_map_lookup_elem(&pool_stats, &pool);
}

/* Sets f->at and f->word to a word without an entry, if there is one: nothing is worth more. */
static __always_inline bool flow_empty(struct flow *f)
{
	__u64 *own = flow_own(f->own);

	if (f->first || (own && READ_ONCE(*own) == SHUNT_FLOW_USED)) {
		f->at = FLOW_OWN;
		f->word = f->first ? 0 : SHUNT_FLOW_USED;
		return true;
	}
	for (int second = 0; second < 2; second++) {
		struct shunt_flow_bucket *bucket = flow_bucket(f, second);

		for (int i = 0; bucket && i < SHUNT_FLOW_WAYS; i++) {
			if (READ_ONCE(bucket->word[i]))
				continue;
			f->at = second * SHUNT_FLOW_WAYS + i;
			f->word = 0;
			return true;
		}
	}
	return false;
}

__noinline int flow_insert(struct flow *f)
{
	struct shunt_pool_stats *stats;
	int worth = 0;

	if (!f)
		return FLOW_REFUSED;
	if (!flow_empty(f)) {
		worth = flow_victim(f);
		if (!worth)
			return FLOW_REFUSED;
	}
	if (!flow_swap(f, f->word, f->next))
		return FLOW_AGAIN;
	/* Another CPU may have inserted the same flow: who sees the other gives way, unless his entry was used. */
	if (!f->first && flow_twice(f) && flow_swap(f, f->next, f->at == FLOW_OWN ? SHUNT_FLOW_USED : 0))
		return FLOW_AGAIN;
	stats = flow_stats(f);
	if (stats) {
		stats->inserted++;
		if ((worth & ~0xff) == FLOW_WORTH_ADOPTED) {
			stats->replaced++;
			stats->lost_at = bpf_ktime_get_coarse_ns();
		}
	}
	return FLOW_DONE;
}

static __always_inline void count_base(const struct flow *f)
{
	struct shunt_pool_stats *stats = flow_stats(f);

	if (stats)
		stats->base++;
}

/* No room for the entry: a SYN without one must not go where the segments after it would not. */
static __always_inline __u32 flow_refused(const struct flow *f)
{
	struct shunt_pool_stats *stats = flow_stats(f);
	__u64 base = backend_state(f->base);

	if (stats) {
		stats->refused++;
		stats->lost_at = bpf_ktime_get_coarse_ns();
	}
	trace_refused();
	if (f->kind != FLOW_SYN)
		return f->to;
	if (!takes(base))
		return usable(base) ? FLOW_NONE : f->to;
	count_base(f);
	return f->base;
}

/*
 * Where the flow's entry is, f->at and f->word, and its place; NULL: there is none.  While the slot's own word is 0 no
 * entry of the slot is anywhere else, and nothing else is looked at.
 */
static __always_inline __u64 *flow_find(struct flow *f)
{
	__u64 *own = flow_own(f->own);
	int at = -1;

	f->first = own && !READ_ONCE(*own);
	if (!f->first || SHUNT_EXPLAIN)
		f->range = slot_range(f->table_class, f->ranges, f->slot);
	if (!f->range && !f->first)
		f->own = 0; /* who scans does not look there */
	if (!f->first)
		at = flow_place(f, -1);
	f->at = at;
	return at < 0 ? NULL : flow_word(f, FLOW_AT(at));
}

/*
 * Decide once by what the table holds now, and sets f->to.  FLOW_INSERT: a new entry is wanted, which is left to the
 * caller, because kernel 6.1 rounds each frame of a chain of calls up to 32 bytes of 512.
 */
__noinline int flow_try(struct flow *f)
{
	__u64 *place;

	if (!f)
		return FLOW_REFUSED;
	place = flow_find(f);
	f->word = place ? READ_ONCE(*place) : 0;
	if (place && SHUNT_FLOW_FP(f->word) != f->fp)
		return FLOW_AGAIN;
	f->to = flow_decide(f);
	if (!place && f->to == f->base && f->owner != f->base)
		count_base(f);
	if (f->next == f->word || f->kind == FLOW_QUOTED)
		return FLOW_DONE;
	if (!place)
		return FLOW_INSERT;
	return flow_swap(f, f->word, f->next) ? FLOW_DONE : FLOW_AGAIN;
}

/*
 * The backend for the packet, or FLOW_NONE.  Where other CPUs were faster each time, a packet with an entry follows
 * what it read last, and one without is treated as if there were no room.
 */
static __always_inline __u32 flow_steer(struct flow *f)
{
	int outcome = FLOW_AGAIN;

	f->to = FLOW_NONE;
	for (int i = 0; i < FLOW_TRIES && outcome == FLOW_AGAIN; i++) {
		outcome = flow_try(f);
		if (outcome == FLOW_INSERT)
			outcome = flow_insert(f);
	}
	return outcome == FLOW_DONE || SHUNT_FLOW_FP(f->word) == f->fp ? f->to : flow_refused(f);
}

#endif
