/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Puts the outer header in front of the client's packet.  What the client's checksums cover is not touched;
 * its TTL is decremented as a router does.
 */
#ifndef SHUNT_ENCAP_BPF_H
#define SHUNT_ENCAP_BPF_H

#include "csum.bpf.h"
#include "maps.bpf.h"
#include "pkt.bpf.h"

/* RFC 1812, section 5.3.1. */
SHUNT_STAGE decrement_ttl(struct pkt *p)
{
	if (p->ipv6) {
		struct ipv6hdr *ip6 = pkt_ip(p);

		if ((void *)(ip6 + 1) > p->data_end)
			return SHUNT_DROP_TRUNCATED;
		if (unlikely(ip6->hop_limit <= 1))
			return SHUNT_DROP_TTL;
		ip6->hop_limit--;
	} else {
		struct iphdr *ip = pkt_ip(p);

		if ((void *)(ip + 1) > p->data_end)
			return SHUNT_DROP_TRUNCATED;
		if (unlikely(ip->ttl <= 1))
			return SHUNT_DROP_TTL;
		ip->check = csum_replace(ip->check, bpf_htons(0x0100), 0);
		ip->ttl--;
	}
	return SHUNT_CONTINUE;
}

/* The client's packet as an IP protocol (RFC 2003, RFC 4213, RFC 2473). */
static __always_inline __u32 inner_protocol(const struct pkt *p)
{
	return p->ipv6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
}

/* DF as inside; an id only where a router may fragment (RFC 6864), apart for different flows. */
static __always_inline void write_outer4(const struct pkt *p, __u32 *to, const struct shunt_backend *backend)
{
	const __u32 *ready = (const void *)backend->outer;
	__u32 tos = (__u32)p->tos << 8, protocol = inner_protocol(p) << 8;
	__u32 length = bpf_htons(p->length + sizeof(struct iphdr));
	__u32 fragment = p->fragment & bpf_htons(SHUNT_IP_DF);
	__u32 id = fragment ? 0 : (__u16)(p->id ^ p->hash);
	__u32 check = (__u16)~csum_fold(backend->sum + tos + length + id + fragment + protocol);

	to[0] = ready[0] | tos | length << 16;
	to[1] = id | fragment << 16;
	to[2] = ready[2] | protocol | check << 16;
	to[3] = ready[3];
	to[4] = ready[4];
}

static __always_inline void write_outer6(const struct pkt *p, __u32 *to, const struct shunt_backend *backend)
{
	const __u32 *ready = (const void *)backend->outer;
	__u32 label = (p->hash & 0xfffff) | 1; /* 0 would mean "no label" (RFC 6437) */

	to[0] = ready[0] | bpf_htonl((__u32)p->tos << 20 | label);
	to[1] = ready[1] | bpf_htons(p->length) | inner_protocol(p) << 16;
#pragma unroll
	for (int i = 2; i < 10; i++)
		to[i] = ready[i];
}

/*
 * Make room for `size` bytes in front of the IP header, and keep the tags; the MAC addresses are written later.
 * Returns where the outer header goes.
 */
static __always_inline void *open_gap(struct pkt *p, __u32 size, __be16 ethertype)
{
	__be16 *type;
	void *outer;

	if (bpf_xdp_adjust_head(p->ctx, -(int)size))
		return NULL;
	pkt_load(p);
	outer = pkt_ip(p);
	if (outer + size > p->data_end)
		return NULL;
	if (unlikely(p->l3 > sizeof(struct ethhdr))) {
		__u32 *to = p->data + 2 * ETH_ALEN, *from = (void *)to + size;

		/* With one tag the second word is junk, which the outer header overwrites. */
		if ((void *)(from + 2) > p->data_end)
			return NULL;
		to[0] = from[0];
		to[1] = from[1];
	}
	type = p->data + ((p->l3 - sizeof(*type)) & 31);
	if ((void *)(type + 1) > p->data_end)
		return NULL;
	*type = ethertype;
	return outer;
}

SHUNT_STAGE encapsulate(struct pkt *p, const struct shunt_backend *backend)
{
	void *outer;

	if (backend->encap == SHUNT_ENCAP_IPIP4) {
		outer = open_gap(p, sizeof(struct iphdr), bpf_htons(ETH_P_IP));
		if (!outer)
			return SHUNT_DROP_HEADROOM;
		write_outer4(p, outer, backend);
	} else if (backend->encap == SHUNT_ENCAP_IPIP6) {
		outer = open_gap(p, sizeof(struct ipv6hdr), bpf_htons(ETH_P_IPV6));
		if (!outer)
			return SHUNT_DROP_HEADROOM;
		write_outer6(p, outer, backend);
	} else {
		return SHUNT_BUG_BACKEND;
	}
	return SHUNT_CONTINUE;
}

#endif
