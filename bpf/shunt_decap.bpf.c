/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * For a backend: takes the outer header off and gives the client's packet to the host.  Only from tunnel
 * sources that are listed, and only to inner destinations that are: whoever can send a tunnel packet could
 * otherwise put any packet past the network's filters.
 */
#include "count.bpf.h"
#include "csum.bpf.h"
#include "parse.bpf.h"

#define SHUNT_PREFIXES(name)                                                                                           \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_LPM_TRIE);                                                                   \
		__uint(max_entries, 1);                                                                                \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                                                  \
		__type(key, struct shunt_prefix);                                                                      \
		__type(value, __u8);                                                                                   \
	} name SEC(".maps")

SHUNT_PREFIXES(decap_sources);
SHUNT_PREFIXES(decap_inner);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct shunt_reasons);
} decap_reasons SEC(".maps");

/* Where the inner header starts, and what it must be. */
struct tunnel {
	__u32 inner;
	bool inner6;
	__u8 outer_tos;
	__u32 payload; /* bytes behind the outer header */
};

static __always_inline bool is_ip(__u8 protocol)
{
	return protocol == IPPROTO_IPIP || protocol == IPPROTO_IPV6;
}

/*
 * Could the packet be a tunnel's?  What is no tunnel is none of ours, whatever else is wrong with it.  later: of a
 * fragment other than the first, which has no port.
 */
static __always_inline bool is_tunnel(const struct pkt *p, __u8 protocol, __u32 l4, bool later)
{
	const struct shunt_gue_udp *h = p->data + l4;

	if (is_ip(protocol))
		return true;
	return protocol == IPPROTO_UDP && config.gue_port && !later && (void *)&h->gue <= p->data_end &&
	       h->destination == config.gue_port;
}

/*
 * What stands behind the outer header: the client's packet, or UDP and GUE (variant 0, data, no optional fields) in
 * front of it.  The UDP checksum is not verified: what it covers is the client's packet, which has its own.
 */
SHUNT_STAGE tunnel_payload(struct pkt *p, struct tunnel *t, __u8 protocol)
{
	const struct shunt_gue_udp *h = p->data + t->inner;
	__u32 length;

	if (protocol == IPPROTO_UDP) {
		if ((void *)(h + 1) > p->data_end || t->payload < sizeof(*h))
			return SHUNT_DECAP_DROP_TRUNCATED;
		length = bpf_ntohs(h->length);
		protocol = h->gue.protocol;
		if (length < sizeof(*h) || length > t->payload || h->gue.control || h->gue.flags || !is_ip(protocol))
			return SHUNT_DECAP_DROP_HEADER;
		t->inner += sizeof(*h);
		t->payload = length - sizeof(*h);
	}
	t->inner6 = protocol == IPPROTO_IPV6;
	return SHUNT_CONTINUE;
}

SHUNT_STAGE outer_header4(struct pkt *p, struct tunnel *t)
{
	struct iphdr *ip = p->data + p->l3;
	__u32 header, length;

	if ((void *)(ip + 1) > p->data_end)
		return SHUNT_DECAP_PASS_NOT_TUNNEL;
	header = ip->ihl * 4;
	if (!is_tunnel(p, ip->protocol, p->l3 + header, ip->frag_off & bpf_htons(SHUNT_IP_OFFSET)))
		return SHUNT_DECAP_PASS_NOT_TUNNEL;
	length = bpf_ntohs(ip->tot_len);
	if (ip->version != 4 || header < sizeof(*ip) || length < header)
		return SHUNT_DECAP_DROP_HEADER;
	if (ip->frag_off & bpf_htons(SHUNT_IP_MF | SHUNT_IP_OFFSET))
		return SHUNT_DECAP_DROP_FRAGMENT;
	if (!pkt_holds(p, length))
		return SHUNT_DECAP_DROP_TRUNCATED;
	t->inner = p->l3 + header;
	t->outer_tos = ip->tos;
	t->payload = length - header;
	return tunnel_payload(p, t, ip->protocol);
}

/* Extension headers between outer and inner are left to the host: shunt sends none. */
SHUNT_STAGE outer_header6(struct pkt *p, struct tunnel *t)
{
	struct ipv6hdr *ip6 = p->data + p->l3;

	if ((void *)(ip6 + 1) > p->data_end || !is_tunnel(p, ip6->nexthdr, p->l3 + sizeof(*ip6), false))
		return SHUNT_DECAP_PASS_NOT_TUNNEL;
	if (ip6->version != 6)
		return SHUNT_DECAP_DROP_HEADER;
	if (!pkt_holds(p, sizeof(*ip6) + bpf_ntohs(ip6->payload_len)))
		return SHUNT_DECAP_DROP_TRUNCATED;
	t->inner = p->l3 + sizeof(*ip6);
	t->outer_tos = ip6->priority << 4 | ip6->flow_lbl[0] >> 4;
	t->payload = bpf_ntohs(ip6->payload_len);
	return tunnel_payload(p, t, ip6->nexthdr);
}

static __always_inline bool listed(void *prefixes, const union shunt_address *address, bool ipv6)
{
	struct shunt_prefix key = {.length = 128};
	const __u8 *family;

	__builtin_memcpy(key.address, address, sizeof(key.address));
	family = bpf_map_lookup_elem(prefixes, &key);
	return family && *family == (ipv6 ? 6 : 4);
}

/*
 * RFC 6040, section 4.2: what the tunnel says of congestion goes inside.  Returns the inner ECN bits, or -1
 * for the one combination that must be dropped.
 */
