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

/* What the slot says, `base[slot]` beside it. */
static __always_inline const __u16 *table_slot(const struct shunt_table *table, __u64 hash, __u32 capacity, __u64 *slot)
{
	*slot = shunt_hash_slot(hash, table->slots);
	SHUNT_BOUND(*slot, capacity);
	return (const __u16 *)((const void *)table + SHUNT_TABLE_OWNER(capacity)) + *slot;
}

SHUNT_STAGE table_owner(struct pkt *p, struct tracked *tracked, void *outer, __u32 capacity)
{
	const struct shunt_table *table = pool_table(outer, p->pool, capacity);
	const __u16 *base;
	__u64 slot;

	if (!table)
		return SHUNT_END(SHUNT_BUG_TABLE);
	p->backend = *table_slot(table, p->hash, capacity, &slot);
	p->slot = slot;
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
	struct tracked tracked = {};

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

/* The owner of the slot that a packet has if its service is what most are. */
struct ahead {
	__u32 pool, owner;
	__u64 hash;
};

/*
 * Look at the slot before the service is known, where all of the family share a pool: its cache line is on its way
 * meanwhile.
 */
static __always_inline void look_ahead(struct pkt *p, const struct shunt_snapshot *snap, struct ahead *ahead)
{
	__u32 pool = snap->single_pool[p->ipv6];
	const struct shunt_table *table;
	const __u32 *ports = pkt_l4(p);
	__u64 slot;

	ahead->pool = pool;
	ahead->owner = SHUNT_BACKEND_NONE;
	if (SHUNT_EXPLAIN || unlikely((void *)(ports + 1) > p->data_end))
		return;
	table = pool_table(&tables_m, pool, SHUNT_SLOTS_M);
	if (!table)
		return;
	p->ports = SHUNT_WIRE32(*ports);
	ahead->hash = flow_hash(p, snap, SHUNT_HASH_5TUPLE);
	ahead->owner = *table_slot(table, ahead->hash, SHUNT_SLOTS_M, &slot);
	SHUNT_OPAQUE(ahead->owner);
}

/* Whether that was it, and the slot is at rest and has an owner. */
static __always_inline bool was_ahead(struct pkt *p, const struct ahead *ahead)
{
	if (unlikely(ahead->owner >= SHUNT_BACKEND_NONE || ahead->pool != p->pool || p->table_class != SHUNT_TABLE_M ||
		     p->hash_mode != SHUNT_HASH_5TUPLE))
		return false;
	p->hash = ahead->hash;
	p->backend = ahead->owner;
	return true;
}

#endif
