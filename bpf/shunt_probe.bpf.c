/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Health checks down the data path.  On egress of an interface that shuntd's checks are routed to: the socket's mark
 * names a backend, and the packet gets what a client's gets on its way there, the same outer header and next hop.
 * What has no such mark, or no way, ends here.
 */
#include <linux/pkt_cls.h>

#include "encap.bpf.h"
#include "xmit.bpf.h"

/* Beside the backends: to how many bytes the first packet of a check is padded, 0 for not at all. */
__u16 probe_size[SHUNT_BACKENDS_MAX];

#define TCP_SYN 0x02

static __always_inline __u32 size_of(__u32 id)
{
	SHUNT_OPAQUE(id);
	return id < SHUNT_BACKENDS_MAX ? probe_size[id] : 0;
}

static __always_inline void skb_load(struct pkt *p, struct __sk_buff *skb)
{
	p->data = (void *)(long)skb->data;
	p->data_end = (void *)(long)skb->data_end;
}

/* What the outer header says of the packet inside; false where it is none of ours. */
static __always_inline bool read_packet(struct pkt *p, struct __sk_buff *skb)
{
	struct iphdr *ip = p->data + sizeof(struct ethhdr);
	struct ipv6hdr *ip6 = (void *)ip;

	p->l3 = sizeof(struct ethhdr);
	p->ipv6 = skb->protocol == bpf_htons(ETH_P_IPV6);
	if (p->ipv6) {
		if ((void *)(ip6 + 1) > p->data_end)
			return false;
		p->l4 = p->l3 + sizeof(*ip6);
		p->protocol = ip6->nexthdr;
		p->length = sizeof(*ip6) + bpf_ntohs(ip6->payload_len);
		p->tos = ip6->priority << 4 | ip6->flow_lbl[0] >> 4;
		p->fragment = bpf_htons(SHUNT_IP_DF);
	} else {
		if (skb->protocol != bpf_htons(ETH_P_IP) || (void *)(ip + 1) > p->data_end || ip->ihl != 5)
			return false;
		p->l4 = p->l3 + sizeof(*ip);
		p->protocol = ip->protocol;
		p->length = bpf_ntohs(ip->tot_len);
		p->tos = ip->tos;
		p->id = ip->id;
		p->fragment = ip->frag_off;
		p->part = ip->frag_off & bpf_htons(SHUNT_IP_MF | SHUNT_IP_OFFSET) ? PKT_LATER : PKT_WHOLE;
	}
	p->hash = bpf_get_hash_recalc(skb);
	return true;
}

/* A connection's first packet, or a datagram. */
static __always_inline bool is_first(const struct pkt *p)
{
	const __u8 *tcp = p->data + (p->ipv6 ? 54 : 34);

	if (p->protocol != IPPROTO_TCP)
		return true;
	return (void *)(tcp + 20) <= p->data_end && tcp[13] & TCP_SYN;
}

/* Zeros behind the packet, which change no checksum and which the backend's stack cuts off (RFC 1122, 3.2.1). */
static __always_inline bool pad(struct pkt *p, struct __sk_buff *skb, __u32 size)
{
	if (p->length >= size || !is_first(p))
		return true;
	if (bpf_skb_change_tail(skb, sizeof(struct ethhdr) + size, 0))
		return false;
	p->length = size;
	return true;
}

/* As packets have it now; `overhead` has room for more. */
static __always_inline __u32 outer_size(const struct shunt_backend *backend)
{
	switch (backend->encap) {
	case SHUNT_ENCAP_IPIP4:
		return sizeof(struct iphdr);
	case SHUNT_ENCAP_IPIP6:
		return sizeof(struct ipv6hdr);
	case SHUNT_ENCAP_GUE4:
		return sizeof(struct iphdr) + sizeof(struct shunt_gue_udp);
	default:
		return sizeof(struct ipv6hdr) + sizeof(struct shunt_gue_udp);
	}
}

