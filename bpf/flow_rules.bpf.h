/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which of two backends a connection of a slot in transition is on: the table of docs/connections.md, row by row. */
#ifndef SHUNT_FLOW_RULES_BPF_H
#define SHUNT_FLOW_RULES_BPF_H

#include <shunt/flow.h>
#include "maps.bpf.h"

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
	__u32 at;   /* its place in both buckets, 0 .. 15, or FLOW_OWN */
	__u32 fp;
	__u32 kind; /* enum flow_kind */
	__u32 udp;
	__u32 isn; /* bits 31..24 of the sequence number */
	__u32 owner, base, learn;
	__u32 to;		       /* the decision */
	__u32 pool, slot, ranges;      /* ranges: index of the pool's ranges */
	__u32 table_class, range, own; /* own: number of the slot's own word, 0: it has none */
	__u32 first;		       /* the slot has no entry yet: its own word is 0 */
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

/*
 * What nearly every packet in transition is: of a flow whose entry is live, names a backend in service and was used in
 * this unit of time, so that nothing is written.  Decided as flow_try() does, but inline.  FLOW_NONE: it is something
 * else.
 */
static __always_inline __u32 flow_live(__u64 word, __u32 now)
{
	__u32 backend = SHUNT_FLOW_BACKEND(word);
	__u64 state;

	if (SHUNT_FLOW_STATUS(word) != SHUNT_FLOW_LIVE || SHUNT_FLOW_SEEN(word) != now)
		return FLOW_NONE;
	state = backend_state(backend);
	return valid(word, state) && usable(state) ? backend : FLOW_NONE;
}

#endif
