/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Slots in transition: which of two backends a connection is on, by the table of docs/connections.md, row by row.
 * Out of line: in steady state no packet comes here.
 */
#ifndef SHUNT_FLOW_BPF_H
#define SHUNT_FLOW_BPF_H

#include <shunt/flow.h>
#include "maps.bpf.h"
#include "trace.bpf.h"

enum flow_kind { FLOW_SYN, FLOW_SEGMENT, FLOW_END /* FIN or RST */, FLOW_DATAGRAM, FLOW_QUOTED /* by an ICMP error */ };

#define FLOW_NONE SHUNT_BACKEND_NONE
#define FLOW_TRIES 8 /* four were too few once in 650,000 races of four threads */

/*
 * The packet and its slot, as the rules see them.  The functions that take it are global, so that the verifier judges
 * each once, for any content, and not again on every path that calls it.
 */
struct flow {
	__u64 hash; /* of the 5-tuple, whatever the service's hash mode */
	__u64 word; /* the entry, 0 if there is none */
	__u64 next; /* what it becomes; `word`: nothing changes */
	__u32 at;   /* its place in both buckets, 0 .. 15 */
	__u32 fp;
	__u32 kind; /* enum flow_kind */
	__u32 udp;
	__u32 isn; /* bits 31..24 of the sequence number */
	__u32 owner, base, learn;
	__u32 to; /* the decision */
	__u32 pool, range;
	__u32 now_tcp, now_udp;	       /* in units of the protocol */
	__u32 settle, closing, window; /* idle limits, in units */
};

static __always_inline __u64 backend_state(__u32 id)
{
	const struct shunt_backend *backend = id == FLOW_NONE ? NULL : bpf_map_lookup_elem(&backends, &id);

	return backend ? READ_ONCE(backend->state) : 0;
}

/* May carry packets of connections that it holds. */
static __always_inline bool usable(__u64 state)
{
	return (state & SHUNT_BACKEND_USABLE) == SHUNT_BACKEND_USABLE;
}

/* May be given a new connection. */
static __always_inline bool takes(__u64 state)
{
	return (state & (SHUNT_BACKEND_USABLE | SHUNT_BACKEND_DRAINING)) == SHUNT_BACKEND_USABLE;
}

/* Does the entry's backend still exist, as the one it named? */
static __always_inline bool valid(__u64 word, __u64 state)
{
	return word && state & SHUNT_BACKEND_PRESENT && SHUNT_BACKEND_GENERATION(state) == SHUNT_FLOW_GENERATION(word);
}

static __always_inline __u32 now(const struct flow *f)
{
	return f->udp ? f->now_udp : f->now_tcp;
}

static __always_inline __u64 fresh(const struct flow *f, __u32 backend, __u64 state, __u32 status, __u32 isn)
{
	return shunt_flow_word(f->fp, isn, now(f), status, SHUNT_BACKEND_GENERATION(state), backend);
}

static __always_inline __u64 touched(const struct flow *f, __u64 word, __u32 status, __u32 isn)
{
	return shunt_flow_word(f->fp, isn, now(f), status, SHUNT_FLOW_GENERATION(word), SHUNT_FLOW_BACKEND(word));
}

static __always_inline __u32 decide_syn(struct flow *f)
{
	__u64 word, state, owner;
	__u32 status;

	word = f->word;
	status = SHUNT_FLOW_STATUS(word);
	state = backend_state(SHUNT_FLOW_BACKEND(word));
	if (valid(word, state) && usable(state)) {
		if (SHUNT_FLOW_ISN(word) == f->isn) {
			f->next = touched(f, word, status, f->isn);
			return SHUNT_FLOW_BACKEND(word);
		}
		if (takes(state)) {
			f->next = touched(f, word, status == SHUNT_FLOW_CLOSING ? SHUNT_FLOW_LIVE : status, f->isn);
			return SHUNT_FLOW_BACKEND(word);
		}
	}
	owner = backend_state(f->owner);
	if (!takes(owner))
		return FLOW_NONE;
	if (word || f->owner != f->base)
		f->next = fresh(f, f->owner, owner, SHUNT_FLOW_HALF, f->isn);
	return f->owner;
}

/* The first segments lie within 64 KiB of the initial sequence number. */
static __always_inline bool in_window(const struct flow *f)
{
	return ((f->isn - SHUNT_FLOW_ISN(f->word)) & 0xff) <= 1;
}

