/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From the first byte to the ports, in two halves: up to the destination address nothing is judged, because
 * what is not for a service is not ours to drop; behind it everything is.
 */
#ifndef SHUNT_PARSE_BPF_H
#define SHUNT_PARSE_BPF_H

#include "pkt.bpf.h"

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
		return SHUNT_PASS_NOT_IP;
	type = eth->h_proto;
	p->l3 = sizeof(*eth);
#pragma unroll
	for (int i = 0; i < SHUNT_VLAN_TAGS_MAX; i++, tag++) {
		if (!unlikely(is_vlan(type)))
			break;
		if ((void *)(tag + 1) > p->data_end)
			return SHUNT_PASS_NOT_IP;
		type = tag->encapsulated;
		p->l3 += sizeof(*tag);
	}
	p->ipv6 = type == bpf_htons(ETH_P_IPV6);
	if (!p->ipv6 && type != bpf_htons(ETH_P_IP))
		return SHUNT_PASS_NOT_IP;
	return SHUNT_CONTINUE;
}

/* The addresses, without any judgement of the header. */
SHUNT_STAGE parse_addresses(struct pkt *p)
{
	void *header = p->data + p->l3;

	if (p->ipv6) {
		struct ipv6hdr *ip6 = header;

		if ((void *)(ip6 + 1) > p->data_end)
			return SHUNT_PASS_NOT_IP;
		__builtin_memcpy(&p->source, &ip6->saddr, sizeof(p->source));
		__builtin_memcpy(&p->destination, &ip6->daddr, sizeof(p->destination));
		/* ::ffff:0:0/96 stands for IPv4 in the snapshot, and is never on a wire. */
		if (unlikely(!p->destination.half[0] && p->destination.word[2] == bpf_htonl(0xffff)))
			return SHUNT_PASS_NOT_SERVICE;
	} else {
		struct iphdr *ip = header;

		if ((void *)(ip + 1) > p->data_end)
			return SHUNT_PASS_NOT_IP;
		p->source.half[0] = p->destination.half[0] = 0;
		p->source.word[2] = p->destination.word[2] = bpf_htonl(0xffff);
		p->source.word[3] = ip->saddr;
		p->destination.word[3] = ip->daddr;
	}
	return SHUNT_CONTINUE;
}

SHUNT_STAGE parse_header4(struct pkt *p)
{
	struct iphdr *ip = p->data + p->l3;
	__u32 header;

	if ((void *)(ip + 1) > p->data_end)
		return SHUNT_DROP_TRUNCATED;
	header = ip->ihl * 4;
	p->length = bpf_ntohs(ip->tot_len);
	if (unlikely(ip->version != 4 || header < sizeof(*ip) || p->length < header))
		return SHUNT_DROP_IP_HEADER;
	p->l4 = p->l3 + header;
	p->protocol = ip->protocol;
	p->tos = ip->tos;
	p->id = ip->id;
	p->fragment = ip->frag_off;
	if (unlikely(p->fragment & bpf_htons(SHUNT_IP_MF | SHUNT_IP_OFFSET)))
		return SHUNT_DROP_FRAGMENT;
	return SHUNT_CONTINUE;
}

/* Bounds an offset for the verifier; the longest walk (22 + 40 + 6 * 2,048 bytes) stays below. */
#define SHUNT_L4_MASK 0x3fffu

/* A walk's answer: below 0 the reason that it stopped, else where the transport header is and what it is. */
#define SHUNT_WALKED(offset, next) ((long)(offset) << 8 | (next))
#define SHUNT_STOPPED(reason) (-1L - (long)(reason))

static __always_inline bool is_extension(__u32 next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS ||
	       next == IPPROTO_FRAGMENT || next == IPPROTO_AH;
}

/*
 * Step over IPv6 extension headers (RFC 8200, section 4; AH: RFC 4302, section 2.2).  Out of line: few packets
 * have any.  An atomic fragment (RFC 6946) is a whole packet.
 */
