/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Of a packet whose slot is in transition: the backend of its connection. */
#ifndef SHUNT_TRANSIT_BPF_H
#define SHUNT_TRANSIT_BPF_H

#include "answer.bpf.h"
#include "flow.bpf.h"
#include "parse.bpf.h"
#include "pkt.bpf.h"

static __always_inline __u64 flow_hash(const struct pkt *p, const struct shunt_snapshot *snap, __u32 mode)
{
	return shunt_flow_hash(&snap->key, mode, p->ipv6, &p->source, &p->destination, p->ports, p->protocol);
}

/* What the table says of the slot besides its owner.  base: not read where an entry decides, a cache line less. */
struct tracked {
	const __u16 *base;
	__u32 ranges, own;
	__u64 limits;
};

/*
 * Arguments of the functions of flow.bpf.h, which lie here because 512 bytes of stack for a whole chain of calls are
 * few.  Of this program alone, and of one packet at a time on each CPU.
 */
struct transit {
	/* Kept from packet to packet: the coarse clock moves once in a jiffy, and asking for it is a call. */
	__u64 jiffies, clock;
	struct flow flow;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct transit);
} scratch_transit SEC(".maps");

_Static_assert((int)SHUNT_KIND_SYN == (int)FLOW_SYN && (int)SHUNT_KIND_QUOTED == (int)FLOW_QUOTED, "one list");

static __always_inline __u64 coarse_clock(struct transit *t)
{
	__u64 jiffies = bpf_jiffies64();

	if (unlikely(t->jiffies != jiffies)) {
		t->jiffies = jiffies;
		t->clock = bpf_ktime_get_coarse_ns();
	}
	return t->clock;
}

/* What the functions out of line need of a packet besides, in registers. */
#define TRANSIT_PLACE(p, tracked) ((__u64)(tracked)->ranges << 32 | (p)->slot)
#define TRANSIT_WHAT(p, udp, tracked)                                                                                  \
	((p)->l4 | (__u64)(udp) << 16 | (__u64)(p)->table_class << 17 | (__u64)(tracked)->own << 32)
#define TRANSIT_L4(what) ((what)&SHUNT_L4_MASK)
#define TRANSIT_UDP(what) ((what) >> 16 & 1)
#define TRANSIT_CLASS(what) ((what) >> 17 & 3)
/* The slot's own word; 0: it has none. */
#define TRANSIT_OWN(what, place) ((what) >> 32 ? (__u32)((what) >> 32) + (__u32)(place) : 0)

/* Now, in the protocol's units of the table's limits. */
static __always_inline __u32 transit_now(struct transit *t, __u64 limits, bool udp)
{
	return coarse_clock(t) >> (udp ? SHUNT_LIMITS_UDP_SHIFT(limits) : SHUNT_LIMITS_TCP_SHIFT(limits)) & 0xff;
}

/* A whole header of neither SYN, FIN nor RST. */
static __always_inline bool plain_segment(const __u8 *tcp, const void *end)
{
	return (const void *)(tcp + 20) <= end && !(tcp[13] & (TCP_SYN | TCP_FIN | TCP_RST));
}

/*
 * What nearly every packet in transition is: a datagram or plain segment of a flow whose entry is live, names a backend
 * in service and was used in this unit of time, so that nothing is written.  Decided as flow_try() does.  The backend,
 * or FLOW_NONE: it is something else.  Global, and so verified once; its arguments are in registers, because what is
 * stored for a function costs as much as the call.
 */
__noinline int transit_live(__u64 hash, __u64 limits, __u64 place, __u64 what)
{
	__u64 *own = flow_own(TRANSIT_OWN(what, place)), word = own ? READ_ONCE(*own) : 0;
	__u32 zero = 0, fp = shunt_flow_fp(hash, TRANSIT_UDP(what)), now;
	struct transit *t = bpf_map_lookup_elem(&scratch_transit, &zero);
	bool udp = TRANSIT_UDP(what);

	if (!t || (own && !word))
		return FLOW_NONE;
	now = transit_now(t, limits, udp);
	if (SHUNT_FLOW_FP(word) != fp)
		word = flow_ranged(hash, slot_range(TRANSIT_CLASS(what), place >> 32, place), fp);
	return (int)flow_live(word, now);
}

/*
 * Of a slot of a table of class M whose own word another connection has: reads what the search will read, the range and
 * both buckets, so that they are on their way together with all that comes before it.
 */