/* The entry names a backend that still exists. */
static __always_inline __u32 follow_entry(struct flow *f, __u64 state, __u64 base, __u32 or_owner)
{
	__u32 status = SHUNT_FLOW_STATUS(f->word), backend = SHUNT_FLOW_BACKEND(f->word);

	/* Not the connection of the SYN that made the entry, but an older one with the same addresses. */
	if (status == SHUNT_FLOW_HALF && f->kind != FLOW_QUOTED && !in_window(f) && backend != f->base)
		return usable(base) ? f->base : or_owner;
	if (!usable(state))
		return or_owner;
	if (f->kind == FLOW_END)
		status = SHUNT_FLOW_CLOSING;
	else if (status != SHUNT_FLOW_CLOSING)
		status = SHUNT_FLOW_LIVE;
	f->next = touched(f, f->word, status, SHUNT_FLOW_ISN(f->word));
	return backend;
}

static __always_inline __u32 decide_segment(struct flow *f)
{
	__u64 state, base;
	__u32 or_owner;
	bool differ;

	differ = f->owner != f->base;
	state = backend_state(SHUNT_FLOW_BACKEND(f->word));
	base = backend_state(f->base);
	or_owner = usable(backend_state(f->owner)) ? f->owner : FLOW_NONE;
	if (valid(f->word, state))
		return follow_entry(f, state, base, or_owner);
	if (usable(base)) {
		if (differ || f->word)
			f->next = fresh(f, f->base, base, SHUNT_FLOW_ADOPTED, 0);
		return f->base;
	}
	/* Dropped, but remembered: the connection is base's, and base may come back. */
	if (or_owner == FLOW_NONE && base & SHUNT_BACKEND_PRESENT && differ)
		f->next = fresh(f, f->base, base, SHUNT_FLOW_ADOPTED, 0);
	return or_owner;
}

static __always_inline __u32 decide_datagram(struct flow *f)
{
	__u64 word, state;
	bool kept;
	__u32 to;

	word = f->word;
	state = backend_state(SHUNT_FLOW_BACKEND(word));
	kept = valid(word, state) && shunt_flow_age(now(f), word) <= f->window;
	if (kept && usable(state)) {
		f->next = touched(f, word, SHUNT_FLOW_LIVE, SHUNT_FLOW_ISN(word));
		return SHUNT_FLOW_BACKEND(word);
	}
	to = !kept && f->learn && usable(backend_state(f->base)) ? f->base : f->owner;
	state = backend_state(to);
	if (!usable(state))
		return FLOW_NONE;
	if (word || f->owner != f->base)
		f->next = fresh(f, to, state, SHUNT_FLOW_ADOPTED, 0);
	return to;
}

/* Sets f->next.  The backend, or FLOW_NONE: drop. */
static __always_inline int flow_decide(struct flow *f)
{
	f->next = f->word;
	if (f->udp)
		return decide_datagram(f);
	return f->kind == FLOW_SYN ? decide_syn(f) : decide_segment(f);
}

static __always_inline struct shunt_flow_bucket *flow_bucket(const struct flow *f, bool second)
{
	__u32 index = second ? shunt_flow_second(f->hash, f->range) : shunt_flow_first(f->hash, f->range);

	return f->range ? bpf_map_lookup_elem(&flows, &index) : NULL;
}

#define FLOW_PLACES (2 * SHUNT_FLOW_WAYS)

/* Both choices may be the same bucket: then there are places below SHUNT_FLOW_WAYS alone, and each word has one. */
static __always_inline bool flow_one_bucket(const struct flow *f)
{
	return shunt_flow_first(f->hash, f->range) == shunt_flow_second(f->hash, f->range);
}

/* A word by its place in both buckets, or NULL. */
static __always_inline __u64 *flow_word(const struct flow *f, __u32 place)
{
	struct shunt_flow_bucket *bucket = flow_bucket(f, place >= SHUNT_FLOW_WAYS);

	return bucket ? &bucket->word[place % SHUNT_FLOW_WAYS] : NULL;
}

