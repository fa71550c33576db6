/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which backend a packet goes to: the owner of its hash's slot in the pool's table. */
#ifndef SHUNT_STEER_BPF_H
#define SHUNT_STEER_BPF_H

#include "maps.bpf.h"
#include "pkt.bpf.h"
#include "trace.bpf.h"
#include "transit.bpf.h"

/* Not a reason: the slot is in transition. */
#define STEER_TRACKED ((enum shunt_reason) - 4)

/*
 * The pool's table in force, or NULL.  capacity: slots of the size class, which is what the map holds; the table's own
 * number is not larger.
 */
static __always_inline const struct shunt_table *pool_table(void *outer, __u32 pool, __u32 capacity)
{
	__u32 zero = 0;
	void *inner = bpf_map_lookup_elem(outer, &pool);
	const struct shunt_table *table = inner ? bpf_map_lookup_elem(inner, &zero) : NULL;

	return table && table->slots <= capacity ? table : NULL;
}

/* What the slot of a hash says, `base[*slot]` beside it where the slot is tracked. */
static __always_inline __u32 table_slot(const struct shunt_table *table, __u64 hash, __u32 capacity, __u64 *slot)
{
	const __u16 *owner = (const void *)table + SHUNT_TABLE_OWNER(capacity);
	const __u16 *id = (const void *)table + SHUNT_TABLE_ID(capacity);
	const __u8 *of = (const void *)table + SHUNT_TABLE_OF(capacity);

	*slot = shunt_hash_slot(hash, table->slots);
	SHUNT_BOUND(*slot, capacity);
	if (capacity > SHUNT_SLOTS_S && likely(table->ranges == SHUNT_TABLE_DENSE))
		return id[of[*slot]];
	return owner[*slot];
}

static __always_inline void track(struct tracked *tracked, const struct shunt_table *table, __u64 slot, __u32 capacity)
{
	tracked->base = (const __u16 *)((const void *)table + SHUNT_TABLE_BASE(capacity)) + slot;
	tracked->ranges = table->ranges;
	tracked->own = table->own;
	tracked->limits = table->limits;
}

SHUNT_STAGE table_owner(struct pkt *p, struct tracked *tracked, void *outer, __u32 capacity)
{
	const struct shunt_table *table = pool_table(outer, p->pool, capacity);
	__u64 slot;

	if (!table)
		return SHUNT_END(SHUNT_BUG_TABLE);
	p->backend = table_slot(table, p->hash, capacity, &slot);
	p->slot = slot;
	SHUNT_OPAQUE(p->backend);
	if (likely(p->backend <= SHUNT_BACKEND_NONE)) {
		trace_table(p, table, NULL);
		return SHUNT_CONTINUE;
	}
	track(tracked, table, slot, capacity);
	trace_table(p, table, tracked->base);
	return SHUNT_END(STEER_TRACKED);
}

SHUNT_STAGE slot_owner(struct pkt *p, struct tracked *tracked)
{
	if (p->table_class == SHUNT_TABLE_M)
		return table_owner(p, tracked, &tables_m, SHUNT_SLOTS_M);
	if (p->table_class == SHUNT_TABLE_S)
		return table_owner(p, tracked, &tables_s, SHUNT_SLOTS_S);
	return table_owner(p, tracked, &tables_l, SHUNT_SLOTS_L);
}

/* The owner of the slot that a packet has if its service is what most are. */
struct ahead {
	const struct shunt_table *table;
	__u32 pool, owner;
	__u64 hash, slot;
	__u64 word; /* the slot's own in the flow table; 0: it has none, or is at rest */
};

/* Whether it is what most are, and there was a slot to look at. */
static __always_inline bool is_ahead(const struct pkt *p, const struct ahead *ahead)
{
	return ahead->pool == p->pool && p->table_class == SHUNT_TABLE_M && p->hash_mode == SHUNT_HASH_5TUPLE &&
	       ahead->owner != SHUNT_BACKEND_NONE;
}

/* ahead: NULL, or where look_ahead() was; if that was it, the slot is in transition. */
SHUNT_STAGE steer(struct pkt *p, const struct shunt_snapshot *snap, const struct ahead *ahead)
{
	enum shunt_reason reason;
	struct tracked tracked = {};

	if (ahead && is_ahead(p, ahead)) {
		__u64 slot = ahead->slot;

		SHUNT_BOUND(slot, SHUNT_SLOTS_M);
		p->hash = ahead->hash;
		p->backend = ahead->owner;
		p->slot = slot;
		track(&tracked, ahead->table, slot, SHUNT_SLOTS_M);
		return steer_tracked(p, snap, &tracked);
	}
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

/*
 * Look at the slot before the service is known, where all of the family share a pool: its cache line is on its way
 * meanwhile.
 */
static __always_inline void look_ahead(struct pkt *p, const struct shunt_snapshot *snap, struct ahead *ahead)
{
	__u32 pool = snap->single_pool[p->ipv6];
	const __u32 *ports = pkt_l4(p);
	const __u64 *own;

	ahead->pool = pool;
	ahead->owner = SHUNT_BACKEND_NONE;
	ahead->word = 0;
	if (SHUNT_EXPLAIN)
		return;
	ahead->table = pool_table(&tables_m, pool, SHUNT_SLOTS_M);
	if (!ahead->table)
		return;
	read_words(p);
	p->ports = SHUNT_WIRE32(*ports);
	ahead->hash = flow_hash(p, snap, SHUNT_HASH_5TUPLE);
	ahead->owner = table_slot(ahead->table, ahead->hash, SHUNT_SLOTS_M, &ahead->slot);
	SHUNT_OPAQUE(ahead->owner);
	if (unlikely(ahead->table->own)) {
		own = flow_own(ahead->table->own + ahead->slot);
		ahead->word = own ? READ_ONCE(*own) : 0;
		if (ahead->word && SHUNT_FLOW_FP(ahead->word) != shunt_flow_fp(ahead->hash, p->protocol == IPPROTO_UDP))
			transit_touch(ahead->hash, (__u64)ahead->table->ranges << 32 | ahead->slot);
	}
}

/* Whether that was it, and the slot is at rest and has an owner. */
static __always_inline bool was_ahead(struct pkt *p, const struct ahead *ahead)
{
	if (unlikely(ahead->owner >= SHUNT_BACKEND_NONE || !is_ahead(p, ahead)))
		return false;
	p->hash = ahead->hash;
	p->backend = ahead->owner;
	return true;
}

/* Otherwise, if that was it: whether the slot's own word is a live entry of the packet's flow, as in transit_live(). */
static __always_inline bool live_ahead(struct pkt *p, const struct ahead *ahead)
{
	bool udp = p->protocol == IPPROTO_UDP;
	struct transit *t;
	__u32 zero = 0;

	if (!is_ahead(p, ahead) || SHUNT_FLOW_FP(ahead->word) != shunt_flow_fp(ahead->hash, udp) ||
	    (!udp && !plain_segment(pkt_l4(p), p->data_end)))
		return false;
	t = bpf_map_lookup_elem(&scratch_transit, &zero);
	p->hash = ahead->hash;
	p->backend = t ? flow_live(ahead->word, transit_now(t, ahead->table->limits, udp)) : FLOW_NONE;
	return p->backend != FLOW_NONE;
}

#endif
