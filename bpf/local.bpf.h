/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is passed to the host because the address is the host's too: never where the host would only route it on. */
#ifndef SHUNT_LOCAL_BPF_H
#define SHUNT_LOCAL_BPF_H

#include "pkt.bpf.h"

#define FAMILY4 2 /* AF_INET and AF_INET6, whose header is none for BPF */
#define FAMILY6 10

/*
 * Whether the stack keeps the packet: it is for an address of its own, or would not be forwarded.  One that is routed
 * comes back here, and goes round until its TTL is used up.
 */
__noinline int host_keeps(struct xdp_md *ctx, __u32 l3, __u32 ipv6)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct bpf_fib_lookup route = {.ifindex = ctx->ingress_ifindex};
	struct iphdr *ip = data + (l3 & 31);
	struct ipv6hdr *ip6 = data + (l3 & 31);
	long way;

	if ((void *)(ip + 1) > end || (ipv6 && (void *)(ip6 + 1) > end))
		return false;
	if (ipv6) {
		route.family = FAMILY6;
		__builtin_memcpy(route.ipv6_src, &ip6->saddr, sizeof(route.ipv6_src));
		__builtin_memcpy(route.ipv6_dst, &ip6->daddr, sizeof(route.ipv6_dst));
	} else {
		route.family = FAMILY4;
		route.ipv4_src = ip->saddr;
		route.ipv4_dst = ip->daddr;
	}
	/* All between: unreachable, not forwarded, and so on.  0, and what is above, are ways. */
	way = bpf_fib_lookup(ctx, &route, sizeof(route), 0);
	return way >= BPF_FIB_LKUP_RET_BLACKHOLE && way <= BPF_FIB_LKUP_RET_FWD_DISABLED;
}

#endif
