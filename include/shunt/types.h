/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Keys and values of the shared maps.  Fixed widths, explicit padding, no pointers; what is on the
 * wire in network order has a __be type.  Each layout is asserted below, and again by a unit test
 * against the BTF of the BPF objects.
 */
#ifndef SHUNT_TYPES_H
#define SHUNT_TYPES_H

#include <linux/types.h>
#include <shunt/abi.h>

/* For sparse: this conversion between byte orders is meant. */
#ifdef __CHECKER__
#define SHUNT_FORCE __attribute__((force))
#else
#define SHUNT_FORCE
#endif

/* ---- why a packet left: generated from counters.def ---- */

enum shunt_class { SHUNT_CLASS_PASS, SHUNT_CLASS_FORWARD, SHUNT_CLASS_ANSWER, SHUNT_CLASS_DROP, SHUNT_CLASS_BUG };

enum shunt_reason {
	SHUNT_CONTINUE = -1, /* not a reason: the next stage goes on */
#define SHUNT_COUNTER(id, name, class, sentence) SHUNT_##id,
#include <shunt/counters.def>
#undef SHUNT_COUNTER
	SHUNT_NR_REASONS
};

/* One per CPU; room to append without a new ABI. */
#define SHUNT_REASONS_ROOM 128
struct shunt_reasons {
	__u64 packets[SHUNT_REASONS_ROOM];
};

/* Per CPU, per service and per backend.  bytes: of the client's packet, from its IP header on. */
struct shunt_stats {
	__u64 packets;
	__u64 bytes;
};

/* ---- meta: one element, written at creation, read by whoever opens the maps ---- */

struct shunt_meta {
	__u32 abi;
	__u32 services;	 /* capacities: service entries */
	__u32 addresses; /* distinct service addresses */
	__u32 pools;
	__u32 backends;
	__u32 flows;
	__u64 serial; /* counts rebuilds with other capacities: who has maps of an older serial opens them again */
};

/* ---- load-time constants: the programs' section .rodata.config ---- */

struct shunt_config {
	__u32 address_buckets; /* SHUNT_ADDRESS_BUCKETS of the maps' capacity */
	__u32 service_buckets;
	__u32 frags;	 /* loaded with BPF_F_XDP_HAS_FRAGS: a frame may go on beyond data_end */
	__be16 gue_port; /* decap: UDP port of GUE; 0: none */
	__u16 pad;
};

/* ---- service snapshot: one value, replaced whole ---- */

/*
 * 128 bits of document key, expanded by user space (user/lib/hashkey.h): one word for each 32-bit word of
 * the hashed flow, and a 64-bit one for the finalizer.  See flowhash.h.
 */
#define SHUNT_HASH_WORDS 12
struct shunt_hash_key {
	__u32 word[SHUNT_HASH_WORDS];
	__u64 final;
};

/*
 * The snapshot's value: this header, then the addresses' buckets, then the services' buckets.  Their
 * numbers are fixed by the capacities in shunt_meta (SHUNT_ADDRESS_BUCKETS, SHUNT_SERVICE_BUCKETS) and
 * are load-time constants of the program, so that the verifier can bound every access.
 */
struct shunt_snapshot {
	__u32 abi;
	__u32 addresses; /* used entries */
	__u64 revision;	 /* of the applied document, for people */
	__u64 seed;	 /* of both hash tables, searched by the builder so that no probe is longer than two buckets */
	__u32 services;	 /* used entries */
	__u32 settings;	 /* SHUNT_SETTING_* */
	__u32 error_interval; /* nanoseconds for each generated error, on each CPU */
	__u32 error_burst;    /* errors that may come at once after a silence */
	__u32 single_pool[2]; /* of IPv4 and IPv6: the pool that all services share, of class M; SHUNT_POOLS_MAX: none
			       */
	__u64 pad1[2];
	struct shunt_hash_key key; /* its own cache line */
	__u64 pad2;
};

#define SHUNT_SETTING_TTL_ANSWER (1u << 0)   /* time exceeded is answered, else dropped */
#define SHUNT_SETTING_TOO_BIG_SEND (1u << 1) /* too big without DF: sent as is, else dropped */

/*
 * Any address in 16 bytes: IPv4 as ::ffff:a.b.c.d.  IPv6 packets to such addresses do not exist on a
 * wire (RFC 4291, 2.5.5.2); the parser leaves them to the host, so that none can match an IPv4 service.
 */
