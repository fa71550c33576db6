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

/* RFC 1812, section 5.3.1.  In the common pipeline the header is known to be in the frame. */
SHUNT_STAGE decrement_ttl(struct pkt *p)
{
	if (p->ipv6) {
		struct ipv6hdr *ip6 = pkt_ip(p);

		if (!p->common && (void *)(ip6 + 1) > p->data_end)
			return SHUNT_END(SHUNT_DROP_TRUNCATED);
		if (unlikely(ip6->hop_limit <= 1))
			return SHUNT_END(SHUNT_DROP_TTL);
		ip6->hop_limit--;
	} else {
		struct iphdr *ip = pkt_ip(p);

		if (!p->common && (void *)(ip + 1) > p->data_end)
			return SHUNT_END(SHUNT_DROP_TRUNCATED);
		if (unlikely(ip->ttl <= 1))
			return SHUNT_END(SHUNT_DROP_TTL);
		ip->check = csum_after_hop(ip->check);
		ip->ttl--;
	}
	return SHUNT_CONTINUE;
}

/* The client's packet as an IP protocol (RFC 2003, RFC 4213, RFC 2473). */
static __always_inline __u32 inner_protocol(const struct pkt *p)
{
	return p->ipv6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
}

/*
 * Bits of the flow's hash for the low bits of an outer source, in wire order.  Not those that GUE's source port has,
 * nor (up to 16 of them) those that choose the slot.
 */
static __always_inline __u32 source_entropy(const struct pkt *p, const struct shunt_backend *backend)
{
	__u64 mask = (1ull << (backend->source_bits & 63)) - 1;

	return bpf_htonl((__u32)(p->hash >> 16) & (__u32)mask);
}

/*
 * What the outer header copies.  In the common pipeline read again from the inner one, of which the caller has seen
 * that it is in the frame: to keep it on the stack meanwhile costs more.
 */
static __always_inline __u8 inner_tos(const struct pkt *p)
{
	const struct ipv6hdr *ip6 = p->ip;
	const struct iphdr *ip = p->ip;

	if (!p->common)
		return p->tos;
	return p->ipv6 ? bpf_ntohs(*(const __be16 *)ip6) >> 4 : ip->tos;
}

static __always_inline bool inner_df(const struct pkt *p)
{
	const struct iphdr *ip = p->ip;
	__be16 fragment = p->common && !p->ipv6 ? ip->frag_off : p->fragment;

	return p->ipv6 || fragment & bpf_htons(SHUNT_IP_DF);
}

static __always_inline __u16 inner_id(const struct pkt *p)
{
	const struct iphdr *ip = p->ip;

	return p->common && !p->ipv6 ? ip->id : p->id;
}

/*
 * size: of all that is put in front.  DF as inside; an id only where a router may fragment (RFC 6864), apart for
 * different flows.
 */
static __always_inline void write_outer4(const struct pkt *p, __u32 *to, const struct shunt_backend *backend,
					 __u32 size, __u32 next)
{
	const __u64 *ready = (const void *)backend->outer;
	__u32 tos = (__u32)inner_tos(p) << 8, protocol = next << 8, entropy, id;
	__u32 length = bpf_htons(p->length + size), sum = backend->sum + tos + length + protocol;
	__u64 second = ready[1]; /* TTL, protocol, checksum; source */

	/* The word of id, flags and offset. */
	if (inner_df(p)) {
		to[1] = (__u32)bpf_htons(SHUNT_IP_DF) << 16;
		sum += bpf_htons(SHUNT_IP_DF);
	} else {
		id = (__u16)(inner_id(p) ^ p->hash);
		to[1] = id;
		sum += id;
	}
	if (unlikely(backend->source_bits)) {
		entropy = source_entropy(p, backend);
		second |= (__u64)entropy << 32;
		sum += (entropy & 0xffff) + (entropy >> 16);
	}
	to[0] = (__u32)ready[0] | tos | length << 16;
	*(__u64 *)(to + 2) = second | protocol | (~csum_fold_high(sum) & 0xffff0000);
	to[4] = (__u32)ready[2];
}

