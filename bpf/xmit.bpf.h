/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sends the packet to the backend, by its next hop. */
#ifndef SHUNT_XMIT_BPF_H
#define SHUNT_XMIT_BPF_H

#include "count.bpf.h"
#include "encap.bpf.h"

/* destination: in its low six bytes, in wire order as loaded. */
static __always_inline void write_macs(void *frame, __u64 destination, const struct shunt_iface *iface)
{
	*(__u32 *)frame = (__u32)destination;
	*(__u16 *)(frame + 4) = (__u16)(destination >> 32);
	__builtin_memcpy(frame + ETH_ALEN, iface->mac, ETH_ALEN);
}

/* All that can speak against the packet is asked before its first byte changes. */
SHUNT_STAGE forward(struct pkt *p)
{
	__u32 id = p->backend, index;
	const struct shunt_backend *backend = bpf_map_lookup_elem(&backends, &id);
	const struct shunt_iface *iface;
	enum shunt_reason reason;
	__u64 state, *nexthop, hop;

	if (!backend)
		return SHUNT_BUG_BACKEND;
	state = READ_ONCE(backend->state);
	if (unlikely((state & SHUNT_BACKEND_USABLE) != SHUNT_BACKEND_USABLE))
		return SHUNT_DROP_BACKEND_DOWN;
	index = SHUNT_BACKEND_NEXTHOP(state);
	nexthop = bpf_map_lookup_elem(&nexthops, &index);
	hop = nexthop ? READ_ONCE(*nexthop) : 0;
	index = SHUNT_NEXTHOP_IFACE(hop);
	iface = bpf_map_lookup_elem(&ifaces, &index);
	if (unlikely(!hop || !iface || !iface->ifindex))
		return SHUNT_DROP_NO_NEXTHOP;
	if (unlikely(p->length + backend->overhead > SHUNT_BACKEND_MTU(state)))
		return SHUNT_DROP_TOO_BIG;
	reason = decrement_ttl(p);
	if (reason != SHUNT_CONTINUE)
		return reason;
	reason = encapsulate(p, backend);
	if (reason != SHUNT_CONTINUE)
		return reason;
	if (p->data + sizeof(struct ethhdr) > p->data_end)
		return SHUNT_DROP_HEADROOM;
	write_macs(p->data, hop, iface);
	count_stats(&service_stats, p->counter, p->length);
	count_stats(&backend_stats, p->backend, p->length);
	if (iface->ifindex == p->ctx->ingress_ifindex)
		return SHUNT_FORWARD_TX;
	bpf_redirect(iface->ifindex, 0);
	return SHUNT_FORWARD_REDIRECT;
}

#endif
