/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Around the packet path, for its benchmark: a generator (run by live frames, so that each frame passes a real
 * veth), a sink that checks what the balancer made, and two programs to compare with: one that does nothing,
 * and the floor: parse, encapsulate to a constant, transmit.
 */
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

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct path_sink);
} sink_count SEC(".maps");

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

static __always_inline int generate4(void *data, void *end, __u32 flow, __u32 service)
{
	struct iphdr *ip = data + ETH_HLEN;
	struct tcp *tcp = (void *)(ip + 1);
	__u32 sum = 0;

	if ((void *)(tcp + 1) > end)
		return XDP_DROP;
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
	return bpf_redirect(traffic.out, 0);
}

static __always_inline int generate6(void *data, void *end, __u32 flow, __u32 service)
{
	struct ipv6hdr *ip = data + ETH_HLEN;
	struct tcp *tcp = (void *)(ip + 1);

	if ((void *)(tcp + 1) > end)
		return XDP_DROP;
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
	return bpf_redirect(traffic.out, 0);
}

static __always_inline __u32 pick_flow(void)
{
	__u32 flow;

	if (!order.ordered)
		return (__u64)bpf_get_prandom_u32() * traffic.flows >> 32;
	flow = order.next;
	order.next = flow + 1;
	return flow;
}

SEC("xdp")
int generate(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 flow = pick_flow(), service = flow % (traffic.services ?: 1);

	return traffic.ipv6 ? generate6(data, end, flow, service) : generate4(data, end, flow, service);
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

static __always_inline bool came_out_right(void *data, void *end)
{
	struct ethhdr *eth = data;

	if ((void *)(eth + 1) + sizeof(struct ipv6hdr) > end)
		return false;
	if (eth->h_proto == bpf_htons(ETH_P_IP))
		return right4((void *)(eth + 1), end);
	return eth->h_proto == bpf_htons(ETH_P_IPV6) && right6((void *)(eth + 1));
}

SEC("xdp")
int sink(struct xdp_md *ctx)
{
	struct path_sink *count;
	__u32 zero = 0;

	count = bpf_map_lookup_elem(&sink_count, &zero);
	if (!count)
		return XDP_DROP;
	if (came_out_right((void *)(long)ctx->data, (void *)(long)ctx->data_end))
		count->good++;
	else
		count->bad++;
	return XDP_DROP;
}

SEC("xdp")
int empty(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_DROP;
}

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

SEC("xdp")
int path_floor(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP))
		return floor4(ctx);
	return eth->h_proto == bpf_htons(ETH_P_IPV6) ? floor6(ctx) : XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