union shunt_address {
	__u8 byte[16];
	__be32 word[4];
	__u64 half[2];
};

/* What a service address says about packets that are for none of its services. */
#define SHUNT_ADDRESS_UNKNOWN_PASS (1u << 0) /* unknown port or protocol: to the host; else drop */
#define SHUNT_ADDRESS_ANY_TCP (1u << 1)	     /* has an any-port service: probe port 0 after a miss */
#define SHUNT_ADDRESS_ANY_UDP (1u << 2)
#define SHUNT_ADDRESS_UNKNOWN_REFUSE (1u << 3)	 /* unknown port: TCP reset or port unreachable */
#define SHUNT_ADDRESS_ECHO_DROP (1u << 4)	 /* ping: neither bit, answered */
#define SHUNT_ADDRESS_ECHO_FORWARD (1u << 5)	 /* ping: to a backend of `pool`, by source address */
#define SHUNT_ADDRESS_FRAGMENTS_SOURCE (1u << 6) /* all services hash by source into `pool`: fragments need no note */
/* With one of these, `pool`, `table_class` and `counter` say where what names no port goes. */
#define SHUNT_ADDRESS_BY_SOURCE (SHUNT_ADDRESS_ECHO_FORWARD | SHUNT_ADDRESS_FRAGMENTS_SOURCE)

struct shunt_address_entry {
	union shunt_address address;
	__u32 id; /* 0: the entry is empty; else what its services have in their keys */
	__u32 flags;
	__u32 counter; /* with SHUNT_ADDRESS_BY_SOURCE: as in struct shunt_service_entry */
	__u16 pool;
	__u8 table_class;
	__u8 pad;
};

#define SHUNT_ADDRESS_WAYS 2
struct shunt_address_bucket {
	struct shunt_address_entry entry[SHUNT_ADDRESS_WAYS];
};

enum shunt_hash_mode { SHUNT_HASH_5TUPLE, SHUNT_HASH_SOURCE, SHUNT_HASH_SOURCE_PORT, SHUNT_NR_HASH_MODES };
enum shunt_table_class { SHUNT_TABLE_S, SHUNT_TABLE_M, SHUNT_TABLE_L, SHUNT_NR_TABLE_CLASSES };

/* key = address id << 32 | port in network order as loaded << 8 | IP protocol; port 0 is "any".  0: empty. */
struct shunt_service_entry {
	__u64 key;
	__u32 counter; /* index into service_stats */
	__u16 pool;
	__u8 table_class;
	__u8 hash_mode;
};

#define SHUNT_SERVICE_WAYS 4
struct shunt_service_bucket {
	struct shunt_service_entry entry[SHUNT_SERVICE_WAYS];
};

/* Buckets for a capacity: a load of at most one half, where two choices always find a place. */
#define SHUNT_ADDRESS_BUCKETS(addresses) (addresses)
#define SHUNT_SERVICE_BUCKETS(services) (((services) + 1) / 2)
#define SHUNT_SNAPSHOT_SIZE(addresses, services)                                                                       \
	(sizeof(struct shunt_snapshot) +                                                                               \
	 SHUNT_ADDRESS_BUCKETS((__u64)(addresses)) * sizeof(struct shunt_address_bucket) +                             \
	 SHUNT_SERVICE_BUCKETS((__u64)(services)) * sizeof(struct shunt_service_bucket))

/*
 * Where to look, the same on both sides.  These hashes only spread a known set of keys: whoever sends packets can
 * choose what is looked up, but never makes a probe longer than two buckets.  A service's does not need its address's
 * entry, so that both buckets are on their way from memory at once.
 */
static inline __u64 shunt_address_hash(const union shunt_address *address, __u64 seed)
{
	return (address->half[1] ^ seed) * 0x9e3779b97f4a7c15ull + (address->half[0] ^ seed) * 0xd6e8feb86659fd93ull;
}

/* key: as in its entry; of it only port and protocol count. */
static inline __u64 shunt_service_hash(__u64 address_hash, __u64 key)
{
	return (address_hash ^ (__u32)key) * 0xd6e8feb86659fd93ull;
}

/* First and second bucket, by multiply-shift. */
static inline __u32 shunt_probe_first(__u64 hash, __u32 buckets)
{
	return (__u32)((hash >> 32) * buckets >> 32);
}

static inline __u32 shunt_probe_second(__u64 hash, __u32 buckets)
{
	__u64 again = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15ull;

	return (__u32)((again >> 32) * buckets >> 32);
}

