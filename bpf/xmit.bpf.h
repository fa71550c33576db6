/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sends the packet to the backend, by its next hop. */
#ifndef SHUNT_XMIT_BPF_H
#define SHUNT_XMIT_BPF_H

#include "answer.bpf.h"
#include "count.bpf.h"
#include "encap.bpf.h"
#include "parse.bpf.h"
#include "trace.bpf.h"

/* destination: in its low six bytes, in wire order as loaded. */
static __always_inline void write_macs(void *frame, __u64 destination, const struct shunt_iface *iface)
{
	*(__u32 *)frame = (__u32)destination;
	*(__u16 *)(frame + 4) = (__u16)(destination >> 32);
	/* Split as `mac` is aligned: what is loaded in one piece from an odd word is loaded by halves. */
	*(__u32 *)(frame + ETH_ALEN) = *(const __u32 *)&iface->mac[0];
	*(__u16 *)(frame + ETH_ALEN + 4) = *(const __u16 *)&iface->mac[4];
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct answer);
} scratch_answer SEC(".maps");

/* Ask the exit, where the stack is free again, for an answer: SHUNT_ASK, or the reason why there may be none. */
static __always_inline enum shunt_reason ask(struct pkt *p, const struct shunt_snapshot *snap, enum answer_kind kind,
					     __u32 mtu, enum shunt_reason given, enum shunt_reason otherwise)
{
	__u32 zero = 0;
	struct answer *a = bpf_map_lookup_elem(&scratch_answer, &zero);

	/* No error about an error or a later fragment, nor about what came by broadcast (RFC 1122, 3.2.2). */
	if (!a || p->quoted || p->part == PKT_LATER || to_group(p))
		return otherwise;
	trace_answer(kind, mtu);
	*a = (struct answer){
		.kind = kind,
		.l3 = p->l3,
		.l4 = p->l4,
		.ipv6 = p->ipv6,
		.tcp = p->protocol == IPPROTO_TCP,
		.mtu = mtu,
		.interval = snap->error_interval,
		.burst = snap->error_burst,
		.given = given,
		.otherwise = otherwise,
	};
	return SHUNT_ASK;
}

_Static_assert((int)SHUNT_ANSWER_IS_TTL == (int)ANSWER_TTL && (int)SHUNT_ANSWER_IS_REFUSAL == (int)ANSWER_REFUSE,
	       "one list");

SHUNT_STAGE ttl_used_up(struct pkt *p, const struct shunt_snapshot *snap)
{
	if (!(snap->settings & SHUNT_SETTING_TTL_ANSWER))
		return SHUNT_END(SHUNT_DROP_TTL);
	return ask(p, snap, ANSWER_TTL, 0, SHUNT_ANSWER_TTL, SHUNT_DROP_TTL);
}

static __always_inline bool is_last_hop(const struct pkt *p)
{
	const __u8 *ttl = pkt_ip(p) + (p->ipv6 ? __builtin_offsetof(struct ipv6hdr, hop_limit)
					       : __builtin_offsetof(struct iphdr, ttl));

	return (void *)(ttl + 1) > p->data_end || *ttl <= 1;
}

/* The encapsulated packet does not fit the way to the backend; `mtu`: that the client may use. */
SHUNT_STAGE too_big(struct pkt *p, const struct shunt_snapshot *snap, __u32 mtu)
{
	__u32 least = p->ipv6 ? 1280 : 68; /* of every link: RFC 8200, section 5; RFC 791, 3.2 */

	/* As with a router, which looks at the TTL first. */
	if (is_last_hop(p))
		return ttl_used_up(p, snap);
	if (!(p->fragment & bpf_htons(SHUNT_IP_DF)) || mtu < least)
		return SHUNT_END(SHUNT_DROP_TOO_BIG);
	return ask(p, snap, ANSWER_TOO_BIG, mtu, SHUNT_ANSWER_TOO_BIG, SHUNT_DROP_TOO_BIG);
}

/* By setting, what may be fragmented behind us goes out as it is, where its new length can be written down. */
static __always_inline bool sent_anyway(const struct pkt *p, const struct shunt_snapshot *snap, __u32 taken)
{
	return snap->settings & SHUNT_SETTING_TOO_BIG_SEND && !inner_df(p) && p->length + taken <= 0xffff;
}

/* All that can speak against the packet is asked before its first byte changes. */
SHUNT_STAGE forward(struct pkt *p, const struct shunt_snapshot *snap, bool rare)
{
	__u32 id = p->backend, index;
	const struct shunt_backend *backend = bpf_map_lookup_elem(&backends, &id);
	const struct shunt_iface *iface;
	enum shunt_reason reason;
	__u64 state, *nexthop, hop;
	__u32 taken, mtu;

	if (!backend)
		return SHUNT_END(SHUNT_BUG_BACKEND);
	state = READ_ONCE(backend->state);
	trace_backend(p, backend, state);
	if (unlikely((state & SHUNT_BACKEND_USABLE) != SHUNT_BACKEND_USABLE))
		return SHUNT_END(SHUNT_DROP_BACKEND_DOWN);
	index = SHUNT_BACKEND_NEXTHOP(state);
	nexthop = bpf_map_lookup_elem(&nexthops, &index);
	hop = nexthop ? READ_ONCE(*nexthop) : 0;
	index = SHUNT_NEXTHOP_IFACE(hop);
	iface = bpf_map_lookup_elem(&ifaces, &index);
	if (unlikely(!hop || !iface || !iface->ifindex))
		return SHUNT_END(SHUNT_DROP_NO_NEXTHOP);
	/*
	 * Tags count too, as whether a device's MTU leaves room for them is not known; but not where nothing is put in
	 * front (l2), and the frame is no longer than it came in.
	 */
	taken = backend->overhead;
	if (unlikely(p->l3 > sizeof(struct ethhdr)) && taken)
		taken += p->l3 - sizeof(struct ethhdr);
	mtu = SHUNT_BACKEND_MTU(state);
	trace_way(hop, iface, taken);
	if (unlikely(p->length + taken > mtu) && !sent_anyway(p, snap, taken))
		return rare ? too_big(p, snap, mtu < taken ? 0 : mtu - taken) : SHUNT_RARE;
	if (unlikely(lacks_checksum(p, backend)))
		return SHUNT_END(SHUNT_DROP_CHECKSUM);
	reason = decrement_ttl(p);
	if (unlikely(reason == SHUNT_DROP_TTL))
		return rare ? ttl_used_up(p, snap) : SHUNT_RARE;
	if (reason != SHUNT_CONTINUE)
		return reason;
	reason = encapsulate(p, backend);
	if (reason != SHUNT_CONTINUE)
		return reason;
	if (!p->common && p->data + sizeof(struct ethhdr) > p->data_end)
		return SHUNT_END(SHUNT_DROP_HEADROOM);
	write_macs(p->data, hop, iface);
	count_stats(&service_stats, p->counter, p->length);
	count_stats(&backend_stats, p->backend, p->length);
	if (iface->ifindex == p->ctx->ingress_ifindex)
		return SHUNT_FORWARD_TX;
	bpf_redirect(iface->ifindex, 0);
	return SHUNT_FORWARD_REDIRECT;
}

#endif
