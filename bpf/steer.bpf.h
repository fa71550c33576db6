/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which backend a packet goes to: the owner of its hash's slot in the pool's table. */
#ifndef SHUNT_STEER_BPF_H
#define SHUNT_STEER_BPF_H

#include "answer.bpf.h"
#include "flow.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "pkt.bpf.h"
#include "trace.bpf.h"

static __always_inline __u64 flow_hash(const struct pkt *p, const struct shunt_snapshot *snap, __u32 mode)
{
	return shunt_flow_hash(&snap->key, mode, p->ipv6, &p->source, &p->destination, p->ports, p->protocol);
}

/* Not a reason: the slot is in transition. */
#define STEER_TRACKED ((enum shunt_reason) - 4)
struct tracked {
	__u32 base, ranges;
	__u64 limits;
};

/* capacity: slots of the size class, which is what the map holds; the table's own number is not larger. */
SHUNT_STAGE table_owner(struct pkt *p, struct tracked *tracked, void *outer, __u32 capacity)
{
	__u32 pool = p->pool, zero = 0;
	void *inner = bpf_map_lookup_elem(outer, &pool);
	const struct shunt_table *table;
	const __u16 *owner, *base;
	__u64 slot;

	if (!inner)
		return SHUNT_END(SHUNT_BUG_TABLE);
	table = bpf_map_lookup_elem(inner, &zero);
	if (!table || table->slots > capacity)
		return SHUNT_END(SHUNT_BUG_TABLE);
	slot = shunt_hash_slot(p->hash, table->slots);
	SHUNT_BOUND(slot, capacity);
	p->slot = slot;
	owner = (const void *)table + SHUNT_TABLE_OWNER(capacity);
	p->backend = owner[slot];
	SHUNT_OPAQUE(p->backend);
	if (likely(p->backend <= SHUNT_BACKEND_NONE)) {
		trace_table(p, table, NULL);
		return SHUNT_CONTINUE;
	}
	base = (const void *)table + SHUNT_TABLE_BASE(capacity);
	tracked->base = base[slot];
	tracked->ranges = table->ranges;
	tracked->limits = table->limits;
	trace_table(p, table, &base[slot]);
	return SHUNT_END(STEER_TRACKED);
}

/* What the out-of-line part needs of the packet. */
struct transit {
	struct flow flow;
	__u64 limits;
	__u32 l4, protocol;
	__u32 ranges, table_class, slot;
	__u32 quoted; /* looks for the flow's entry, and leaves none */
	/* Kept from packet to packet: the coarse clock moves once in a jiffy, and asking for it is a call. */
	__u64 jiffies, clock;
};

static __always_inline __u64 coarse_clock(struct transit *t)
{
	__u64 jiffies = bpf_jiffies64();

	if (t->jiffies != jiffies) {
		t->jiffies = jiffies;
		t->clock = bpf_ktime_get_coarse_ns();
	}
	return t->clock;
}

static __always_inline __u32 slot_range(void *outer, const struct transit *t, __u32 capacity)
{
	__u32 index = t->ranges, slot = t->slot, zero = 0;
	void *inner = bpf_map_lookup_elem(outer, &index);
	const __u32 *range = inner ? bpf_map_lookup_elem(inner, &zero) : NULL;

	SHUNT_OPAQUE(slot);
	return range && slot < capacity ? range[slot] : 0;
}

