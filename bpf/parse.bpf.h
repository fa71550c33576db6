/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the first byte to the ports, in two halves: up to the destination address nothing is judged, because
 * what is not for a service is not ours to drop; behind it everything is.
 */
#ifndef SHUNT_PARSE_BPF_H
#define SHUNT_PARSE_BPF_H

#include "pkt.bpf.h"
#include "trace.bpf.h"

static __always_inline bool is_vlan(__be16 type)
{
	return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD);
}

/* Ethernet and up to two tags: sets l3 and ipv6. */
SHUNT_STAGE parse_link(struct pkt *p)
{
	struct ethhdr *eth = p->data;
	struct shunt_vlan *tag = (void *)(eth + 1);
	__be16 type;

	if ((void *)(eth + 1) > p->data_end)
		return SHUNT_END(SHUNT_PASS_NOT_IP);
	/* In one load: the kernel's struct is packed, and would be read by bytes. */
	type = *(__be16 *)((void *)eth + 2 * ETH_ALEN);
	p->l3 = sizeof(*eth);
	if (type == bpf_htons(ETH_P_IP))
		return SHUNT_CONTINUE;
#pragma unroll
	for (int i = 0; i < SHUNT_VLAN_TAGS_MAX; i++, tag++) {
		if (!unlikely(is_vlan(type)))
			break;
		if ((void *)(tag + 1) > p->data_end)
			return SHUNT_END(SHUNT_PASS_NOT_IP);
		type = tag->encapsulated;
		p->l3 += sizeof(*tag);
	}
	p->ipv6 = type == bpf_htons(ETH_P_IPV6);
	if (!p->ipv6 && type != bpf_htons(ETH_P_IP))
		return SHUNT_END(SHUNT_PASS_NOT_IP);
	return SHUNT_CONTINUE;
}

/*
 * In the common pipeline what the hash needs is read from the packet again where it is needed: to keep it on the stack
 * costs more.
 */
static __always_inline void read_words(struct pkt *p)
{
	const struct ipv6hdr *ip6 = p->ip;
	const struct iphdr *ip = p->ip;

	if (p->ipv6) {
#pragma unroll
		for (int i = 0; i < 4; i++) {
			p->source.word[i] = READ_ONCE(ip6->saddr.in6_u.u6_addr32[i]);
			p->destination.word[i] = READ_ONCE(ip6->daddr.in6_u.u6_addr32[i]);
		}
		p->protocol = READ_ONCE(ip6->nexthdr);
	} else {
		p->source.word[3] = READ_ONCE(ip->saddr);
		p->destination.word[3] = READ_ONCE(ip->daddr);
		p->protocol = READ_ONCE(ip->protocol);
	}
}

/* The same as addresses are compared: those of IPv6 by halves, although the kernel's structs promise words alone. */
static __always_inline void read_halves(struct pkt *p)
{
	const __u64 *source = p->ip + __builtin_offsetof(struct ipv6hdr, saddr);
	const __u64 *destination = p->ip + __builtin_offsetof(struct ipv6hdr, daddr);
	const struct ipv6hdr *ip6 = p->ip;

	if (!p->ipv6) {
		read_words(p);
		return;
	}
	p->source.half[0] = READ_ONCE(source[0]);
	p->source.half[1] = READ_ONCE(source[1]);
	p->destination.half[0] = READ_ONCE(destination[0]);
	p->destination.half[1] = READ_ONCE(destination[1]);
	p->protocol = READ_ONCE(ip6->nexthdr);
}

/*
 * The addresses, without any judgement of the header.  In the common pipeline the caller has seen that they are in the
 * frame.
 */
SHUNT_STAGE parse_addresses(struct pkt *p)
{
	void *header = pkt_ip(p);

	if (p->ipv6) {
		struct ipv6hdr *ip6 = header;

		if (!p->common && (void *)(ip6 + 1) > p->data_end)
			return SHUNT_END(SHUNT_PASS_NOT_IP);
		__builtin_memcpy(&p->source, &ip6->saddr, sizeof(p->source));
		__builtin_memcpy(&p->destination, &ip6->daddr, sizeof(p->destination));
		p->protocol = ip6->nexthdr;
		/* ::ffff:0:0/96 stands for IPv4 in the snapshot, and is never on a wire. */
		if (unlikely(!p->destination.half[0] && p->destination.word[2] == bpf_htonl(0xffff)))
			return SHUNT_END(SHUNT_PASS_NOT_SERVICE);
	} else {
		struct iphdr *ip = header;

		if (!p->common && (void *)(ip + 1) > p->data_end)
			return SHUNT_END(SHUNT_PASS_NOT_IP);
		p->source.half[0] = p->destination.half[0] = 0;
		p->source.word[2] = p->destination.word[2] = bpf_htonl(0xffff);
		p->source.word[3] = ip->saddr;
		p->destination.word[3] = ip->daddr;
		p->protocol = ip->protocol;
	}
	trace_addresses(p);
	return SHUNT_CONTINUE;
}

