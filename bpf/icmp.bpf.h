/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICMP and ICMPv6 for a service address: echo is answered; an error goes to the backend that sent the packet it quotes,
 * found as that packet's answer would be: addresses and ports reversed, the same hash.
 */
#ifndef SHUNT_ICMP_BPF_H
#define SHUNT_ICMP_BPF_H

#include "answer.bpf.h"
#include "parse.bpf.h"

#define ICMP4_ECHO_REPLY 0
#define ICMP4_UNREACHABLE 3
#define ICMP4_ECHO 8
#define ICMP4_TIME_EXCEEDED 11
#define ICMP4_PARAMETER 12
#define ICMP6_UNREACHABLE 1
#define ICMP6_TOO_BIG 2
#define ICMP6_TIME_EXCEEDED 3
#define ICMP6_PARAMETER 4
#define ICMP6_ECHO 128
#define ICMP6_ECHO_REPLY 129
#define ICMP6_ND_FIRST 133 /* router solicitation .. redirect: RFC 4861 */
#define ICMP6_ND_LAST 137

static __always_inline bool is_icmp(const struct pkt *p)
{
	return p->protocol == (p->ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);
}

static __always_inline bool is_error(const struct pkt *p, __u8 type)
{
	if (p->ipv6)
		return type >= ICMP6_UNREACHABLE && type <= ICMP6_PARAMETER;
	return type == ICMP4_UNREACHABLE || type == ICMP4_TIME_EXCEEDED || type == ICMP4_PARAMETER;
}

static __always_inline bool turn_round(struct pkt *p)
{
	struct ethhdr *eth = p->data;
	struct ipv6hdr *ip6 = pkt_ip(p);
	struct iphdr *ip = pkt_ip(p);
	__u8 mac[ETH_ALEN];

	if ((void *)(eth + 1) > p->data_end)
		return false;
	if (p->ipv6) {
		if ((void *)(ip6 + 1) > p->data_end)
			return false;
		__builtin_memcpy(&ip6->saddr, &p->destination, sizeof(ip6->saddr));
		__builtin_memcpy(&ip6->daddr, &p->source, sizeof(ip6->daddr));
		ip6->hop_limit = SHUNT_OUTER_TTL;
	} else {
		if ((void *)(ip + 1) > p->data_end)
			return false;
		ip->saddr = p->destination.word[3];
		ip->daddr = p->source.word[3];
		ip->check = csum_replace(ip->check, bpf_htons(ip->ttl << 8 | ip->protocol),
					 bpf_htons(SHUNT_OUTER_TTL << 8 | ip->protocol));
		ip->ttl = SHUNT_OUTER_TTL;
	}
	__builtin_memcpy(mac, eth->h_dest, sizeof(mac));
	__builtin_memcpy(eth->h_dest, eth->h_source, sizeof(mac));
	__builtin_memcpy(eth->h_source, mac, sizeof(mac));
	return true;
}

/*
 * Turn an echo request into its reply.  The checksum changes by the type alone (RFC 1624): a swap of addresses leaves
 * the pseudo header's sum as it is, so length and content do not matter.
 */
SHUNT_STAGE answer_echo(struct pkt *p)
{
	__u8 *icmp = pkt_l4(p);

	if ((void *)(icmp + 8) > p->data_end)
		return SHUNT_DROP_TRUNCATED;
	icmp[0] = p->ipv6 ? ICMP6_ECHO_REPLY : ICMP4_ECHO_REPLY;
	*(__sum16 *)(icmp + 2) =
		csum_replace(*(__sum16 *)(icmp + 2), bpf_htons((p->ipv6 ? ICMP6_ECHO : ICMP4_ECHO) << 8 | icmp[1]),
			     bpf_htons(icmp[0] << 8 | icmp[1]));
	return turn_round(p) ? SHUNT_ANSWER_ECHO : SHUNT_DROP_TRUNCATED;
}

SHUNT_STAGE echo(struct pkt *p)
{
	if (p->address_flags & SHUNT_ADDRESS_ECHO_DROP)
		return SHUNT_DROP_ECHO;
	if (bad_source(p))
		return SHUNT_DROP_SOURCE;
	if (!(p->address_flags & SHUNT_ADDRESS_ECHO_FORWARD))
		return answer_echo(p);
	p->by_address = true;
	return SHUNT_CONTINUE;
}

/* The packet that an error quotes: whose answers would be the flow. */
struct quote {
	union shunt_address source, destination;
	__u32 ports; /* of the flow: reversed */
	__u32 protocol;
	__u32 at; /* in: offset of the quoted IP header */
	__u32 ipv6;
};