static __noinline long walk_extensions(struct xdp_md *ctx, __u32 offset, __u32 next)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	for (int i = 0; i < SHUNT_IPV6_EXTENSIONS_MAX; i++) {
		struct shunt_ipv6_extension *head = data + (offset & SHUNT_L4_MASK);

		if (!is_extension(next))
			break;
		if ((void *)(head + 1) > end)
			return SHUNT_STOPPED(SHUNT_DROP_TRUNCATED);
		if (next == IPPROTO_FRAGMENT) {
			if (head->offset & bpf_htons(SHUNT_IPV6_OFFSET | SHUNT_IPV6_MF))
				return SHUNT_STOPPED(SHUNT_DROP_FRAGMENT);
			offset += sizeof(*head);
		} else if (next == IPPROTO_AH) {
			offset += (head->length + 2) * 4;
		} else {
			offset += (head->length + 1) * 8;
		}
		next = head->next;
	}
	return is_extension(next) ? SHUNT_STOPPED(SHUNT_DROP_EXTENSIONS) : SHUNT_WALKED(offset & SHUNT_L4_MASK, next);
}

SHUNT_STAGE parse_header6(struct pkt *p)
{
	struct ipv6hdr *ip6 = p->data + p->l3;
	long walked;

	if ((void *)(ip6 + 1) > p->data_end)
		return SHUNT_DROP_TRUNCATED;
	if (unlikely(ip6->version != 6))
		return SHUNT_DROP_IP_HEADER;
	p->length = sizeof(*ip6) + bpf_ntohs(ip6->payload_len);
	p->l4 = p->l3 + sizeof(*ip6);
	p->protocol = ip6->nexthdr;
	p->tos = ip6->priority << 4 | ip6->flow_lbl[0] >> 4;
	p->fragment = bpf_htons(SHUNT_IP_DF);
	if (unlikely(p->protocol != IPPROTO_TCP && p->protocol != IPPROTO_UDP)) {
		walked = walk_extensions(p->ctx, p->l4, p->protocol);
		if (walked < 0)
			return (enum shunt_reason)SHUNT_STOPPED(walked);
		p->l4 = walked >> 8 & SHUNT_L4_MASK;
		p->protocol = walked & 0xff;
	}
	return SHUNT_CONTINUE;
}

/* The header of a packet for a service address: l4, protocol, length and what the outer header copies. */
SHUNT_STAGE parse_header(struct pkt *p)
{
	enum shunt_reason reason = p->ipv6 ? parse_header6(p) : parse_header4(p);

	/* Where the address is the host's too, what no service can claim is the host's. */
	if (unlikely(reason == SHUNT_DROP_FRAGMENT && p->address_flags & SHUNT_ADDRESS_UNKNOWN_PASS))
		return SHUNT_PASS_UNKNOWN_PORT;
	if (reason != SHUNT_CONTINUE)
		return reason;
	return pkt_holds(p, p->l3, p->length) ? SHUNT_CONTINUE : SHUNT_DROP_TRUNCATED;
}

/*
 * Neither TCP nor UDP.  Neighbour discovery (RFC 4861, types 133 to 137) may be sent to an address by unicast, and
 * has nothing to do with its services.
 */
static __noinline int other_protocol(struct xdp_md *ctx, __u32 l4, __u32 protocol, bool ipv6, __u32 address_flags)
{
	__u8 *type = (void *)(long)ctx->data + (l4 & SHUNT_L4_MASK);

	if (ipv6 && protocol == IPPROTO_ICMPV6 && (void *)(type + 1) <= (void *)(long)ctx->data_end && *type >= 133 &&
	    *type <= 137)
		return SHUNT_PASS_NOT_SERVICE;
	if (address_flags & SHUNT_ADDRESS_UNKNOWN_PASS)
		return SHUNT_PASS_UNKNOWN_PORT;
	if (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6)
		return SHUNT_DROP_ICMP;
	return SHUNT_DROP_PROTOCOL;
}

/* TCP or UDP: the ports, of a header that the packet holds in full. */
SHUNT_STAGE parse_transport(struct pkt *p)
{
	bool tcp = p->protocol == IPPROTO_TCP;
	__u32 *ports = p->data + p->l4;

	if (unlikely(!tcp && p->protocol != IPPROTO_UDP))
		return (enum shunt_reason)other_protocol(p->ctx, p->l4, p->protocol, p->ipv6, p->address_flags);
	if (unlikely(p->l4 - p->l3 + (tcp ? 20 : 8) > p->length || (void *)(ports + 2) > p->data_end))
		return SHUNT_DROP_TRUNCATED;
	p->ports = SHUNT_WIRE32(*ports);
	return SHUNT_CONTINUE;
}

#endif