/* The checksum inside is still to be completed, but what it will make the packet sum to is known; see inner_sum(). */
static __always_inline void write_gue_front(const struct pkt *p, void *outer, const struct shunt_backend *backend,
					    __u16 inner)
{
	struct shunt_gue_udp *h;

	if (backend->encap == SHUNT_ENCAP_GUE4) {
		h = outer + sizeof(struct iphdr);
		write_outer4(p, outer, backend, sizeof(struct iphdr) + sizeof(*h), IPPROTO_UDP);
		write_gue(p, h, backend);
		return;
	}
	h = outer + sizeof(struct ipv6hdr);
	write_outer6(p, outer, backend, sizeof(struct ipv6hdr) + sizeof(*h), IPPROTO_UDP);
	write_gue(p, h, backend);
	if (!(backend->flags & SHUNT_BACKEND_UDP6_ZERO))
		h->check = gue6_check(outer, h, backend, inner);
}

/* Room in front of the IP header, told to the kernel as a tunnel's, so that it completes the inner checksum. */
static __always_inline bool put_in_front(struct pkt *p, struct __sk_buff *skb, const struct shunt_backend *backend,
					 __u16 inner)
{
	bool outer6 = backend->encap == SHUNT_ENCAP_IPIP6 || backend->encap == SHUNT_ENCAP_GUE6;
	bool gue = backend->encap == SHUNT_ENCAP_GUE4 || backend->encap == SHUNT_ENCAP_GUE6;
	__u64 flags = outer6 ? BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 : BPF_F_ADJ_ROOM_ENCAP_L3_IPV4;
	struct ethhdr *eth;

	if (backend->encap == SHUNT_ENCAP_L2) {
		skb_load(p, skb);
		return p->data + sizeof(*eth) <= p->data_end;
	}
	if (gue)
		flags |= BPF_F_ADJ_ROOM_ENCAP_L4_UDP;
	if (bpf_skb_adjust_room(skb, outer_size(backend), BPF_ADJ_ROOM_MAC, flags | BPF_F_ADJ_ROOM_FIXED_GSO))
		return false;
	skb_load(p, skb);
	eth = p->data;
	if (p->data + sizeof(*eth) + sizeof(struct ipv6hdr) + sizeof(struct shunt_gue_udp) > p->data_end)
		return false;
	eth->h_proto = outer6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
	if (gue)
		write_gue_front(p, eth + 1, backend, inner);
	else if (outer6)
		write_outer6(p, (void *)(eth + 1), backend, sizeof(struct ipv6hdr), inner_protocol(p));
	else
		write_outer4(p, (void *)(eth + 1), backend, sizeof(struct iphdr), inner_protocol(p));
	return true;
}

SEC("tc")
int shunt_probe(struct __sk_buff *skb)
{
	__u32 id = skb->mark & SHUNT_BACKEND_NONE, index;
	const struct shunt_backend *backend;
	const struct shunt_iface *iface;
	struct pkt p = {};
	__u64 state, *nexthop, hop;
	__u16 inner;

	if ((skb->mark & SHUNT_PROBE_MASK) != SHUNT_PROBE_MARK)
		return TC_ACT_SHOT;
	skb_load(&p, skb);
	backend = bpf_map_lookup_elem(&backends, &id);
	if (!backend || !read_packet(&p, skb) || lacks_checksum(&p, backend))
		return TC_ACT_SHOT;
	/* The zeros behind it add nothing. */
	inner = inner_sum(&p);
	if (!pad(&p, skb, size_of(skb->mark & SHUNT_BACKEND_NONE)))
		return TC_ACT_SHOT;
	state = READ_ONCE(backend->state);
	index = SHUNT_BACKEND_NEXTHOP(state);
	nexthop = bpf_map_lookup_elem(&nexthops, &index);
	hop = nexthop ? READ_ONCE(*nexthop) : 0;
	index = SHUNT_NEXTHOP_IFACE(hop);
	iface = bpf_map_lookup_elem(&ifaces, &index);
	if (!(state & SHUNT_BACKEND_PRESENT) || !hop || !iface || !iface->ifindex ||
	    p.length + backend->overhead > SHUNT_BACKEND_MTU(state) || !put_in_front(&p, skb, backend, inner))
		return TC_ACT_SHOT;
	write_macs(p.data, hop, iface);
	return bpf_redirect(iface->ifindex, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
