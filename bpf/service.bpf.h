/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which service a packet is for: two small hash tables inside the one value of the snapshot. */
#ifndef SHUNT_SERVICE_BPF_H
#define SHUNT_SERVICE_BPF_H

#include "maps.bpf.h"
#include "pkt.bpf.h"
#include "trace.bpf.h"

SHUNT_STAGE get_snapshot(const struct shunt_snapshot **out)
{
	__u32 zero = 0;
	void *inner = bpf_map_lookup_elem(&snapshot, &zero);
	const struct shunt_snapshot *snap;

	if (!inner)
		return SHUNT_END(SHUNT_PASS_NO_CONFIG);
	snap = bpf_map_lookup_elem(inner, &zero);
	if (!snap || snap->abi != SHUNT_ABI)
		return SHUNT_END(SHUNT_BUG_SNAPSHOT);
	*out = snap;
	return SHUNT_CONTINUE;
}

/*
 * Buckets are 64 bytes.  Their number is a load-time constant, so the verifier sees that (hash >> 32) * buckets >> 32
 * stays below it; the barrier keeps clang from computing the product again, unbounded, where it is used.
 */
static __always_inline const void *bucket_at(const void *table, __u64 index)
{
	const void *bucket;

	SHUNT_OPAQUE(index);
	bucket = table + index * 64;
	if (!bucket)
		__builtin_unreachable();
	return bucket;
}

static __always_inline const struct shunt_address_entry *address_in(const struct shunt_address_bucket *bucket,
								    const union shunt_address *address)
{
#pragma unroll
	for (int i = 0; i < SHUNT_ADDRESS_WAYS; i++) {
		const struct shunt_address_entry *entry = &bucket->entry[i];

		if (entry->address.half[1] == address->half[1] && entry->address.half[0] == address->half[0] &&
		    entry->id)
			return entry;
	}
	return NULL;
}

/* Is the destination a service address? */
SHUNT_STAGE service_address(struct pkt *p, const struct shunt_snapshot *snap)
{
	__u64 hash = shunt_address_hash(&p->destination, snap->seed);
	const struct shunt_address_entry *entry;
	__u32 buckets = config.address_buckets;

	entry = address_in(bucket_at(snap + 1, shunt_probe_first(hash, buckets)), &p->destination);
	if (!entry)
		entry = address_in(bucket_at(snap + 1, shunt_probe_second(hash, buckets)), &p->destination);
	if (!entry)
		return SHUNT_END(SHUNT_PASS_NOT_SERVICE);
	p->address_hash = hash;
	p->address_id = entry->id;
	p->address_flags = entry->flags;
	p->address = entry;
	trace_service_ip(p, snap->revision);
	return SHUNT_CONTINUE;
}

static __always_inline const struct shunt_service_entry *service_in(const struct shunt_service_bucket *bucket,
								    __u64 key)
{
#pragma unroll
	for (int i = 0; i < SHUNT_SERVICE_WAYS; i++)
		if (bucket->entry[i].key == key)
			return &bucket->entry[i];
	return NULL;
}

static __always_inline const struct shunt_service_entry *find_service(const struct pkt *p,
								      const struct shunt_snapshot *snap, __u64 key)
{
	__u64 before = (__u64)config.address_buckets * sizeof(struct shunt_address_bucket);
	__u64 hash = shunt_service_hash(p->address_hash, key);
	const struct shunt_service_entry *entry;
	const void *table = snap + 1;
	__u32 buckets = config.service_buckets;

	entry = service_in(bucket_at(table + before, shunt_probe_first(hash, buckets)), key);
	if (entry)
		return entry;
	return service_in(bucket_at(table + before, shunt_probe_second(hash, buckets)), key);
}

/* Where the address is the host's too, what cannot be for a service is the host's. */
SHUNT_STAGE unless_pass(const struct pkt *p, enum shunt_reason reason)
{
	return p->address_flags & SHUNT_ADDRESS_UNKNOWN_PASS ? SHUNT_PASS_UNKNOWN_PORT : reason;
}

/* Not to a service of the address.  rare: this instance of the pipeline takes everything. */
SHUNT_STAGE unknown_port(struct pkt *p, bool rare)
{
	if (p->address_flags & (SHUNT_ADDRESS_UNKNOWN_REFUSE | SHUNT_ADDRESS_UNKNOWN_PASS) && !rare)
		return SHUNT_END(SHUNT_RARE);
	return unless_pass(p, p->quoted ? SHUNT_DROP_ICMP_QUOTE : SHUNT_DROP_UNKNOWN_PORT);
}

/* Exact port, then any-port. */
SHUNT_STAGE service_port(struct pkt *p, const struct shunt_snapshot *snap, bool rare)
{
	__u32 any = p->protocol == IPPROTO_TCP ? SHUNT_ADDRESS_ANY_TCP : SHUNT_ADDRESS_ANY_UDP;
	const struct shunt_service_entry *service;

	trace_flow(p);
	service = find_service(p, snap, shunt_service_key(p->address_id, (__be16)(p->ports >> 16), p->protocol));
	if (unlikely(!service && p->address_flags & any))
		service = find_service(p, snap, shunt_service_key(p->address_id, 0, p->protocol));
	if (unlikely(!service))
		return unknown_port(p, rare);
	p->pool = service->pool;
	p->counter = service->counter;
	p->table_class = service->table_class;
	p->hash_mode = service->hash_mode;
	return SHUNT_CONTINUE;
}

/* For the address as a whole: the pool that all its services share, by source address. */
static __always_inline void service_of_address(struct pkt *p)
{
	p->pool = p->address->pool;
	p->counter = p->address->counter;
	p->table_class = p->address->table_class;
	p->hash_mode = SHUNT_HASH_SOURCE;
	p->ports = 0;
}

#endif
