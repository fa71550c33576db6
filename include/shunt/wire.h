/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is on the wire, where the kernel's own headers do not say it (or do not compile for BPF).
 * Multi-byte fields are in network order; the constants below are in host order.
 */
#ifndef SHUNT_WIRE_H
#define SHUNT_WIRE_H

#include <linux/types.h>

/* IEEE 802.1Q tag, after the MAC addresses (802.1ad outer tags look the same). */
struct shunt_vlan {
	__be16 tci;
	__be16 encapsulated; /* ethertype of what follows */
};

/* IPv4's fragment field: flags and offset. */
#define SHUNT_IP_DF 0x4000
#define SHUNT_IP_MF 0x2000
#define SHUNT_IP_OFFSET 0x1fff

/* IPv6 extension headers (RFC 8200, section 4): all begin alike; the fragment header goes on as shown. */
struct shunt_ipv6_extension {
	__u8 next;
	__u8 length;   /* in 8 bytes, the first 8 not counted; AH: in 4 bytes, minus 2; fragment: reserved */
	__be16 offset; /* 13 bits of offset, 2 reserved, 1 "more" */
	__be32 id;
};
#define SHUNT_IPV6_MF 0x0001
#define SHUNT_IPV6_OFFSET 0xfff8

/* Outer headers: TTL and hop limit are fresh. */
#define SHUNT_OUTER_TTL 64

#endif