static inline __u64 shunt_service_key(__u32 address_id, __be16 port, __u8 protocol)
{
	return (__u64)address_id << 32 | (__u64)(SHUNT_FORCE __u16)port << 8 | protocol;
}

/* ---- tables: one value a pool ---- */

/* A slot of owner[]: 15 bits of backend id, SHUNT_BACKEND_NONE for none, and this bit. */
#define SHUNT_SLOT_TRACKED 0x8000u /* the flow table may hold entries that disagree */
/* A slot of base[], which is read only for tracked slots: 15 bits of backend id, and this bit. */
#define SHUNT_SLOT_LEARN 0x8000u /* UDP: a miss goes to base */

#define SHUNT_TABLE_IN_TRANSITION (1u << 0) /* some slot is tracked */

/*
 * In `ranges`: no slot is tracked, few backends own all, and what packets read is denser, for the caches' sake: in the
 * place of base[] are __u16 id[SHUNT_TABLE_IDS] and __u8 of[capacity], and owner[i] is id[of[i]].  Not of class S,
 * whose tables are small.
 */
#define SHUNT_TABLE_DENSE (~0u)
#define SHUNT_TABLE_IDS 256u

/* Followed by owner[capacity] and base[capacity] of __u16; capacity: the size class, not `slots`. */
struct shunt_table {
	__u32 abi;
	__u32 slots;
	__u64 epoch;
	__u32 phase; /* rewrites without a change of owners since the epoch began */
	__u32 pool;
	__u32 flags;
	__u16 algorithm; /* index of user/lib/table/'s list, for people */
	__u16 pad0;
	__u64 digest;	 /* table_digest() of the owners' names */
	__u64 activated; /* CLOCK_REALTIME, seconds: when the epoch was published */
	__u32 ranges; /* in transition: index of the pool's value in ranges_s, _m or _l; else SHUNT_TABLE_DENSE or 0 */
	__u32 own;    /* while in transition: number of the first of the slots' own words (flow.h); 0: there are none */
	/* Limits of entries of the flow table, as SHUNT_LIMITS() packs them; read in one piece. */
	__u64 limits;
};

/*
 * Ages of entries count units of 2^shift ns; settle, closing and window are idle limits in units, below 128, of a
 * live TCP entry, a closing one and a UDP one.
 */
#define SHUNT_LIMITS(tcp_shift, udp_shift, settle, closing, window)                                                    \
	((__u64)(tcp_shift) | (__u64)(udp_shift) << 8 | (__u64)(settle) << 16 | (__u64)(closing) << 24 |               \
	 (__u64)(window) << 32)
#define SHUNT_LIMITS_TCP_SHIFT(limits) ((__u32)(limits)&0x3f)
#define SHUNT_LIMITS_UDP_SHIFT(limits) ((__u32)((limits) >> 8) & 0x3f)
#define SHUNT_LIMITS_SETTLE(limits) ((__u32)((limits) >> 16) & 0xff)
#define SHUNT_LIMITS_CLOSING(limits) ((__u32)((limits) >> 24) & 0xff)
#define SHUNT_LIMITS_WINDOW(limits) ((__u32)((limits) >> 32) & 0xff)

/*
 * Bucket ranges of a pool's slots, beside its table: range[capacity] of __u32, see flow.h.  Behind them, where packets
 * never read, when slots left rest, t0: the newest, a __u32 of deciseconds of CLOCK_MONOTONIC, and for each slot three
 * bytes, little-endian: how much older its own is, SHUNT_T0_OLDEST for that and more, SHUNT_T0_NONE without one.  Two
 * values a pool, in turn.
 */
#define SHUNT_T0_OLDEST 0xfffffeu /* 19 days */
#define SHUNT_T0_NONE 0xffffffu
#define SHUNT_RANGES_T0(capacity) (sizeof(__u32) * (((capacity) + 3) & ~3ull))
#define SHUNT_RANGES_SIZE(capacity) (SHUNT_RANGES_T0(capacity) + sizeof(__u32) + 3 * (((capacity) + 3) & ~3ull))
#define SHUNT_RANGES_INDEX(pool, turn) ((pool)*2 + ((turn)&1))