static __always_inline void write_outer6(const struct pkt *p, __u32 *to, const struct shunt_backend *backend,
					 __u32 size, __u32 next)
{
	const __u64 *ready = (const void *)backend->outer;
	__u32 label = (p->hash & 0xfffff) | 1; /* 0 would mean "no label" (RFC 6437) */
	__u64 *more = (void *)(to + 2);

	to[0] = (__u32)ready[0] | bpf_htonl((__u32)inner_tos(p) << 20 | label);
	to[1] = (__u32)(ready[0] >> 32) | bpf_htons(p->length + size - sizeof(struct ipv6hdr)) | next << 16;
#pragma unroll
	for (int i = 0; i < 4; i++)
		more[i] = ready[1 + i];
	if (unlikely(backend->source_bits))
		to[5] |= source_entropy(p, backend);
}

/* Entropy in the source port, of the dynamic range (RFC 6335), so that backends spread over their receive queues. */
static __always_inline void write_gue(const struct pkt *p, struct shunt_gue_udp *h, const struct shunt_backend *backend)
{
	h->source = bpf_htons(0xc000 | (p->hash & 0x3fff));
	h->destination = backend->port;
	h->length = bpf_htons(p->length + sizeof(*h));
	h->check = 0;
	h->gue.control = 0;
	h->gue.protocol = inner_protocol(p);
	h->gue.flags = 0;
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
	outer = p->data + (p->common ? p->l3 : p->l3 & 31);
	p->ip = outer + size;
	if (p->ip + (p->common ? pkt_header(p) : 0) > p->data_end)
		return NULL;
	if (unlikely(p->l3 > sizeof(struct ethhdr))) {
		__u32 *to = p->data + 2 * ETH_ALEN, *from = (void *)to + size;

		/* With one tag the second word is junk, which the outer header overwrites. */
		if ((void *)(from + 2) > p->data_end)
			return NULL;
		to[0] = from[0];
		to[1] = from[1];
	}
	/* In the common pipeline the verifier knows l3, and that all up to there is in the frame. */
	type = p->common ? outer - sizeof(*type) : p->data + ((p->l3 - sizeof(*type)) & 31);
	if (!p->common && (void *)(type + 1) > p->data_end)
		return NULL;
	*type = ethertype;
	return outer;
}

/*
 * Whether the checksum inside tells the sum of the client's packet: not of a fragment, behind extension headers, of UDP
 * without one or with bytes behind its own length.
 */
static __always_inline bool sum_is_told(const struct pkt *p)
{
	__u32 segment = p->length - (p->l4 - p->l3);
	__u16 *l4 = pkt_l4(p);

	if (p->part != PKT_WHOLE || (!p->common && (void *)(l4 + 4) > p->data_end))
		return false;
	if (p->ipv6 && p->l4 - p->l3 != sizeof(struct ipv6hdr))
		return false;
	return p->protocol != IPPROTO_UDP || p->quoted || (l4[3] && l4[2] == bpf_htons(segment));
}

/*
 * The one's complement sum of a client's packet of which sum_is_told(), without reading its payload: a right TCP or UDP
 * checksum makes the segment's sum the complement of its pseudo header's, and a right IPv4 header sums to 0.  A wrong
 * one inside makes a wrong one outside, and the packet is lost a little earlier.
 */
static __always_inline __u16 inner_sum(const struct pkt *p)
{
	const __u16 *word = pkt_ip(p);
	const struct ipv6hdr *ip6 = (const void *)word;
	const struct iphdr *ip = (const void *)word;
	__u32 segment = p->length - (p->l4 - p->l3);

	if (p->ipv6) {
		if ((void *)(ip6 + 1) > p->data_end)
			return 0;
		/* Addresses and payload length stand in both, and go. */
		return csum_fold((__u32)word[0] + word[1] + word[3] + (__u16)~bpf_htons(ip6->nexthdr));
	}
	/* Of ICMP the whole message sums to 0. */
	if ((void *)(ip + 1) > p->data_end || ip->protocol == IPPROTO_ICMP)
		return 0;
	return (__u16)~csum_fold((__u32)word[6] + word[7] + word[8] + word[9] + bpf_htons(segment) +
				 bpf_htons(ip->protocol));
}