static __always_inline int quote_ports(void *data, void *end, struct quote *q, __u32 l4)
{
	__u32 *ports = data + (l4 & SHUNT_L4_MASK);

	/* Eight bytes of transport header are all that RFC 792 promises; the ports are among them. */
	if ((void *)(ports + 2) > end)
		return SHUNT_DROP_TRUNCATED;
	q->ports = SHUNT_WIRE32(*ports) << 16 | SHUNT_WIRE32(*ports) >> 16;
	return SHUNT_CONTINUE;
}

__noinline int read_quote4(struct xdp_md *ctx, struct quote *q)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip;

	if (!q)
		return SHUNT_DROP_ICMP_QUOTE;
	ip = data + (q->at & SHUNT_L4_MASK);
	if ((void *)(ip + 1) > end)
		return SHUNT_DROP_TRUNCATED;
	if (ip->version != 4 || ip->ihl < 5 || ip->frag_off & bpf_htons(SHUNT_IP_OFFSET))
		return SHUNT_DROP_ICMP_QUOTE;
	q->source.half[0] = q->destination.half[0] = 0;
	q->source.word[2] = q->destination.word[2] = bpf_htonl(0xffff);
	q->source.word[3] = ip->saddr;
	q->destination.word[3] = ip->daddr;
	q->protocol = ip->protocol;
	return quote_ports(data, end, q, q->at + ip->ihl * 4);
}

__noinline int read_quote6(struct xdp_md *ctx, struct quote *q)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct walk walk = {};
	struct ipv6hdr *ip6;

	if (!q)
		return SHUNT_DROP_ICMP_QUOTE;
	ip6 = data + (q->at & SHUNT_L4_MASK);
	if ((void *)(ip6 + 1) > end)
		return SHUNT_DROP_TRUNCATED;
	if (ip6->version != 6)
		return SHUNT_DROP_ICMP_QUOTE;
	__builtin_memcpy(&q->source, &ip6->saddr, sizeof(q->source));
	__builtin_memcpy(&q->destination, &ip6->daddr, sizeof(q->destination));
	walk.offset = q->at + sizeof(*ip6);
	walk.next = ip6->nexthdr;
	if (walk_extensions(ctx, &walk) != SHUNT_CONTINUE || walk.part == PKT_LATER)
		return SHUNT_DROP_ICMP_QUOTE;
	q->protocol = walk.next;
	return quote_ports(data, end, q, walk.offset);
}

/* From now on the packet is one of the flow that the error speaks of. */
SHUNT_STAGE quoted_flow(struct pkt *p)
{
	struct quote q = {.at = p->l4 + ICMP_HEADER, .ipv6 = p->ipv6};
	int reason = p->ipv6 ? read_quote6(p->ctx, &q) : read_quote4(p->ctx, &q);

	if (reason != SHUNT_CONTINUE)
		return (enum shunt_reason)reason;
	if (q.source.half[0] != p->destination.half[0] || q.source.half[1] != p->destination.half[1] ||
	    (q.protocol != IPPROTO_TCP && q.protocol != IPPROTO_UDP))
		return SHUNT_DROP_ICMP_QUOTE;
	p->source = q.destination;
	p->ports = q.ports;
	p->protocol = q.protocol;
	p->quoted = true;
	return SHUNT_CONTINUE;
}

/* ICMP for a service address.  Where the address is the host's too, all but errors for services is the host's. */
SHUNT_STAGE icmp(struct pkt *p)
{
	__u8 *head = pkt_l4(p), type;
	enum shunt_reason reason;

	if ((void *)(head + 8) > p->data_end)
		return SHUNT_DROP_TRUNCATED;
	type = head[0];
	if (p->ipv6 && type >= ICMP6_ND_FIRST && type <= ICMP6_ND_LAST)
		return SHUNT_PASS_NOT_SERVICE;
	if (is_error(p, type)) {
		reason = quoted_flow(p);
		return reason == SHUNT_DROP_ICMP_QUOTE && p->address_flags & SHUNT_ADDRESS_UNKNOWN_PASS
			       ? SHUNT_PASS_UNKNOWN_PORT
			       : reason;
	}
	if (p->address_flags & SHUNT_ADDRESS_UNKNOWN_PASS)
		return SHUNT_PASS_UNKNOWN_PORT;
	return type == (p->ipv6 ? ICMP6_ECHO : ICMP4_ECHO) ? echo(p) : SHUNT_DROP_ICMP;
}

#endif
