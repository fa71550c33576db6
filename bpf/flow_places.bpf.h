/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where the entry of a flow may be: in its slot's own word, or in one of two buckets of the slot's range. */
#ifndef SHUNT_FLOW_PLACES_BPF_H
#define SHUNT_FLOW_PLACES_BPF_H

#include "flow_rules.bpf.h"

static __always_inline __u32 range_in(void *outer, __u32 index, __u64 slot, __u32 capacity)
{
	__u32 zero = 0;
	void *inner = bpf_map_lookup_elem(outer, &index);
	const __u32 *range = inner ? bpf_map_lookup_elem(inner, &zero) : NULL;

	if (!range)
		return 0;
	SHUNT_BOUND(slot, capacity);
	return range[slot];
}

/* The slot's range of buckets; 0: it has none. */
static __always_inline __u32 slot_range(__u32 table_class, __u32 index, __u32 slot)
{
	if (table_class == SHUNT_TABLE_M)
		return range_in(&ranges_m, index, slot, SHUNT_SLOTS_M);
	if (table_class == SHUNT_TABLE_S)
		return range_in(&ranges_s, index, slot, SHUNT_SLOTS_S);
	return range_in(&ranges_l, index, slot, SHUNT_SLOTS_L);
}

static __always_inline struct shunt_flow_bucket *flow_bucket(const struct flow *f, bool second)
{
	__u32 index = second ? shunt_flow_second(f->hash, f->range) : shunt_flow_first(f->hash, f->range);

	return f->range ? bpf_map_lookup_elem(&flows, &index) : NULL;
}

#define FLOW_PLACES (2 * SHUNT_FLOW_WAYS)
#define FLOW_OWN FLOW_PLACES /* the place of the slot's own word */
#define FLOW_AT(place) ((place) % (2 * FLOW_OWN))

/* The word of this number; 0: NULL. */
static __always_inline __u64 *flow_own(__u32 number)
{
	__u32 index = number / SHUNT_FLOW_WAYS;
	struct shunt_flow_bucket *bucket = number ? bpf_map_lookup_elem(&flows, &index) : NULL;

	if (!bucket)
		return NULL;
	SHUNT_OPAQUE(bucket);
	return &bucket->word[number % SHUNT_FLOW_WAYS];
}

/* Both choices may be the same bucket: then there are places below SHUNT_FLOW_WAYS alone, and each word has one. */
static __always_inline bool flow_one_bucket(const struct flow *f)
{
	return shunt_flow_first(f->hash, f->range) == shunt_flow_second(f->hash, f->range);
}

/* A word by its place, or NULL. */
static __always_inline __u64 *flow_word(const struct flow *f, __u32 place)
{
	struct shunt_flow_bucket *bucket;

	if (place & FLOW_OWN)
		return flow_own(f->own);
	bucket = flow_bucket(f, place >= SHUNT_FLOW_WAYS);
	if (!bucket)
		return NULL;
	SHUNT_OPAQUE(bucket);
	return &bucket->word[place % SHUNT_FLOW_WAYS];
}

/* The place of the first word with the flow's fingerprint, that at `except` apart; -1 if there is none. */
static __always_inline int flow_place(const struct flow *f, int except)
{
	struct shunt_flow_bucket *bucket;
	__u64 *own = flow_own(f->own);

	if (own && except != FLOW_OWN && SHUNT_FLOW_FP(READ_ONCE(*own)) == f->fp)
		return FLOW_OWN;
	bucket = flow_bucket(f, false);
	for (int i = 0; bucket && i < SHUNT_FLOW_WAYS; i++)
		if (SHUNT_FLOW_FP(READ_ONCE(bucket->word[i])) == f->fp && i != except)
			return i;
	bucket = flow_one_bucket(f) ? NULL : flow_bucket(f, true);
	for (int i = 0; bucket && i < SHUNT_FLOW_WAYS; i++)
		if (SHUNT_FLOW_FP(READ_ONCE(bucket->word[i])) == f->fp && i + SHUNT_FLOW_WAYS != except)
			return i + SHUNT_FLOW_WAYS;
	return -1;
}

/* The same for one that was just written at f->at: whether it is somewhere else, too. */
__noinline int flow_twice(struct flow *f)
{
	return f ? flow_place(f, f->at) >= 0 : 0;
}

/* Words are looked at without a branch for each: where the flow's lies in its bucket cannot be predicted. */
static __always_inline __u64 flow_match(const struct shunt_flow_bucket *bucket, __u32 fp, __u64 *n)
{
	__u64 found = 0;

/* Unrolled, it takes more stack than a chain of calls has. */
#pragma nounroll
	for (int i = 0; i < SHUNT_FLOW_WAYS; i++) {
		__u64 word = READ_ONCE(bucket->word[i]), mask = (word >> 38) ^ fp;

		SHUNT_OPAQUE(mask);
		mask = (__u64)((__s64)(mask - 1) >> 63);
		found |= word & mask;
		*n -= mask;
	}
	return found;
}

/* The word of a flow with this fingerprint in its range; 0: there is none, or it must be looked for with care. */
static __always_inline __u64 flow_ranged(__u64 hash, __u32 range, __u32 fp)
{
	__u32 index = shunt_flow_first(hash, range);
	struct shunt_flow_bucket *bucket = range ? bpf_map_lookup_elem(&flows, &index) : NULL;
	__u64 word, n = 0;

	if (!bucket)
		return 0;
	word = READ_ONCE(bucket->word[0]);
	if (SHUNT_FLOW_FP(word) == fp)
		return word;
	word = flow_match(bucket, fp, &n);
	if (unlikely(!n)) {
		index = shunt_flow_second(hash, range);
		bucket = bpf_map_lookup_elem(&flows, &index);
		word = bucket ? flow_match(bucket, fp, &n) : 0;
	}
	return n == 1 ? word : 0;
}

#endif
