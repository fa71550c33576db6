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

#endif