static __always_inline int decapsulated_ecn(__u8 outer, __u8 inner)
{
	enum { NOT_ECT, ECT1, ECT0, CE };

	outer &= 3;
	inner &= 3;
	if (outer == CE)
		return inner == NOT_ECT ? -1 : CE;
	return outer == ECT1 && inner == ECT0 ? ECT1 : inner;
}

SHUNT_STAGE inner_header4(struct pkt *p, const struct tunnel *t)
{
	struct iphdr *ip = p->data + t->inner;
	__u32 length;
	__u8 tos;
	int ecn;

	if ((void *)(ip + 1) > p->data_end || t->payload < sizeof(*ip))
		return SHUNT_DECAP_DROP_TRUNCATED;
	length = bpf_ntohs(ip->tot_len);
	if (ip->version != 4 || ip->ihl < 5 || length < ip->ihl * 4u)
		return SHUNT_DECAP_DROP_HEADER;
	if (length > t->payload)
		return SHUNT_DECAP_DROP_TRUNCATED;
	p->destination.half[0] = 0;
	p->destination.word[2] = bpf_htonl(0xffff);
	p->destination.word[3] = ip->daddr;
	if (!listed(&decap_inner, &p->destination, false))
		return SHUNT_DECAP_DROP_INNER;
	ecn = decapsulated_ecn(t->outer_tos, ip->tos);
	if (ecn < 0)
		return SHUNT_DECAP_DROP_ECN;
	tos = (ip->tos & ~3) | ecn;
	ip->check = csum_replace(ip->check, bpf_htons(ip->tos), bpf_htons(tos));
	ip->tos = tos;
	return SHUNT_CONTINUE;
}

SHUNT_STAGE inner_header6(struct pkt *p, const struct tunnel *t)
{
	struct ipv6hdr *ip6 = p->data + t->inner;
	__u32 length;
	int ecn;

	if ((void *)(ip6 + 1) > p->data_end || t->payload < sizeof(*ip6))
		return SHUNT_DECAP_DROP_TRUNCATED;
	length = sizeof(*ip6) + bpf_ntohs(ip6->payload_len);
	if (ip6->version != 6)
		return SHUNT_DECAP_DROP_HEADER;
	if (length > t->payload)
		return SHUNT_DECAP_DROP_TRUNCATED;
	__builtin_memcpy(&p->destination, &ip6->daddr, sizeof(p->destination));
	/* ::ffff:0:0/96 stands for IPv4 in the list, and is never on a wire. */
	if ((!p->destination.half[0] && p->destination.word[2] == bpf_htonl(0xffff)) ||
	    !listed(&decap_inner, &p->destination, true))
		return SHUNT_DECAP_DROP_INNER;
	ecn = decapsulated_ecn(t->outer_tos, ip6->flow_lbl[0] >> 4);
	if (ecn < 0)
		return SHUNT_DECAP_DROP_ECN;
	ip6->flow_lbl[0] = (ip6->flow_lbl[0] & 0xcf) | ecn << 4;
	return SHUNT_CONTINUE;
}

/* Move Ethernet header and tags up to the inner header, and take what is in front of them away. */
SHUNT_STAGE unwrap(struct pkt *p, const struct tunnel *t)
{
	__u32 size = (t->inner - p->l3) & 0x7f; /* at most 60 and 12: bounds the moves for the verifier */
	__be16 type = t->inner6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	__u64 words[3]; /* 24 bytes hold the longest link header */
	__u16 *to;

	if (p->data + sizeof(words) > p->data_end)
		return SHUNT_DECAP_DROP_TRUNCATED;
	__builtin_memcpy(words, p->data, sizeof(words));
	if (bpf_xdp_adjust_head(p->ctx, size))
		return SHUNT_DECAP_DROP_ADJUST;
	pkt_load(p);
	to = p->data;
	if (p->data + p->l3 > p->data_end || p->data + sizeof(words) > p->data_end)
		return SHUNT_DECAP_DROP_ADJUST;
#pragma unroll
	for (__u32 i = 0; i < 10; i++) /* MAC addresses, then tags */
		if (i < 6 || p->l3 > 2 + 2 * i)
			to[i] = ((__u16 *)words)[i];
	*(__be16 *)(p->data + p->l3 - sizeof(type)) = type;
	return SHUNT_CONTINUE;
}

SHUNT_STAGE decapsulate(struct pkt *p)
{
	struct tunnel t = {};
	enum shunt_reason reason;

	if (parse_link(p) != SHUNT_CONTINUE || parse_addresses(p) != SHUNT_CONTINUE)
		return SHUNT_DECAP_PASS_NOT_TUNNEL;
	reason = p->ipv6 ? outer_header6(p, &t) : outer_header4(p, &t);
	if (reason != SHUNT_CONTINUE)
		return reason;
	if (!listed(&decap_sources, &p->source, p->ipv6))
		return SHUNT_DECAP_DROP_SOURCE;
	reason = t.inner6 ? inner_header6(p, &t) : inner_header4(p, &t);
	if (reason != SHUNT_CONTINUE)
		return reason;
	reason = unwrap(p, &t);
	return reason == SHUNT_CONTINUE ? SHUNT_DECAP_UNWRAPPED : reason;
}

SEC("xdp")
int shunt_decap(struct xdp_md *ctx)
{
	struct pkt p = {.ctx = ctx};
	enum shunt_reason reason;

	pkt_load(&p);
	reason = decapsulate(&p);
	count_reason(&decap_reasons, reason);
	return reason == SHUNT_DECAP_UNWRAPPED ? XDP_PASS : reason_action(reason);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
