/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fragments.  A later one has no ports: the first, which is steered as its flow, leaves a note for the others in a
 * small table that can always take one more (the oldest of a bucket goes), so that a flood of first fragments only
 * shortens how long notes last.  Where all services of an address hash by source into one pool nothing is needed.
 */
#ifndef SHUNT_FRAG_BPF_H
#define SHUNT_FRAG_BPF_H

#include "maps.bpf.h"
#include "parse.bpf.h"
#include "service.bpf.h"
#include "trace.bpf.h"

#define FRAGMENT_UNIT_SHIFT 30 /* about a second */
#define FRAGMENT_AGE_MAX 30    /* units: as long as receivers wait (RFC 1122, 3.3.2) */

#define FRAGMENT_WORD(fp, seen, generation, backend)                                                                   \
	((__u64)(fp) << 27 | (__u64)((seen)&0xff) << 19 | (__u64)((generation)&0xf) << 15 | ((backend)&0x7fff))
#define FRAGMENT_FP(word) ((word) >> 27)
#define FRAGMENT_SEEN(word) ((__u32)((word) >> 19 & 0xff))
#define FRAGMENT_GENERATION(word) ((__u32)((word) >> 15 & 0xf))
#define FRAGMENT_BACKEND(word) ((__u32)((word)&0x7fff))

/* A datagram's name, hashed: addresses, identification, protocol (RFC 791, 3.2; RFC 8200, 4.5). */
struct datagram {
	__u64 hash;
	__u32 now;
	__u32 backend, generation, counter;
};

static __always_inline struct datagram datagram_of(const struct pkt *p, const struct shunt_snapshot *snap)
{
	/* Not the hash of any flow: no mode has this number. */
	__u32 tail = shunt_hash_tail(p->ipv6 ? 0 : p->protocol, SHUNT_NR_HASH_MODES, p->ipv6);
	struct datagram d = {.now = bpf_ktime_get_coarse_ns() >> FRAGMENT_UNIT_SHIFT};

	d.hash = p->ipv6 ? shunt_hash6(&snap->key, p->source.word, p->destination.word, ~0u, p->datagram, tail)
			 : shunt_hash4(&snap->key, SHUNT_WIRE32(p->source.word[3]),
				       SHUNT_WIRE32(p->destination.word[3]), p->datagram, tail);
	return d;
}

static __always_inline struct shunt_fragment_bucket *fragment_bucket(const struct datagram *d)
{
	__u32 index = d->hash & (SHUNT_FRAGMENT_BUCKETS - 1);

	return bpf_map_lookup_elem(&fragments, &index);
}

static __always_inline __u64 fragment_fp(const struct datagram *d)
{
	return d->hash >> 27 | 1;
}

static __always_inline __u32 fragment_age(const struct datagram *d, __u64 word)
{
	return word ? (d->now - FRAGMENT_SEEN(word)) & 0xff : 0xff;
}

/* A first fragment that comes again replaces its own note. */
__noinline int fragment_remember(struct datagram *d)
{
	struct shunt_fragment_entry *place = NULL, *entry;
	struct shunt_fragment_bucket *bucket;
	__u32 best = 0, age;

	if (!d)
		return 0;
	bucket = fragment_bucket(d);
	for (int i = 0; bucket && i < SHUNT_FRAGMENT_WAYS; i++) {
		entry = &bucket->entry[i];
		age = FRAGMENT_FP(entry->word) == fragment_fp(d) ? 0x100 : fragment_age(d, entry->word);
		if (!place || age > best) {
			place = entry;
			best = age;
		}
	}
	/* A reader between these stores takes one note's place with another's counter, and counts for a wrong service.
	 */
	if (place) {
		place->counter = d->counter;
		place->word = FRAGMENT_WORD(fragment_fp(d), d->now, d->generation, d->backend);
	}
	return 0;
}

/* Sets backend and counter; 0 if the first fragment is known and its backend still there. */
__noinline int fragment_recall(struct datagram *d)
{
	struct shunt_fragment_bucket *bucket;

	if (!d)
		return -1;
	bucket = fragment_bucket(d);
	for (int i = 0; bucket && i < SHUNT_FRAGMENT_WAYS; i++) {
		__u64 word = READ_ONCE(bucket->entry[i].word);

		if (FRAGMENT_FP(word) != fragment_fp(d) || fragment_age(d, word) > FRAGMENT_AGE_MAX)
			continue;
		d->backend = FRAGMENT_BACKEND(word);
		d->generation = FRAGMENT_GENERATION(word);
		d->counter = bucket->entry[i].counter;
		return 0;
	}
	return -1;
}

static __always_inline __u32 generation_of(__u32 id)
{
	const struct shunt_backend *backend = bpf_map_lookup_elem(&backends, &id);

	return backend ? SHUNT_BACKEND_GENERATION(READ_ONCE(backend->state)) : ~0u;
}

static __always_inline void remember_first(const struct pkt *p, const struct shunt_snapshot *snap)
{
	struct datagram d = datagram_of(p, snap);

	d.backend = p->backend;
	d.generation = generation_of(p->backend);
	d.counter = p->counter;
	fragment_remember(&d);
}

/* By what its first fragment left, or else by source alone where that is enough. */
SHUNT_STAGE later_fragment(struct pkt *p, const struct shunt_snapshot *snap)
{
	struct datagram d = datagram_of(p, snap);

	if (bad_source(p))
		return unless_pass(p, SHUNT_DROP_SOURCE);
	if (fragment_recall(&d) || generation_of(d.backend) != d.generation) {
		p->by_address = p->address_flags & SHUNT_ADDRESS_FRAGMENTS_SOURCE;
		return p->by_address ? SHUNT_CONTINUE : unless_pass(p, SHUNT_DROP_FRAGMENT_UNKNOWN);
	}
	p->backend = d.backend;
	p->counter = d.counter;
	p->hash = d.hash;
	p->steered = true;
	trace_noted(p);
	return SHUNT_CONTINUE;
}

#endif
