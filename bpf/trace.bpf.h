/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the stages tell `shuntctl explain`.  SHUNT_EXPLAIN is a constant of the object, so that of all this, and of what
 * is asked of it elsewhere, nothing is left in the program that carries traffic.
 */
#ifndef SHUNT_TRACE_BPF_H
#define SHUNT_TRACE_BPF_H

#include <shunt/trace.h>
#include "pkt.bpf.h"

_Static_assert((int)SHUNT_PART_FIRST == (int)PKT_FIRST && (int)SHUNT_PART_LATER == (int)PKT_LATER, "one list");

#if SHUNT_EXPLAIN
#include "maps.bpf.h"

SHUNT_ARRAY(scratch_trace, BPF_MAP_TYPE_ARRAY, struct shunt_trace);

static __always_inline struct shunt_trace *trace_of(__u32 known)
{
	__u32 zero = 0;
	struct shunt_trace *t = bpf_map_lookup_elem(&scratch_trace, &zero);

	if (t)
		t->known |= known;
	return t;
}
#else
static __always_inline struct shunt_trace *trace_of(__u32 known)
{
	(void)known;
	return NULL;
}
#endif

/* What follows begins again at the first byte. */
static __always_inline void trace_restart(void)
{
	struct shunt_trace *t = trace_of(0);

	if (t)
		t->known = 0;
}

static __always_inline void trace_addresses(const struct pkt *p)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_ADDRESSES);

	if (!t)
		return;
	t->source = p->source;
	t->destination = p->destination;
	t->ipv6 = p->ipv6;
	t->protocol = p->protocol;
}

static __always_inline void trace_service_ip(const struct pkt *p, __u64 revision)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_SERVICE_IP);

	if (!t)
		return;
	t->address_id = p->address_id;
	t->address_flags = p->address_flags;
	t->revision = revision;
}

static __always_inline void trace_flow(const struct pkt *p)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_FLOW);

	if (!t)
		return;
	t->source = p->source;
	t->protocol = p->protocol;
	t->ports = p->ports;
	t->quoted = p->quoted;
	t->part = p->part;
}

static __always_inline void trace_service(const struct pkt *p)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_SERVICE);

	if (!t)
		return;
	t->counter = p->counter;
	t->pool = p->pool;
	t->table_class = p->table_class;
	t->hash_mode = p->hash_mode;
	t->by_address = p->by_address;
	t->part = p->part;
	t->hash = p->hash;
}

/* base: of a slot in transition, else NULL */
static __always_inline void trace_table(const struct pkt *p, const struct shunt_table *table, const __u16 *base)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_TABLE);

	if (!t)
		return;
	t->epoch = table->epoch;
	t->digest = table->digest;
	t->phase = table->phase;
	t->slots = table->slots;
	t->slot = p->slot;
	t->owner = p->backend & ~SHUNT_SLOT_TRACKED;
	t->tracked = !!base;
	t->base = base ? *base : 0;
}

static __always_inline void trace_noted(const struct pkt *p)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_NOTED);

	if (!t)
		return;
	t->counter = p->counter;
	t->part = p->part;
}

static __always_inline void trace_backend(const struct pkt *p, const struct shunt_backend *backend, __u64 state)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_BACKEND);

	if (!t)
		return;
	t->backend = p->backend;
	t->entry_of_backend = *backend;
	t->entry_of_backend.state = state;
	t->length = p->length;
}

static __always_inline void trace_way(__u64 hop, const struct shunt_iface *iface, __u32 taken)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_WAY);

	if (!t)
		return;
	t->hop = hop;
	t->iface = *iface;
	t->taken = taken;
}

static __always_inline void trace_answer(__u32 kind, __u32 mtu)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_ANSWER);

	if (!t)
		return;
	t->answer = kind;
	t->answer_mtu = mtu;
}

static __always_inline void trace_behind(__u32 mtu)
{
	struct shunt_trace *t = trace_of(SHUNT_TRACE_BEHIND);

	if (t)
		t->told_mtu = mtu;
}

static __always_inline void trace_refused(void)
{
	struct shunt_trace *t = trace_of(0);

	if (t)
		t->refused = true;
}

static __always_inline void trace_reason(__s32 reason)
{
	struct shunt_trace *t = trace_of(0);

	if (t)
		t->reason = reason;
}

#endif
