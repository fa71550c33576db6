/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which backend a packet goes to: the owner of its hash's slot in the pool's table. */
#ifndef SHUNT_STEER_BPF_H
#define SHUNT_STEER_BPF_H

#include "maps.bpf.h"
#include "pkt.bpf.h"

/* capacity: slots of the size class, which is what the map holds; the table's own number is not larger. */
SHUNT_STAGE table_owner(struct pkt *p, void *outer, __u32 capacity)
{
	__u32 pool = p->pool, zero = 0;
	void *inner = bpf_map_lookup_elem(outer, &pool);
	const struct shunt_table *table;
	const __u16 *owner;
	__u32 slot;

	if (!inner)
		return SHUNT_BUG_TABLE;
	table = bpf_map_lookup_elem(inner, &zero);
	if (!table)
		return SHUNT_BUG_TABLE;
	slot = shunt_hash_slot(p->hash, table->slots);
	SHUNT_OPAQUE(slot);
	if (slot >= capacity)
		return SHUNT_BUG_TABLE;
	owner = (const void *)table + SHUNT_TABLE_OWNER(capacity);
	p->backend = owner[slot] & ~SHUNT_SLOT_TRACKED;
	return SHUNT_CONTINUE;
}

SHUNT_STAGE steer(struct pkt *p, const struct shunt_snapshot *snap)
{
	enum shunt_reason reason;

	p->hash =
		shunt_flow_hash(&snap->key, p->hash_mode, p->ipv6, &p->source, &p->destination, p->ports, p->protocol);
	if (p->table_class == SHUNT_TABLE_M)
		reason = table_owner(p, &tables_m, SHUNT_SLOTS_M);
	else if (p->table_class == SHUNT_TABLE_S)
		reason = table_owner(p, &tables_s, SHUNT_SLOTS_S);
	else
		reason = table_owner(p, &tables_l, SHUNT_SLOTS_L);
	if (reason != SHUNT_CONTINUE)
		return reason;
	return p->backend == SHUNT_BACKEND_NONE ? SHUNT_DROP_NO_BACKEND : SHUNT_CONTINUE;
}

#endif