/* RFC 8200, section 8.1: UDP over IPv6 has a checksum, and a computed 0 is sent as ones. */
static __always_inline __sum16 gue6_check(const __u32 *outer, const struct shunt_gue_udp *h,
					  const struct shunt_backend *backend, __u16 inner)
{
	const __u16 *word = (const void *)h;
	__u32 sum = backend->sum + (outer[5] & 0xffff) + (outer[5] >> 16) + h->length + bpf_htons(IPPROTO_UDP);
	__u16 check;

	/* backend->sum has the source without its entropy: what it has of that word is taken off again. */
	sum += (__u16) ~(((const __u32 *)backend->outer)[5] & 0xffff) +
	       (__u16) ~(((const __u32 *)backend->outer)[5] >> 16);
#pragma unroll
	for (int i = 0; i < 6; i++)
		sum += word[i];
	check = ~csum_fold((__u32)sum + inner);
	return check ?: 0xffff;
}

/* Asked before the packet changes. */
static __always_inline bool lacks_checksum(const struct pkt *p, const struct shunt_backend *backend)
{
	return backend->encap == SHUNT_ENCAP_GUE6 && !(backend->flags & SHUNT_BACKEND_UDP6_ZERO) && !sum_is_told(p);
}

/* gue: constant.  Over IPv4 UDP's checksum is 0, which says that there is none (RFC 768). */
SHUNT_STAGE encapsulate4(struct pkt *p, const struct shunt_backend *backend, bool gue)
{
	const __u32 size = sizeof(struct iphdr) + (gue ? sizeof(struct shunt_gue_udp) : 0);
	void *outer = open_gap(p, size, bpf_htons(ETH_P_IP));

	if (!outer)
		return SHUNT_END(SHUNT_DROP_HEADROOM);
	write_outer4(p, outer, backend, size, gue ? IPPROTO_UDP : inner_protocol(p));
	if (gue)
		write_gue(p, outer + sizeof(struct iphdr), backend);
	return SHUNT_CONTINUE;
}

/* gue: constant. */
SHUNT_STAGE encapsulate6(struct pkt *p, const struct shunt_backend *backend, bool gue)
{
	const __u32 size = sizeof(struct ipv6hdr) + (gue ? sizeof(struct shunt_gue_udp) : 0);
	bool summed = gue && !(backend->flags & SHUNT_BACKEND_UDP6_ZERO);
	__u16 inner = summed ? inner_sum(p) : 0;
	struct shunt_gue_udp *h;
	__u32 *outer;

	outer = open_gap(p, size, bpf_htons(ETH_P_IPV6));
	if (!outer)
		return SHUNT_END(SHUNT_DROP_HEADROOM);
	write_outer6(p, outer, backend, size, gue ? IPPROTO_UDP : inner_protocol(p));
	if (!gue)
		return SHUNT_CONTINUE;
	h = (void *)outer + sizeof(struct ipv6hdr);
	write_gue(p, h, backend);
	if (summed)
		h->check = gue6_check(outer, h, backend, inner);
	return SHUNT_CONTINUE;
}

SHUNT_STAGE encapsulate(struct pkt *p, const struct shunt_backend *backend)
{
	switch (backend->encap) {
	case SHUNT_ENCAP_IPIP4:
		return encapsulate4(p, backend, false);
	case SHUNT_ENCAP_IPIP6:
		return encapsulate6(p, backend, false);
	case SHUNT_ENCAP_GUE4:
		return encapsulate4(p, backend, true);
	case SHUNT_ENCAP_GUE6:
		return encapsulate6(p, backend, true);
	case SHUNT_ENCAP_L2:
		return SHUNT_CONTINUE; /* new MAC addresses are all */
	default:
		return SHUNT_END(SHUNT_BUG_BACKEND);
	}
}

#endif