/* Per CPU, per pool: what packets of slots in transition did. */
struct shunt_pool_stats {
	__u64 inserted; /* entries made */
	__u64 refused;	/* insertions for which there was no room */
	__u64 replaced; /* ADOPTED entries that made room for another */
	__u64 base;	/* packets without an entry that went to base */
	__u64 lost_at;	/* coarse monotonic nanoseconds of the last that was refused or replaced; 0: none */
};

#define SHUNT_TABLE_SIZE(capacity) (sizeof(struct shunt_table) + 2ull * sizeof(__u16) * (((capacity) + 3) & ~3ull))
#define SHUNT_TABLE_OWNER(capacity) (sizeof(struct shunt_table))
#define SHUNT_TABLE_BASE(capacity) (sizeof(struct shunt_table) + sizeof(__u16) * (((capacity) + 3) & ~3ull))
#define SHUNT_TABLE_ID(capacity) SHUNT_TABLE_BASE(capacity)
#define SHUNT_TABLE_OF(capacity) (SHUNT_TABLE_ID(capacity) + sizeof(__u16) * SHUNT_TABLE_IDS)

/* ---- backends and next hops ---- */

/*
 * The state word, replaced by one aligned store:
 *   bit 0 present, 1 up, 2 draining; bits 8..11 generation; 16..31 next hop; 32..47 path MTU in bytes
 * (of the outer packet, IP header on; 0: nothing fits).
 */
#define SHUNT_BACKEND_PRESENT (1ull << 0)
#define SHUNT_BACKEND_UP (1ull << 1)
#define SHUNT_BACKEND_DRAINING (1ull << 2)
#define SHUNT_BACKEND_USABLE (SHUNT_BACKEND_PRESENT | SHUNT_BACKEND_UP)
#define SHUNT_BACKEND_GENERATION(word) ((__u32)((word) >> 8 & 0xf))
#define SHUNT_BACKEND_NEXTHOP(word) ((__u32)((word) >> 16 & 0xffff))
#define SHUNT_BACKEND_MTU(word) ((__u32)((word) >> 32 & 0xffff))
#define SHUNT_BACKEND_STATE(bits, generation, nexthop, mtu)                                                            \
	((__u64)(bits) | (__u64)((generation)&0xf) << 8 | (__u64)(nexthop) << 16 | (__u64)(mtu) << 32)
#define SHUNT_BACKEND_WITH_MTU(word, mtu) (((word) & ~(0xffffull << 32)) | (__u64)(mtu) << 32)

enum shunt_encap {
	SHUNT_ENCAP_NONE,
	SHUNT_ENCAP_IPIP4,
	SHUNT_ENCAP_IPIP6,
	SHUNT_ENCAP_GUE4,
	SHUNT_ENCAP_GUE6,
	SHUNT_ENCAP_L2,
	SHUNT_NR_ENCAPS
};

/*
 * One cache line with all that encapsulation needs.  Everything but `state` is written before the id
 * is first named by a table, and not again until no table can name it.
 * outer: a ready IPv4 or IPv6 header with the fields that depend on the packet left 0 (IPv4: tos, total
 * length, id, fragment field, protocol, checksum; IPv6: traffic class, flow label, payload length, next
 * header).  sum: the one's complement sum of its 16-bit words as loaded, folded to 16 bits (IPv6: of both addresses,
 * for the UDP checksum).  With SHUNT_ENCAP_L2 packets read neither, and outer has the backend's address (union
 * shunt_address), which tells two of them apart.
 */
struct shunt_backend {
	__u64 state;
	__u8 encap;	  /* enum shunt_encap */
	__u8 source_bits; /* low bits of the outer source that carry the flow's entropy, at most 32; 0 in `outer` */
	__u16 overhead;	  /* bytes put in front of the client's packet, at most: counted against the path MTU */
	__u32 sum;
	__u8 outer[40];
	__be16 port; /* GUE: destination port */
	__u16 flags; /* SHUNT_BACKEND_UDP6_ZERO */
	__u32 pad1;
};

#define SHUNT_BACKEND_UDP6_ZERO (1u << 0) /* UDP over IPv6 without a checksum (RFC 6935) */

/* GUE, variant 0 (draft-ietf-intarea-gue): a data packet without optional fields. */
struct shunt_gue {
	__u8 control;  /* variant 0, data, no optional fields: 0 */
	__u8 protocol; /* of the inner packet: 4 or 41 */
	__be16 flags;
};
/* With the UDP header in front of it, as both follow an outer IP header. */
struct shunt_gue_udp {
	__be16 source, destination, length;
	__sum16 check;
	struct shunt_gue gue;
};
#define SHUNT_GUE_PORT 6080u
/* The longest header that a packet may carry one day: flags of its own, and another backend's address. */
#define SHUNT_GUE_EXTRA_MAX 20u

