/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ICMP and ICMPv6 for a service address: echo is answered; an error goes to the backend that sent the packet it quotes,
 * found as that packet's answer would be: addresses and ports reversed, the same hash.
 */
#ifndef SHUNT_ICMP_BPF_H
#define SHUNT_ICMP_BPF_H

#include "answer.bpf.h"
#include "parse.bpf.h"
#include "service.bpf.h"

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

/* Send it back where it came from.  A swap of addresses leaves every checksum as it is. */
SHUNT_STAGE turn_round(struct pkt *p)
{
	struct ethhdr *eth = p->data;
	struct ipv6hdr *ip6 = pkt_ip(p);
	struct iphdr *ip = pkt_ip(p);
	__u8 mac[ETH_ALEN];

	if ((void *)(eth + 1) > p->data_end || (void *)(ip + 1) > p->data_end)
		return SHUNT_DROP_TRUNCATED;
	if (p->ipv6) {
		if ((void *)(ip6 + 1) > p->data_end)
			return SHUNT_DROP_TRUNCATED;
		__builtin_memcpy(&ip6->saddr, &p->destination, sizeof(ip6->saddr));
		__builtin_memcpy(&ip6->daddr, &p->source, sizeof(ip6->daddr));
		ip6->hop_limit = SHUNT_OUTER_TTL;
	} else {
		ip->saddr = p->destination.word[3];
		ip->daddr = p->source.word[3];
		ip->check = csum_replace(ip->check, bpf_htons(ip->ttl << 8 | ip->protocol),
					 bpf_htons(SHUNT_OUTER_TTL << 8 | ip->protocol));
		ip->ttl = SHUNT_OUTER_TTL;
	}
	__builtin_memcpy(mac, eth->h_dest, sizeof(mac));
	__builtin_memcpy(eth->h_dest, eth->h_source, sizeof(mac));
	__builtin_memcpy(eth->h_source, mac, sizeof(mac));
	return SHUNT_ANSWER_ECHO;
}

/*
 * Turn an echo request into its reply.  The checksum changes by the type alone, so that length and content do not
 * matter, nor that the rest of the datagram is in other fragments.  Of the two zeros the one that is right for a
 * message of nothing but zeros too, which RFC 1624 would get wrong.
 */
SHUNT_STAGE answer_echo(struct pkt *p)
{
	__u8 *icmp = pkt_l4(p);
	__sum16 check;

	if (to_group(p))
		return SHUNT_DROP_ECHO;
	if (p->one_way)
		return SHUNT_DROP_EXTENSIONS;
	if (p->part == PKT_LATER)
		return turn_round(p);
	if ((void *)(icmp + ICMP_HEADER) > p->data_end)
		return SHUNT_DROP_TRUNCATED;
	icmp[0] = p->ipv6 ? ICMP6_ECHO_REPLY : ICMP4_ECHO_REPLY;
	check = csum_replace(*(__sum16 *)(icmp + 2), bpf_htons((p->ipv6 ? ICMP6_ECHO : ICMP4_ECHO) << 8 | icmp[1]),
			     bpf_htons(icmp[0] << 8 | icmp[1]));
	*(__sum16 *)(icmp + 2) = check ? check : 0xffff;
	return turn_round(p);
}

SHUNT_STAGE echo(struct pkt *p)
{
	if (bad_source(p))
		return SHUNT_DROP_SOURCE;
	if (p->address_flags & SHUNT_ADDRESS_ECHO_DROP)
		return SHUNT_DROP_ECHO;
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
	__u32 at, end; /* in: offsets of the quoted IP header and of what follows the packet */
	__u32 ipv6;
	__u32 part; /* enum pkt_part; of a later one without ports */
};

static __always_inline int quote_ports(void *data, void *end, struct quote *q, __u32 l4)
{
	__u32 *ports = data + (l4 & SHUNT_L4_MASK);

	/* Eight bytes of transport header are all that RFC 792 promises; the ports are among them. */
	if ((void *)(ports + 2) > end || l4 + 8 > q->end)
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
	if (ip->version != 4 || ip->ihl < 5)
		return SHUNT_DROP_ICMP_QUOTE;
	q->source.half[0] = q->destination.half[0] = 0;
	q->source.word[2] = q->destination.word[2] = bpf_htonl(0xffff);
	q->source.word[3] = ip->saddr;
	q->destination.word[3] = ip->daddr;
	q->protocol = ip->protocol;
	if (ip->frag_off & bpf_htons(SHUNT_IP_OFFSET)) {
		q->part = PKT_LATER;
		return SHUNT_CONTINUE;
	}
	return quote_ports(data, end, q, q->at + ip->ihl * 4);
}

