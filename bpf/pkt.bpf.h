/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The cursor: what the stages have learned of the packet.  It lives in registers, because every stage is
 * inlined; out-of-line stages get the context and offsets instead.
 */
#ifndef SHUNT_PKT_BPF_H
#define SHUNT_PKT_BPF_H

#include "env.bpf.h"

struct pkt {
	struct xdp_md *ctx;
	void *data, *data_end; /* of the first segment; stale after bpf_xdp_adjust_head() */
	bool common;	       /* constant: in the common pipeline */
	void *ip;	       /* there: the IP header, without options; stale as above */

	__u32 l3;	 /* offset of the IP header: 14, 18 or 22 */
	__u32 l4;	 /* offset of the transport header */
	__u32 length;	 /* of the packet by its IP header, that included, in bytes */
	__be16 fragment; /* IPv4: flags and offset; IPv6: DF */
	__be16 id;	 /* IPv4 */
	__u32 datagram;	 /* of a fragment: its identification */
	bool ipv6;
	__u8 protocol; /* of what stands at l4 */
	__u8 tos;      /* DSCP and ECN: IPv4's type of service, IPv6's traffic class */
	union shunt_address source, destination;
	__u32 ports; /* source low, destination high, as loaded */

	__u64 address_hash; /* of the service address, in the snapshot */
	__u32 address_id, address_flags;
	const struct shunt_address_entry *address;
	bool by_address;     /* no port: goes by source to the one pool of the address */
	bool steered;	     /* its backend is known already */
	__u32 pool, counter; /* of the service */
	__u8 table_class, hash_mode;
	__u64 hash; /* in the service's mode */
	__u32 slot;
	bool quoted;   /* the flow is the one that an ICMP error quotes */
	__u8 part;     /* enum pkt_part */
	bool one_way;  /* with headers that an answer must not return */
	__u32 backend; /* what the slot says; later where the packet goes */
};

/* Which part of a datagram a packet is. */
enum pkt_part { PKT_WHOLE, PKT_FIRST, PKT_LATER };

/* Not a reason: the packet is of a rare kind, and goes through the out-of-line instance of the pipeline. */
#define SHUNT_RARE ((enum shunt_reason) - 2)
/* Nor is this: the packet gets an answer. */
#define SHUNT_ASK ((enum shunt_reason) - 3)

/* Bounds an offset for the verifier; the longest walk (22 + 40 + 6 * 2,048 bytes) stays below. */
#define SHUNT_L4_MASK 0x3fffu

#define SHUNT_STAGE static __always_inline enum shunt_reason

/*
 * A constant reason, told from a block of its own: without it clang sets the register that carries the reason in front
 * of each branch, on the way of every packet that goes on.
 */
#define SHUNT_END(reason)                                                                                              \
	({                                                                                                             \
		asm volatile("" : : "i"(reason));                                                                      \
		(reason);                                                                                              \
	})

static __always_inline void pkt_load(struct pkt *p)
{
	p->data = (void *)(long)p->ctx->data;
	p->data_end = (void *)(long)p->ctx->data_end;
}

/*
 * Where the headers are: at constant distances from one pointer, which is kept.  Elsewhere masks bound that for the
 * verifier where an offset was kept on the stack.
 */
static __always_inline void *pkt_ip(const struct pkt *p)
{
	return p->common ? p->ip : p->data + (p->l3 & 31);
}

/* Bytes of the IP header in the common pipeline, where it has no options and no extensions. */
static __always_inline __u32 pkt_header(const struct pkt *p)
{
	return p->ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

/* From the IP header on, what every frame of the common pipeline holds: IPv4 with TCP, or IPv6 with UDP. */
static __always_inline __u32 pkt_room(const struct pkt *p)
{
	return p->ipv6 ? sizeof(struct ipv6hdr) + 8 : sizeof(struct iphdr) + 20;
}

static __always_inline void *pkt_l4(const struct pkt *p)
{
	if (p->common)
		return p->ip + pkt_header(p);
	return p->data + (p->l4 & SHUNT_L4_MASK);
}

/* Sent to more than this host: an answer would have a group's address as its source. */
static __always_inline bool to_group(const struct pkt *p)
{
	const struct ethhdr *eth = p->data;

	return (void *)(eth + 1) > p->data_end || eth->h_dest[0] & 1;
}

/* Whether `length` bytes from the IP header on are in the frame, in whichever segments. */
static __always_inline bool pkt_holds(const struct pkt *p, __u32 length)
{
	if (length <= (__u64)(p->data_end - pkt_ip(p)))
		return true;
	return config.frags && (__u64)p->l3 + length <= bpf_xdp_get_buff_len(p->ctx);
}

#endif