SHUNT_STAGE parse_header4(struct pkt *p)
{
	struct iphdr *ip = pkt_ip(p);
	__u32 header;

	if ((void *)(ip + 1) > p->data_end)
		return SHUNT_END(SHUNT_DROP_TRUNCATED);
	header = ip->ihl * 4;
	p->length = bpf_ntohs(ip->tot_len);
	if (unlikely(ip->version != 4 || header < sizeof(*ip) || p->length < header))
		return SHUNT_END(SHUNT_DROP_IP_HEADER);
	p->l4 = p->l3 + header;
	p->tos = ip->tos;
	p->id = ip->id;
	p->fragment = ip->frag_off;
	if (unlikely(p->fragment & bpf_htons(SHUNT_IP_MF | SHUNT_IP_OFFSET))) {
		p->part = p->fragment & bpf_htons(SHUNT_IP_OFFSET) ? PKT_LATER : PKT_FIRST;
		p->datagram = ip->id;
		/* Fragments share it; what goes out around them must not: some router may fragment that again. */
		p->id ^= (__u16)(bpf_ntohs(p->fragment & bpf_htons(SHUNT_IP_OFFSET)) * 0x9e37u);
	}
	return SHUNT_CONTINUE;
}

static __always_inline bool is_extension(__u32 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS ||
	       next == IPPROTO_FRAGMENT || next == IPPROTO_AH;
}

/* Where a chain of extension headers leads. */
struct walk {
	__u32 offset; /* of the next header; in: where the chain begins */
	__u32 next;   /* what that is; in: what the chain begins with */
	__u32 part;   /* enum pkt_part */
	__u32 datagram;
	__u32 one_way; /* a routing header (RFC 8200, section 8.4) or an AH was among them */
};

/* One header; false where the frame ends. */
static __always_inline bool walk_step(struct walk *w, void *data, void *end)
{
	struct shunt_ipv6_extension *head = data + (w->offset & SHUNT_L4_MASK);

	if ((void *)(head + 1) > end)
		return false;
	w->one_way |= w->next == IPPROTO_ROUTING || w->next == IPPROTO_AH;
	if (w->next == IPPROTO_FRAGMENT) {
		w->offset += sizeof(*head);
		w->datagram = head->id;
		if (head->offset & bpf_htons(SHUNT_IPV6_OFFSET | SHUNT_IPV6_MF)) /* else atomic: RFC 6946 */
			w->part = head->offset & bpf_htons(SHUNT_IPV6_OFFSET) ? PKT_LATER : PKT_FIRST;
	} else if (w->next == IPPROTO_AH) {
		w->offset += (head->length + 2) * 4;
	} else {
		w->offset += (head->length + 1) * 8;
	}
	w->next = head->next;
	return true;
}

/*
 * Step over IPv6 extension headers (RFC 8200, section 4; AH: RFC 4302, section 2.2), up to a later fragment's, behind
 * which stands the middle of something.
 */
__noinline int walk_extensions(struct xdp_md *ctx, struct walk *w)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (!w)
		return SHUNT_END(SHUNT_DROP_EXTENSIONS);
	for (int i = 0; i < SHUNT_IPV6_EXTENSIONS_MAX; i++) {
		if (!is_extension(w->next) || w->part == PKT_LATER)
			return SHUNT_CONTINUE;
		if (!walk_step(w, data, end))
			return SHUNT_END(SHUNT_DROP_TRUNCATED);
	}
	return is_extension(w->next) && w->part != PKT_LATER ? SHUNT_DROP_EXTENSIONS : SHUNT_CONTINUE;
}

SHUNT_STAGE parse_header6(struct pkt *p)
{
	struct ipv6hdr *ip6 = pkt_ip(p);
	enum shunt_reason reason;

	if ((void *)(ip6 + 1) > p->data_end)
		return SHUNT_END(SHUNT_DROP_TRUNCATED);
	if (unlikely(ip6->version != 6))
		return SHUNT_END(SHUNT_DROP_IP_HEADER);
	p->length = sizeof(*ip6) + bpf_ntohs(ip6->payload_len);
	p->l4 = p->l3 + sizeof(*ip6);
	p->tos = ip6->priority << 4 | ip6->flow_lbl[0] >> 4;
	p->fragment = bpf_htons(SHUNT_IP_DF);
	if (is_extension(p->protocol)) {
		struct walk walk = {.offset = p->l4, .next = p->protocol};

		reason = (enum shunt_reason)walk_extensions(p->ctx, &walk);
		if (reason != SHUNT_CONTINUE)
			return reason;
		p->l4 = walk.offset & SHUNT_L4_MASK;
		p->protocol = walk.next;
		p->part = walk.part;
		p->datagram = walk.datagram;
		p->one_way = walk.one_way;
		if (p->l4 - p->l3 > p->length)
			return SHUNT_END(SHUNT_DROP_TRUNCATED);
	}
	return SHUNT_CONTINUE;
}