/* The place of the first word with the flow's fingerprint, that at `except` apart; -1 if there is none. */
static __always_inline int flow_place(const struct flow *f, int except)
{
	struct shunt_flow_bucket *bucket = flow_bucket(f, false);

	for (int i = 0; bucket && i < SHUNT_FLOW_WAYS; i++)
		if (SHUNT_FLOW_FP(READ_ONCE(bucket->word[i])) == f->fp && i != except)
			return i;
	bucket = flow_one_bucket(f) ? NULL : flow_bucket(f, true);
	for (int i = 0; bucket && i < SHUNT_FLOW_WAYS; i++)
		if (SHUNT_FLOW_FP(READ_ONCE(bucket->word[i])) == f->fp && i + SHUNT_FLOW_WAYS != except)
			return i + SHUNT_FLOW_WAYS;
	return -1;
}

/* The same for one that was just written at f->at: whether it is somewhere else, too. */
__noinline int flow_twice(struct flow *f)
{
	return f ? flow_place(f, f->at) >= 0 : 0;
}

/* Words are looked at without a branch for each: where the flow's lies in its bucket cannot be predicted. */
static __always_inline __u64 flow_match(const struct shunt_flow_bucket *bucket, __u32 fp, __u64 *n)
{
	__u64 found = 0;

/* Unrolled, it takes more stack than a chain of calls has. */
#pragma nounroll
	for (int i = 0; i < SHUNT_FLOW_WAYS; i++) {
		__u64 word = READ_ONCE(bucket->word[i]), mask = (word >> 38) ^ fp;

		SHUNT_OPAQUE(mask);
		mask = (__u64)((__s64)(mask - 1) >> 63);
		found |= word & mask;
		*n -= mask;
	}
	return found;
}

/*
 * What nearly every packet in transition is: of a flow whose entry is live, names a backend in service and was used in
 * this unit of time, so that nothing is written.  Decided as flow_try() does, but inline.  FLOW_NONE: it is something
 * else.
 */
static __always_inline __u32 flow_live(__u64 hash, __u32 range, bool udp, __u32 now)
{
	__u32 fp = shunt_flow_fp(hash, udp), index = shunt_flow_first(hash, range), backend;
	struct shunt_flow_bucket *bucket = range ? bpf_map_lookup_elem(&flows, &index) : NULL;
	__u64 word, n = 0, state;

	if (!bucket)
		return FLOW_NONE;
	word = READ_ONCE(bucket->word[0]);
	if (SHUNT_FLOW_FP(word) != fp) {
		word = flow_match(bucket, fp, &n);
		if (unlikely(!n)) {
			index = shunt_flow_second(hash, range);
			bucket = bpf_map_lookup_elem(&flows, &index);
			word = bucket ? flow_match(bucket, fp, &n) : 0;
		}
		if (n != 1)
			return FLOW_NONE;
	}
	if (SHUNT_FLOW_STATUS(word) != SHUNT_FLOW_LIVE || SHUNT_FLOW_SEEN(word) != now)
		return FLOW_NONE;
	backend = SHUNT_FLOW_BACKEND(word);
	state = backend_state(backend);
	return valid(word, state) && usable(state) ? backend : FLOW_NONE;
}

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
	for (__u32 i = 0; i < FLOW_PLACES && i < places; i++) {
		__u64 *place = flow_word(f, i), word;
		int worth;

		if (!place)
			break;
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
	__u64 *place = flow_word(f, f->at % FLOW_PLACES);

	return place && (SHUNT_EXPLAIN || __sync_val_compare_and_swap(place, from, to) == from);
}

/* The key is copied: kernel 6.1 takes none that lies where a global function's argument points. */
static __always_inline struct shunt_pool_stats *flow_stats(const struct flow *f)
{
	__u32 pool = f->pool;

	return SHUNT_EXPLAIN ? NULL : bpf_map_lookup_elem(&pool_stats, &pool);
}

/* Sets f->at to an empty word, if there is one: nothing is worth more. */
static __always_inline bool flow_empty(struct flow *f)
{
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
	if (flow_twice(f) && flow_swap(f, f->next, 0))
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
 * Decide once by what the table holds now, and sets f->to.  FLOW_INSERT: a new entry is wanted, which is left to the
 * caller, because kernel 6.1 rounds each frame of a chain of calls up to 32 bytes of 512.
 */
__noinline int flow_try(struct flow *f)
{
	__u64 *place;
	int at;

	if (!f)
		return FLOW_REFUSED;
	at = flow_place(f, -1);
	place = at < 0 ? NULL : flow_word(f, at % FLOW_PLACES);
	f->at = at;
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
