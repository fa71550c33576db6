/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BENCH_FLOOR_BPF_H
#define BENCH_FLOOR_BPF_H

#include "frames.bpf.h"

/* The least that a balancer must do: read the headers, put an outer one in front, send it back. */
static __always_inline int floor4(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	__be16 length;
	__u32 sum = 0;
	__u8 tos;

	if ((void *)(ip + 1) + sizeof(struct tcp) > (void *)(long)ctx->data_end || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_TCP)
		return XDP_PASS;
	length = bpf_htons(bpf_ntohs(ip->tot_len) + sizeof(*ip));
	tos = ip->tos;
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(*ip)))
		return XDP_DROP;
	eth = (void *)(long)ctx->data;
	ip = (void *)(eth + 1);
	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	fill_eth(eth, ETH_P_IP);
	*ip = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tos = tos,
		.tot_len = length,
		.frag_off = bpf_htons(SHUNT_IP_DF),
		.ttl = 64,
		.protocol = IPPROTO_IPIP,
		.saddr = bpf_htonl(PATH_BACKENDS + 1),
		.daddr = bpf_htonl(PATH_FLOOR),
	};
#pragma unroll
	for (int i = 0; i < 10; i++)
		sum += ((__u16 *)ip)[i];
	ip->check = (__sum16)~csum_fold(sum);
	return XDP_TX;
}

static __always_inline int floor6(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct ipv6hdr *ip = (void *)(eth + 1);
	__u32 length, first;

	if ((void *)(ip + 1) + sizeof(struct tcp) > (void *)(long)ctx->data_end || ip->nexthdr != IPPROTO_TCP)
		return XDP_PASS;
	length = bpf_ntohs(ip->payload_len) + sizeof(*ip);
	first = *(__u32 *)ip;
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(*ip)))
		return XDP_DROP;
	eth = (void *)(long)ctx->data;
	ip = (void *)(eth + 1);
	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	fill_eth(eth, ETH_P_IPV6);
	*(__u32 *)ip = first;
	ip->payload_len = bpf_htons(length);
	ip->nexthdr = IPPROTO_IPV6;
	ip->hop_limit = 64;
	__builtin_memset(&ip->saddr, 0, 2 * sizeof(ip->saddr));
	ip->daddr.in6_u.u6_addr32[0] = bpf_htonl(0xfd0000c8);
	return XDP_TX;
}

static __always_inline int floor_packet(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP))
		return floor4(ctx);
	return eth->h_proto == bpf_htons(ETH_P_IPV6) ? floor6(ctx) : XDP_PASS;
}

#endif
