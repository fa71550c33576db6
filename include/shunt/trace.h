/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the program `shunt_explain` writes down of the one packet that it runs on: each stage what it learned.  The map
 * SHUNT_MAP_TRACE is the program's own and never pinned; only who loaded the object reads it.
 */
#ifndef SHUNT_TRACE_H
#define SHUNT_TRACE_H

#include <shunt/types.h>

#define SHUNT_MAP_TRACE "scratch_trace"

/* Which members hold something: how far the packet came. */
#define SHUNT_TRACE_ADDRESSES (1u << 0)	 /* source .. protocol */
#define SHUNT_TRACE_SERVICE_IP (1u << 1) /* address_id, address_flags, revision */
#define SHUNT_TRACE_FLOW (1u << 2)	 /* ports, quoted; protocol and source are the flow's from now on */
#define SHUNT_TRACE_SERVICE (1u << 3)	 /* counter .. hash */
#define SHUNT_TRACE_TABLE (1u << 4)	 /* epoch .. owner */
#define SHUNT_TRACE_TRANSIT (1u << 5)	 /* entry .. refused; only of tracked slots */
#define SHUNT_TRACE_NOTED (1u << 6)	 /* a later fragment: backend by what its first one left */
#define SHUNT_TRACE_BACKEND (1u << 7)	 /* backend, entry_of_backend */
#define SHUNT_TRACE_WAY (1u << 8)	 /* hop .. taken */
#define SHUNT_TRACE_ANSWER (1u << 9)	 /* answer, answer_mtu: an answer is due, if the rate limit allows */
#define SHUNT_TRACE_BEHIND (1u << 10)	 /* told_mtu: an error from the way behind us */

enum shunt_trace_part { SHUNT_PART_WHOLE, SHUNT_PART_FIRST, SHUNT_PART_LATER };
enum shunt_trace_kind { SHUNT_KIND_SYN, SHUNT_KIND_SEGMENT, SHUNT_KIND_END, SHUNT_KIND_DATAGRAM, SHUNT_KIND_QUOTED };
enum shunt_trace_answer { SHUNT_ANSWER_IS_TOO_BIG, SHUNT_ANSWER_IS_TTL, SHUNT_ANSWER_IS_REFUSAL };

struct shunt_trace {
	__u32 known;  /* SHUNT_TRACE_* */
	__s32 reason; /* enum shunt_reason */
	union shunt_address source, destination;
	__u8 ipv6;
	__u8 protocol;
	__u8 part;			 /* enum shunt_trace_part */
	__u8 quoted;			 /* the flow is the one that an ICMP error quotes, reversed */
	__u32 ports;			 /* source low, destination high, as loaded */
	__u32 address_id, address_flags; /* SHUNT_ADDRESS_* */
	__u64 revision;
	__u32 counter, pool; /* of the service */
	__u8 table_class, hash_mode;
	__u8 by_address; /* no port: the address's one pool, by source address */
	__u8 tracked;
	__u32 slot;
	__u64 hash; /* in hash_mode */
	__u64 epoch, digest;
	__u32 phase, slots;
	__u32 owner;	   /* SHUNT_BACKEND_NONE: none */
	__u32 base;	   /* of tracked slots; with SHUNT_SLOT_LEARN */
	__u64 entry, next; /* the flow's entry, 0 if there is none; what this packet would make of it */
	__u32 kind;	   /* enum shunt_trace_kind */
	__u32 refused;	   /* there was no room for a new entry */
	__u32 range;
	__u32 backend; /* where the packet goes */
	struct shunt_backend entry_of_backend;
	__u64 hop; /* as in `nexthops` */
	struct shunt_iface iface;
	__u32 length; /* of the client's packet */
	__u32 taken;  /* bytes that are counted on top of it against the path MTU */
	__u32 answer; /* enum shunt_trace_answer */
	__u32 answer_mtu;
	__u32 told_mtu; /* 0: the error tells none */
	__u32 pad;
};
SHUNT_LAYOUT(struct shunt_trace, 264);

#endif