/* ---- errors from the way behind us ---- */

/* Value of `endpoints`, whose key is a backend's outer address (union shunt_address): who is behind it. */
#define SHUNT_ENDPOINT_BACKENDS 15
struct shunt_endpoint {
	__u16 count;
	__u16 id[SHUNT_ENDPOINT_BACKENDS];
};

/* Per backend, in `backend_path`: written by packets, read by the daemon, which restores the path MTU in time. */
struct shunt_path {
	__u64 errors;  /* ICMP errors that quoted packets to it */
	__u64 lowered; /* coarse monotonic nanoseconds of the last time that its path MTU was lowered; 0: never */
};

/* ---- fragments ---- */

/*
 * Where the first fragment of a datagram went: word {fingerprint 37, seen 8 (units of 2^30 ns), generation 4, backend
 * 15} and the service's counter, in buckets of four.
 */
struct shunt_fragment_entry {
	__u64 word;
	__u64 counter;
};

#define SHUNT_FRAGMENT_WAYS 4
struct shunt_fragment_bucket {
	struct shunt_fragment_entry entry[SHUNT_FRAGMENT_WAYS];
};
#define SHUNT_FRAGMENT_BUCKETS 8192u /* 512 KiB */

/* destination MAC in the low six bytes, in wire order as loaded; index into `ifaces` above.  0: unknown. */
#define SHUNT_NEXTHOP_IFACE(word) ((__u32)((word) >> 48))

struct shunt_iface {
	__u32 ifindex; /* 0: unused; else never changes: another MAC gets another entry */
	__u8 mac[6];
	__u16 mtu; /* for people; the packet path uses the backend's path MTU */
	__u32 pad;
};

/* ---- decap ---- */

/* Key of the decap LPM tries: addresses as in union shunt_address, so IPv4 prefixes are 96 bits longer. */
struct shunt_prefix {
	__u32 length; /* bits */
	__u8 address[16];
};

#define SHUNT_LAYOUT(type, size) _Static_assert(sizeof(type) == (size), #type " has another size")
/* The builtin: bpf_helpers.h has an offsetof() of its own, which is no constant expression. */
#define SHUNT_OFFSET(type, member, at)                                                                                 \
	_Static_assert(__builtin_offsetof(type, member) == (at), #type "." #member " moved")

SHUNT_LAYOUT(struct shunt_reasons, 1024);
SHUNT_LAYOUT(struct shunt_stats, 16);
SHUNT_LAYOUT(struct shunt_meta, 32);
SHUNT_LAYOUT(struct shunt_hash_key, 56);
SHUNT_LAYOUT(struct shunt_snapshot, 128);
SHUNT_OFFSET(struct shunt_snapshot, key, 64);
SHUNT_LAYOUT(struct shunt_address_entry, 32);
SHUNT_LAYOUT(struct shunt_address_bucket, 64);
SHUNT_LAYOUT(struct shunt_service_entry, 16);
SHUNT_LAYOUT(struct shunt_service_bucket, 64);
SHUNT_LAYOUT(struct shunt_table, 64);
SHUNT_OFFSET(struct shunt_table, digest, 32);
SHUNT_LAYOUT(struct shunt_endpoint, 32);
SHUNT_LAYOUT(struct shunt_path, 16);
SHUNT_LAYOUT(struct shunt_gue, 4);
SHUNT_LAYOUT(struct shunt_gue_udp, 12);
SHUNT_LAYOUT(struct shunt_fragment_bucket, 64);
SHUNT_LAYOUT(struct shunt_pool_stats, 40);
SHUNT_OFFSET(struct shunt_table, limits, 56);
SHUNT_LAYOUT(struct shunt_backend, 64);
SHUNT_OFFSET(struct shunt_backend, outer, 16);
SHUNT_LAYOUT(struct shunt_iface, 16);
SHUNT_LAYOUT(struct shunt_prefix, 20);
_Static_assert(SHUNT_TABLE_OF(SHUNT_SLOTS_M) + SHUNT_SLOTS_M <= SHUNT_TABLE_SIZE(SHUNT_SLOTS_M), "no room for of[]");
_Static_assert(SHUNT_NR_REASONS <= SHUNT_REASONS_ROOM, "more reasons than room");

#endif
