/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The frames of the packet path's benchmark: written before the balancer, judged behind it. */
#ifndef BENCH_FRAMES_BPF_H
#define BENCH_FRAMES_BPF_H

#include "env.bpf.h"
#include "csum.bpf.h"
#include "path.h"

struct tcp {
	__be16 source, destination;
	__be32 sequence, acknowledged;
	__u8 offset, flags;
	__be16 window, check, urgent;
};

const volatile struct path_traffic traffic SEC(".rodata.traffic") = {};
struct path_order order SEC(".bss.order");

static __always_inline void fill_eth(struct ethhdr *eth, __u16 type)
{
	for (int i = 0; i < ETH_ALEN; i++) {
		eth->h_dest[i] = traffic.destination_mac[i];
		eth->h_source[i] = traffic.source_mac[i];
	}
	eth->h_proto = bpf_htons(type);
}

static __always_inline void fill_tcp(struct tcp *tcp, __u32 flow, __u32 service)
{
	tcp->source = bpf_htons(1024 + (flow * 0x9e3779b1u >> 17));
	tcp->destination = bpf_htons(1 + service % PATH_SERVICES_SIDE);
	tcp->sequence = tcp->acknowledged = 0;
	tcp->offset = 5 << 4;
	tcp->flags = traffic.syn ? 0x02 : 0x10;
	tcp->window = bpf_htons(1024);
	tcp->check = tcp->urgent = 0;
}

static __always_inline bool write4(void *data, void *end, __u32 flow, __u32 service)
{
	struct iphdr *ip = data + ETH_HLEN;
	struct tcp *tcp = (void *)(ip + 1);
	__u32 sum = 0;

	if ((void *)(tcp + 1) > end)
		return false;
	fill_eth(data, ETH_P_IP);
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = 0;
	ip->tot_len = bpf_htons(traffic.length);
	ip->id = 0;
	ip->frag_off = bpf_htons(SHUNT_IP_DF);
	ip->ttl = 64;
	ip->protocol = IPPROTO_TCP;
	ip->check = 0;
	ip->saddr = bpf_htonl(0x0a000000 | (flow & 0xffffff));
	ip->daddr = bpf_htonl((traffic.foreign ? 0xc6336401 : 0xc0000201) + service / PATH_SERVICES_SIDE);
	for (int i = 0; i < 10; i++)
		sum += ((__u16 *)ip)[i];
	ip->check = (__sum16)~csum_fold(sum);
	fill_tcp(tcp, flow, service);
	return true;
}

static __always_inline bool write6(void *data, void *end, __u32 flow, __u32 service)
{
	struct ipv6hdr *ip = data + ETH_HLEN;
	struct tcp *tcp = (void *)(ip + 1);

	if ((void *)(tcp + 1) > end)
		return false;
	fill_eth(data, ETH_P_IPV6);
	__builtin_memset(ip, 0, sizeof(*ip));
	ip->version = 6;
	ip->payload_len = bpf_htons(traffic.length - sizeof(*ip));
	ip->nexthdr = IPPROTO_TCP;
	ip->hop_limit = 64;
	ip->saddr.in6_u.u6_addr32[0] = bpf_htonl(0xfd000001);
	ip->saddr.in6_u.u6_addr32[3] = bpf_htonl(flow);
	ip->daddr.in6_u.u6_addr32[0] = bpf_htonl(traffic.foreign ? 0x20010db9 : 0x20010db8);
	ip->daddr.in6_u.u6_addr32[3] = bpf_htonl(1 + service / PATH_SERVICES_SIDE);
	fill_tcp(tcp, flow, service);
	return true;
}

static __always_inline __u32 pick_flow(__u32 random)
{
	__u32 flow;

	if (!order.ordered)
		return (__u64)random * traffic.flows >> 32;
	flow = order.next;
	order.next = flow + 1;
	return flow;
}

/* A frame of one of the flows, every header anew.  False: it does not fit. */
static __always_inline bool write_frame(struct xdp_md *ctx, __u32 random)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 flow = pick_flow(random), service = flow % (traffic.services ?: 1);

	return traffic.ipv6 ? write6(data, end, flow, service) : write4(data, end, flow, service);
}

/* GUE: a data packet that holds IPv4, from a dynamic port to the registered one. */
static __always_inline bool gue_is_right(struct iphdr *ip, void *end)
{
	__be16 *udp = (void *)(ip + 1);
	__u8 *gue = (void *)(udp + 4);

	if ((void *)(gue + sizeof(struct shunt_gue)) > end)
		return false;
	return ip->protocol == IPPROTO_UDP && udp[1] == bpf_htons(SHUNT_GUE_PORT) && !udp[3] &&
	       bpf_ntohs(udp[2]) == traffic.length + 8 + sizeof(struct shunt_gue) && !gue[0] && gue[1] == IPPROTO_IPIP;
}

/* Outer IPv4 to a backend with a right checksum and lengths that fit. */
static __always_inline bool right4(struct iphdr *ip, void *end)
{
	__u32 sum = 0, to = bpf_ntohl(ip->daddr), more = bpf_ntohs(ip->tot_len) - traffic.length - sizeof(*ip);

	for (int i = 0; i < 10; i++)
		sum += ((__u16 *)ip)[i];
	if (csum_fold(sum) != 0xffff)
		return false;
	if (to == PATH_FLOOR)
		return !more && ip->protocol == IPPROTO_IPIP;
	if (to >> 16 != PATH_BACKENDS >> 16 || ((to >> 8) & traffic.third_mask) != traffic.third)
		return false;
	return traffic.gue ? more == 8 + sizeof(struct shunt_gue) && gue_is_right(ip, end)
			   : !more && ip->protocol == IPPROTO_IPIP;
}

/* Outer IPv6 to fd00:c8::/32. */
static __always_inline bool right6(const struct ipv6hdr *ip)
{
	return ip->daddr.in6_u.u6_addr32[0] == bpf_htonl(0xfd0000c8) && bpf_ntohs(ip->payload_len) == traffic.length;
}

static __always_inline bool came_out_right(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = (void *)(long)ctx->data;

	if ((void *)(eth + 1) + sizeof(struct ipv6hdr) > end)
		return false;
	if (eth->h_proto == bpf_htons(ETH_P_IP))
		return right4((void *)(eth + 1), end);
	return eth->h_proto == bpf_htons(ETH_P_IPV6) && right6((void *)(eth + 1));
}

#endif
