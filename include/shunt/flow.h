/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Entries of the flow table: what packets leave behind in slots in transition, and where.  The rules by which they are
 * made, used and deleted are in docs/connections.md.
 *
 * An entry is one aligned word, replaced by compare-and-exchange, in a bucket of eight:
 *   bits 63..38 fingerprint | 37..30 bits 31..24 of the initial sequence number | 29..22 last seen | 21..20 state
 *        | 19..16 generation | 15..0 backend
 * An empty word is 0, so no fingerprint is; the low bit of a fingerprint is 1 for UDP, so that a scan knows the
 * protocol.
 *
 * "last seen" counts units of 2^shift nanoseconds of the coarse monotonic clock, modulo 256, with a shift of its own
 * for TCP and for UDP (struct shunt_table).
 */
#ifndef SHUNT_FLOW_H
#define SHUNT_FLOW_H

#include <shunt/types.h>

enum shunt_flow_status {
	SHUNT_FLOW_HALF,    /* made by a SYN */
	SHUNT_FLOW_ADOPTED, /* made by one other segment, or a datagram */
	SHUNT_FLOW_LIVE,
	SHUNT_FLOW_CLOSING, /* a FIN or RST went by */
};

#define SHUNT_FLOW_FP(word) ((__u32)((word) >> 38))
#define SHUNT_FLOW_ISN(word) ((__u32)((word) >> 30 & 0xff))
#define SHUNT_FLOW_SEEN(word) ((__u32)((word) >> 22 & 0xff))
#define SHUNT_FLOW_STATUS(word) ((__u32)((word) >> 20 & 3))
#define SHUNT_FLOW_GENERATION(word) ((__u32)((word) >> 16 & 0xf))
#define SHUNT_FLOW_BACKEND(word) ((__u32)((word)&0xffff))
#define SHUNT_FLOW_IS_UDP(word) ((__u32)((word) >> 38 & 1))

#define SHUNT_FLOW_WAYS 8
struct shunt_flow_bucket {
	__u64 word[SHUNT_FLOW_WAYS];
};
SHUNT_LAYOUT(struct shunt_flow_bucket, 64);

static inline __u64 shunt_flow_word(__u32 fp, __u32 isn, __u32 seen, __u32 status, __u32 generation, __u32 backend)
{
	return (__u64)fp << 38 | (__u64)(isn & 0xff) << 30 | (__u64)(seen & 0xff) << 22 | (__u64)(status & 3) << 20 |
	       (__u64)(generation & 0xf) << 16 | (backend & 0xffff);
}

/*
 * How long ago a word was used, in units.  Who reads the clock and then the word may find one that was used in a later
 * unit meanwhile: that is 0, not nearly 256.
 */
#define SHUNT_FLOW_AHEAD 16u
static inline __u32 shunt_flow_age(__u32 now, __u64 word)
{
	__u32 age = (now - SHUNT_FLOW_SEEN(word)) & 0xff;

	return age > 0xff - SHUNT_FLOW_AHEAD ? 0 : age;
}

/* From bits 47..22 of the 5-tuple's hash: apart from those that choose slot and buckets. */
static inline __u32 shunt_flow_fp(__u64 hash, int udp)
{
	__u32 fp = (__u32)(hash >> 22) & ((1u << 26) - 1);

	fp = udp ? fp | 1 : fp & ~1u;
	return fp ? fp : 2;
}

/*
 * A tracked slot's range of buckets, in 32 bits: its first bucket and the logarithm of their number.  0: none was left,
 * and every insertion is refused.
 */
#define SHUNT_RANGE(start, log2) ((__u32)(start) << 4 | ((log2) + 1))
#define SHUNT_RANGE_START(range) ((range) >> 4)
#define SHUNT_RANGE_LOG2(range) (((range)&0xf) - 1)
#define SHUNT_RANGE_LOG2_MAX 11
#define SHUNT_FLOW_BUCKETS_MAX (1u << 28)

/* Both choices of a flow, within its slot's range. */
static inline __u32 shunt_flow_first(__u64 hash, __u32 range)
{
	return SHUNT_RANGE_START(range) + ((__u32)hash & ((1u << SHUNT_RANGE_LOG2(range)) - 1));
}

static inline __u32 shunt_flow_second(__u64 hash, __u32 range)
{
	return SHUNT_RANGE_START(range) + ((__u32)(hash >> 11) & ((1u << SHUNT_RANGE_LOG2(range)) - 1));
}

/*
 * Besides, where there was room, each slot with a range has a word of its own, side by side with those of the pool's
 * other slots: the first to be filled, so that few flows take few cache lines.  Words of the flow table are numbered
 * from 0; the number of a slot's is that of the first (`own` of struct shunt_table) and the slot's added up.
 *
 * While it is 0 the slot has no entry in its range either, so who finds it so need not look there.  Once an entry was
 * made it never is 0 again until the slot is at rest; without an entry it is one of these, which no flow's fingerprint
 * and no backend match.  USED may be taken for a new entry.  LOCKED, while entries move to a table of another size, may
 * not: the entry that was there may still come.
 */
#define SHUNT_FLOW_USED 0xffffull
#define SHUNT_FLOW_LOCKED 0xfffeull

static inline __u64 *shunt_flow_place(struct shunt_flow_bucket *buckets, __u64 number)
{
	return &buckets[number / SHUNT_FLOW_WAYS].word[number % SHUNT_FLOW_WAYS];
}

#define SHUNT_FLOW_OWN_BUCKETS(slots) (((slots) + SHUNT_FLOW_WAYS - 1) / SHUNT_FLOW_WAYS)

/* Four words for each flow of the stated capacity: a load of a quarter, where two choices refuse next to nothing. */
#define SHUNT_FLOW_BUCKETS(flows) (((flows) + 1) / 2)

#endif