/* Of TCP, what kind of segment it is, and the high byte of its sequence number. */
static __always_inline int read_segment(struct xdp_md *ctx, struct transit *t)
{
	__u8 *tcp = (void *)(long)ctx->data + (t->l4 & SHUNT_L4_MASK), flags;

	if ((void *)(tcp + 20) > (void *)(long)ctx->data_end)
		return -1;
	flags = tcp[13];
	t->flow.isn = tcp[4];
	if ((flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		t->flow.kind = FLOW_SYN;
	else
		t->flow.kind = flags & (TCP_FIN | TCP_RST) ? FLOW_END : FLOW_SEGMENT;
	return 0;
}

/*
 * Completes t->flow, and follows the entry where that is all: the backend, or TRANSIT_DECIDE, or -1 where the packet is
 * too short.  Not in one chain of calls with flow_try(): stack is scarce.
 */
#define TRANSIT_DECIDE ((int)FLOW_NONE)
__noinline int steer_transit(struct xdp_md *ctx, struct transit *t)
{
	struct flow *f;
	__u64 clock;
	bool udp;

	if (!t)
		return -1;
	clock = coarse_clock(t);
	f = &t->flow;
	udp = t->protocol == IPPROTO_UDP;
	f->kind = t->quoted ? FLOW_QUOTED : FLOW_DATAGRAM;
	if (!t->quoted && !udp && read_segment(ctx, t))
		return -1;
	f->fp = shunt_flow_fp(f->hash, udp);
	f->now_tcp = clock >> SHUNT_LIMITS_TCP_SHIFT(t->limits) & 0xff;
	f->now_udp = clock >> SHUNT_LIMITS_UDP_SHIFT(t->limits) & 0xff;
	f->udp = udp;
	f->settle = SHUNT_LIMITS_SETTLE(t->limits);
	f->closing = SHUNT_LIMITS_CLOSING(t->limits);
	f->window = SHUNT_LIMITS_WINDOW(t->limits);
	if (t->table_class == SHUNT_TABLE_M)
		f->range = slot_range(&ranges_m, t, SHUNT_SLOTS_M);
	else if (t->table_class == SHUNT_TABLE_S)
		f->range = slot_range(&ranges_s, t, SHUNT_SLOTS_S);
	else
		f->range = slot_range(&ranges_l, t, SHUNT_SLOTS_L);
	return (int)flow_follow(f);
}

/*
 * Where the out-of-line part's arguments lie: 512 bytes of stack for a whole chain of calls are few.  Of this program
 * alone, and of one packet at a time on each CPU.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct transit);
} scratch_transit SEC(".maps");

_Static_assert((int)SHUNT_KIND_SYN == (int)FLOW_SYN && (int)SHUNT_KIND_QUOTED == (int)FLOW_QUOTED, "one list");

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

/* The slot is in transition: owner and base may differ, and connections are told apart by the flow table. */
SHUNT_STAGE steer_tracked(struct pkt *p, const struct shunt_snapshot *snap, const struct tracked *tracked)
{
	__u32 zero = 0;
	struct transit *t = bpf_map_lookup_elem(&scratch_transit, &zero);
	int to;

	if (!t)
		return SHUNT_END(SHUNT_BUG_TABLE);
	t->flow.hash = p->hash;
	t->flow.owner = p->backend & ~SHUNT_SLOT_TRACKED;
	t->flow.base = tracked->base & ~SHUNT_SLOT_LEARN;
	t->flow.learn = tracked->base & SHUNT_SLOT_LEARN;
	t->flow.pool = p->pool;
	t->flow.isn = 0;
	t->limits = tracked->limits;
	t->l4 = p->l4;
	t->protocol = p->protocol;
	t->ranges = tracked->ranges;
	t->table_class = p->table_class;
	t->slot = p->slot;
	t->quoted = p->quoted || p->by_address;
	if (p->hash_mode != SHUNT_HASH_5TUPLE)
		t->flow.hash = flow_hash(p, snap, SHUNT_HASH_5TUPLE);
	to = steer_transit(p->ctx, t);
	if (to < 0)
		p->backend = FLOW_NONE;
	else
		p->backend = unlikely(to == TRANSIT_DECIDE) ? flow_steer(&t->flow) : (__u32)to & FLOW_NONE;
	trace_transit(&t->flow);
	return p->backend == SHUNT_BACKEND_NONE ? SHUNT_DROP_TRANSIT : SHUNT_CONTINUE;
}

SHUNT_STAGE slot_owner(struct pkt *p, struct tracked *tracked)
{
	if (p->table_class == SHUNT_TABLE_M)
		return table_owner(p, tracked, &tables_m, SHUNT_SLOTS_M);
	if (p->table_class == SHUNT_TABLE_S)
		return table_owner(p, tracked, &tables_s, SHUNT_SLOTS_S);
	return table_owner(p, tracked, &tables_l, SHUNT_SLOTS_L);
}

SHUNT_STAGE steer(struct pkt *p, const struct shunt_snapshot *snap)
{
	enum shunt_reason reason;
	struct tracked tracked;

	/* Predicted: the hash need not wait for the service's entry, and its mode is a constant. */
	if (unlikely(p->hash_mode != SHUNT_HASH_5TUPLE))
		p->hash = flow_hash(p, snap, p->hash_mode);
	else
		p->hash = flow_hash(p, snap, SHUNT_HASH_5TUPLE);
	trace_service(p);
	reason = slot_owner(p, &tracked);
	if (unlikely(reason == STEER_TRACKED))
		return steer_tracked(p, snap, &tracked);
	if (unlikely(reason != SHUNT_CONTINUE))
		return reason;
	if (unlikely(p->backend == SHUNT_BACKEND_NONE))
		return SHUNT_END(SHUNT_DROP_NO_BACKEND);
	return SHUNT_CONTINUE;
}

#endif