__noinline int read_quote6(struct xdp_md *ctx, struct quote *q)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct walk walk = {};
	struct ipv6hdr *ip6;
	int reason;

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
	reason = walk_extensions(ctx, &walk);
	if (reason != SHUNT_CONTINUE)
		return reason;
	q->protocol = walk.next;
	q->part = walk.part;
	return walk.part == PKT_LATER ? SHUNT_CONTINUE : quote_ports(data, end, q, walk.offset);
}

static __always_inline int read_quote(const struct pkt *p, struct quote *q)
{
	q->ipv6 = p->ipv6;
	q->at = p->l4 + ICMP_HEADER;
	q->end = p->l3 + p->length;
	return p->ipv6 ? read_quote6(p->ctx, q) : read_quote4(p->ctx, q);
}

static __always_inline bool quotes_from(const struct quote *q, const union shunt_address *source)
{
	return q->source.half[0] == source->half[0] && q->source.half[1] == source->half[1];
}

/* Of what goes by source alone: answers to pings that were forwarded, and later fragments. */
static __always_inline bool quoted_by_address(const struct pkt *p, const struct quote *q)
{
	if (q->protocol == (p->ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return p->address_flags & SHUNT_ADDRESS_ECHO_FORWARD;
	return q->part == PKT_LATER && p->address_flags & SHUNT_ADDRESS_FRAGMENTS_SOURCE;
}

/* From now on the packet is one of the flow that the error speaks of. */
SHUNT_STAGE quoted_flow(struct pkt *p)
{
	struct quote q = {};
	int reason;

	if (bad_source(p))
		return SHUNT_DROP_SOURCE;
	reason = read_quote(p, &q);
	if (reason != SHUNT_CONTINUE)
		return (enum shunt_reason)reason;
	p->by_address = quoted_by_address(p, &q);
	if (!quotes_from(&q, &p->destination) ||
	    (!p->by_address && (q.part == PKT_LATER || (q.protocol != IPPROTO_TCP && q.protocol != IPPROTO_UDP))))
		return SHUNT_DROP_ICMP_QUOTE;
	p->source = q.destination;
	p->ports = q.ports;
	p->protocol = q.protocol;
	p->quoted = true;
	return bad_source(p) ? SHUNT_DROP_SOURCE : SHUNT_CONTINUE;
}

/* No error.  A later fragment is taken for one of a ping, which is all that is ever that long. */
SHUNT_STAGE icmp_message(struct pkt *p, __u8 type)
{
	if (p->part == PKT_LATER || type == (p->ipv6 ? ICMP6_ECHO : ICMP4_ECHO))
		return echo(p);
	return SHUNT_DROP_ICMP;
}

/* ICMP for a service address.  Where that is the host's too, all but errors for services is the host's. */
SHUNT_STAGE icmp(struct pkt *p)
{
	__u8 *head = pkt_l4(p), type = 0;
	enum shunt_reason reason;

	if (p->part != PKT_LATER) {
		if (p->length - (p->l4 - p->l3) < ICMP_HEADER || (void *)(head + ICMP_HEADER) > p->data_end)
			return unless_pass(p, SHUNT_DROP_TRUNCATED);
		type = head[0];
	}
	if (p->ipv6 && type >= ICMP6_ND_FIRST && type <= ICMP6_ND_LAST)
		return SHUNT_PASS_NOT_SERVICE;
	if (p->part == PKT_WHOLE && is_error(p, type)) {
		reason = quoted_flow(p);
		return reason == SHUNT_CONTINUE ? reason : unless_pass(p, reason);
	}
	if (p->address_flags & SHUNT_ADDRESS_UNKNOWN_PASS)
		return SHUNT_PASS_UNKNOWN_PORT;
	return icmp_message(p, type);
}

#endif