__noinline int transit_touch(__u64 hash, __u64 place)
{
	__u32 range = range_in(&ranges_m, place >> 32, (__u32)place, SHUNT_SLOTS_M);
	__u32 first = shunt_flow_first(hash, range), second = shunt_flow_second(hash, range);
	const struct shunt_flow_bucket *bucket = range ? bpf_map_lookup_elem(&flows, &first) : NULL;

	if (bucket)
		READ_ONCE(bucket->word[0]);
	bucket = range ? bpf_map_lookup_elem(&flows, &second) : NULL;
	if (bucket)
		READ_ONCE(bucket->word[0]);
	return 0;
}

/* Of TCP, what kind of segment it is, and the high byte of its sequence number. */
static __always_inline int read_segment(struct xdp_md *ctx, struct flow *f, __u64 what)
{
	__u8 *tcp = (void *)(long)ctx->data + TRANSIT_L4(what), flags;

	if ((void *)(tcp + 20) > (void *)(long)ctx->data_end)
		return -1;
	flags = tcp[13];
	f->isn = tcp[4];
	if ((flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		f->kind = FLOW_SYN;
	else
		f->kind = flags & (TCP_FIN | TCP_RST) ? FLOW_END : FLOW_SEGMENT;
	return 0;
}

/* Completes t->flow; -1: the packet is too short. */
__noinline int transit_flow(struct xdp_md *ctx, struct transit *t, __u64 limits, __u64 place, __u64 what)
{
	bool udp = TRANSIT_UDP(what);
	struct flow *f;

	if (!t)
		return -1;
	f = &t->flow;
	if (f->kind != FLOW_QUOTED && !udp && read_segment(ctx, f, what))
		return -1;
	f->fp = shunt_flow_fp(f->hash, udp);
	f->table_class = TRANSIT_CLASS(what);
	f->slot = (__u32)place;
	f->ranges = place >> 32;
	f->range = 0;
	f->own = TRANSIT_OWN(what, place);
	f->now_tcp = transit_now(t, limits, false);
	f->now_udp = transit_now(t, limits, true);
	f->udp = udp;
	f->settle = SHUNT_LIMITS_SETTLE(limits);
	f->closing = SHUNT_LIMITS_CLOSING(limits);
	f->window = SHUNT_LIMITS_WINDOW(limits);
	return 0;
}

static __always_inline void trace_transit(const struct flow *f)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_TRANSIT);

	if (!t)
		return;
	/* Of another flow: the word that would have given way. */
	t->entry = SHUNT_FLOW_FP(f->word) == f->fp ? f->word : 0;
	t->next = f->next;
	t->kind = f->kind;
	t->range = f->range;
}

/* Any packet that is not of a live entry. */
static __always_inline __u32 transit_decide(const struct pkt *p, const struct tracked *tracked, __u64 hash, bool quoted,
					    __u64 what)
{
	__u32 zero = 0, backend, base = *tracked->base;
	struct transit *t = bpf_map_lookup_elem(&scratch_transit, &zero);
	struct flow *f;

	if (!t)
		return FLOW_NONE;
	f = &t->flow;
	f->hash = hash;
	f->kind = quoted ? FLOW_QUOTED : FLOW_DATAGRAM;
	f->isn = 0;
	f->owner = p->backend & ~SHUNT_SLOT_TRACKED;
	f->base = base & ~SHUNT_SLOT_LEARN;
	f->learn = base & SHUNT_SLOT_LEARN;
	f->pool = p->pool;
	if (transit_flow(p->ctx, t, tracked->limits, TRANSIT_PLACE(p, tracked), what))
		return FLOW_NONE;
	backend = flow_steer(f);
	trace_transit(f);
	return backend;
}

/* The slot is in transition: owner and base may differ, and connections are told apart by the flow table. */
SHUNT_STAGE steer_tracked(struct pkt *p, const struct shunt_snapshot *snap, const struct tracked *tracked)
{
	bool udp = p->protocol == IPPROTO_UDP;
	__u64 what = TRANSIT_WHAT(p, udp, tracked), hash = p->hash;
	bool quoted = p->quoted || p->by_address;
	__u32 backend = FLOW_NONE;

	if (unlikely(p->hash_mode != SHUNT_HASH_5TUPLE))
		hash = flow_hash(p, snap, SHUNT_HASH_5TUPLE);
	if (!SHUNT_EXPLAIN && p->common && (udp || plain_segment(pkt_l4(p), p->data_end)))
		backend = (__u32)transit_live(hash, tracked->limits, TRANSIT_PLACE(p, tracked), what) & FLOW_NONE;
	if (unlikely(backend == FLOW_NONE))
		backend = transit_decide(p, tracked, hash, quoted, what);
	p->backend = backend;
	return backend == FLOW_NONE ? SHUNT_DROP_TRANSIT : SHUNT_CONTINUE;
}

#endif