/* The header of a packet for a service address: l4, protocol, length and what the outer header copies. */
SHUNT_STAGE parse_header(struct pkt *p)
{
	enum shunt_reason reason = p->ipv6 ? parse_header6(p) : parse_header4(p);

	if (reason != SHUNT_CONTINUE)
		return reason;
	SHUNT_OPAQUE(p->l4); /* as with l3, see shunt.bpf.c */
	if (unlikely(!pkt_holds(p, p->length)))
		return SHUNT_END(SHUNT_DROP_TRUNCATED);
	return SHUNT_CONTINUE;
}

/* No client: this network, loopback, multicast and above (RFC 1122, 3.2.1.3; RFC 4291, 2.5), or the address itself. */
static __always_inline bool bad_source(const struct pkt *p)
{
	const union shunt_address *a = &p->source, *b = &p->destination;
	__u32 first;

	if (p->ipv6)
		return (a->half[1] == b->half[1] && a->half[0] == b->half[0]) || a->byte[0] == 0xff ||
		       (!a->half[0] && bpf_be64_to_cpu(a->half[1]) <= 1);
	first = a->byte[12] - 1u;
	return a->word[3] == b->word[3] || first >= 223 || first == 126;
}

static __always_inline bool ports_are_known(const struct pkt *p)
{
	return p->ports & 0xffff && p->ports >> 16;
}

/* TCP or UDP: the ports, of a header that the packet holds in full (a first fragment may hold less of the payload). */
SHUNT_STAGE parse_transport(struct pkt *p)
{
	__u32 room = p->length - (p->l4 - p->l3);
	__u8 *head = pkt_l4(p);

	if (unlikely(bad_source(p)))
		return SHUNT_END(SHUNT_DROP_SOURCE);
	if (p->protocol == IPPROTO_TCP) {
		if (unlikely(room < 20 || (void *)(head + 20) > p->data_end))
			return SHUNT_END(SHUNT_DROP_TRUNCATED);
		if (unlikely(head[12] >> 4 < 5 || (head[12] >> 4) * 4u > room))
			return SHUNT_END(SHUNT_DROP_L4_HEADER);
	} else {
		if (unlikely(room < 8 || (void *)(head + 8) > p->data_end))
			return SHUNT_END(SHUNT_DROP_TRUNCATED);
		__u32 claimed = head[4] << 8 | head[5];

		if (unlikely(claimed < 8 || (claimed > room && p->part == PKT_WHOLE)))
			return SHUNT_END(SHUNT_DROP_L4_HEADER);
	}
	p->ports = SHUNT_WIRE32(*(__u32 *)head);
	if (unlikely(!ports_are_known(p)))
		return SHUNT_END(SHUNT_DROP_PORT_ZERO);
	return SHUNT_CONTINUE;
}

/*
 * Both in the common pipeline: a whole packet of TCP or UDP behind the shortest IP header.  false: it is another, or
 * contradicts itself, and is judged where there is time.  Sums are compared, so that a length below that of the headers
 * needs no question of its own.
 */
static __always_inline bool parse_common(struct pkt *p)
{
	const __u32 header = pkt_header(p);
	const struct ipv6hdr *ip6 = p->ip;
	const struct iphdr *ip = p->ip;
	const __u8 *head = pkt_l4(p), first = *(const __u8 *)p->ip;
	__u32 size;

	read_halves(p);
	if (p->ipv6 ? first >> 4 != 6 : first != (4 << 4 | sizeof(*ip) / 4))
		return false;
	if (!p->ipv6 && ip->frag_off & bpf_htons(SHUNT_IP_MF | SHUNT_IP_OFFSET))
		return false;
	p->length = p->ipv6 ? header + bpf_ntohs(ip6->payload_len) : bpf_ntohs(ip->tot_len);
	p->l4 = p->l3 + header;
	if (!pkt_holds(p, p->length) || bad_source(p))
		return false;
	if (p->protocol == IPPROTO_TCP) {
		if (p->ipv6 && (void *)(head + 20) > p->data_end)
			return false;
		size = (head[12] >> 4) * 4;
		if (size < 20 || header + size > p->length)
			return false;
	} else if (p->protocol == IPPROTO_UDP) {
		size = head[4] << 8 | head[5];
		if (size < 8 || header + size > p->length)
			return false;
	} else {
		return false;
	}
	p->ports = SHUNT_WIRE32(*(const __u32 *)head);
	return ports_are_known(p);
}

#endif
