/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load balancer.  What is for no service goes to the host untouched; what is for one goes to the backend
 * that its slot names, encapsulated, or is dropped and counted with a reason.
 */
#include "behind.bpf.h"
#include "count.bpf.h"
#include "frag.bpf.h"
#include "icmp.bpf.h"
#include "parse.bpf.h"
#include "service.bpf.h"
#include "steer.bpf.h"
#include "xmit.bpf.h"

#define TRY(stage)                                                                                                     \
	do {                                                                                                           \
		enum shunt_reason reason_ = (stage);                                                                   \
		if (reason_ != SHUNT_CONTINUE)                                                                         \
			return reason_;                                                                                \
	} while (0)

/*
 * Whole TCP and UDP packets.  Inlined once for each family, with `ipv6` a constant: what one family has to carry
 * through its stages is not what the other has, and BPF has few registers.
 */
SHUNT_STAGE balance_ip(struct pkt *p, bool ipv6)
{
	const struct shunt_snapshot *snap;

	p->ipv6 = ipv6;
	TRY(parse_addresses(p));
	TRY(get_snapshot(&snap));
	TRY(service_address(p, snap));
	TRY(parse_header(p, false));
	TRY(parse_transport(p));
	TRY(service_port(p, snap, false));
	TRY(steer(p, snap));
	return forward(p, snap, false);
}

SHUNT_STAGE balance(struct pkt *p)
{
	enum shunt_reason reason;

	TRY(parse_link(p));
	reason = p->ipv6 ? balance_ip(p, true) : balance_ip(p, false);
	/* Who is told by ICMP of trouble behind us is shunt itself. */
	if (reason == SHUNT_PASS_NOT_SERVICE && is_icmp(p))
		return SHUNT_RARE;
	return reason;
}

/* The flow of a packet for a service address: its ports, or those that it quotes; with ICMP perhaps already the end. */
SHUNT_STAGE rare_flow(struct pkt *p, const struct shunt_snapshot *snap)
{
	enum shunt_reason reason;

	if (p->part == PKT_LATER && p->address_flags & SHUNT_ADDRESS_FRAGMENTS_SOURCE)
		p->by_address = true;
	else if (is_icmp(p) && p->part == PKT_WHOLE)
		TRY(icmp(p));
	else
		TRY(parse_transport(p));
	if (p->by_address) {
		service_of_address(p);
		return SHUNT_CONTINUE;
	}
	reason = service_port(p, snap, true);
	if (reason == SHUNT_DROP_UNKNOWN_PORT && p->address_flags & SHUNT_ADDRESS_UNKNOWN_REFUSE)
		return ask(p, snap, ANSWER_REFUSE, 0, SHUNT_ANSWER_REFUSED, SHUNT_DROP_UNKNOWN_PORT);
	return reason;
}

/* Neither TCP, UDP, ICMP nor a fragment of them. */
SHUNT_STAGE known_protocol(const struct pkt *p)
{
	if (p->protocol == IPPROTO_TCP || p->protocol == IPPROTO_UDP || is_icmp(p))
		return SHUNT_CONTINUE;
	if (p->address_flags & SHUNT_ADDRESS_UNKNOWN_PASS)
		return SHUNT_PASS_UNKNOWN_PORT;
	return p->protocol == IPPROTO_IPIP || p->protocol == IPPROTO_IPV6 ? SHUNT_DROP_ENCAPSULATED
									  : SHUNT_DROP_PROTOCOL;
}

/* The same pipeline for all that the common one leaves: fragments, ICMP, extension headers, answers. */
SHUNT_STAGE balance_rare_ip(struct pkt *p)
{
	const struct shunt_snapshot *snap;
	enum shunt_reason reason;

	TRY(parse_addresses(p));
	TRY(get_snapshot(&snap));
	reason = service_address(p, snap);
	if (reason != SHUNT_CONTINUE)
		return reason == SHUNT_PASS_NOT_SERVICE ? behind_us(p) : reason;
	TRY(parse_header(p, true));
	TRY(known_protocol(p));
	if (p->part == PKT_LATER && !(p->address_flags & SHUNT_ADDRESS_FRAGMENTS_SOURCE)) {
		TRY(later_fragment(p, snap));
		return forward(p, snap, true);
	}
	TRY(rare_flow(p, snap));
	TRY(steer(p, snap));
	if (p->part == PKT_FIRST)
		remember_first(p, snap);
	return forward(p, snap, true);
}

/* Global: verified once, not on each path that comes here. */
__noinline int balance_rare(struct xdp_md *ctx)
{
	struct pkt p = {.ctx = ctx};

	pkt_load(&p);
	TRY(parse_link(&p));
	SHUNT_OPAQUE(p.l3); /* or the compiler knows its three values, and leaves out masks that the verifier needs */
	return balance_rare_ip(&p);
}

static __noinline int balance_common(struct xdp_md *ctx)
{
	struct pkt p = {.ctx = ctx};

	pkt_load(&p);
	return balance(&p);
}

static __noinline int rare(struct xdp_md *ctx)
{
	int reason = balance_rare(ctx);
	struct answer *a;
	__u32 zero = 0;

	if (reason != SHUNT_ASK)
		return reason;
	a = bpf_map_lookup_elem(&scratch_answer, &zero);
	return a ? give_answer(ctx, a) : SHUNT_BUG_SNAPSHOT;
}

/* Both pipelines are called, so that their stacks do not add up: 512 bytes are all there is. */
SEC("xdp")
int shunt(struct xdp_md *ctx)
{
	enum shunt_reason reason = (enum shunt_reason)balance_common(ctx);

	if (unlikely(reason == SHUNT_RARE))
		reason = (enum shunt_reason)rare(ctx);
	count_reason(&reasons, reason);
	return reason == SHUNT_FORWARD_REDIRECT ? XDP_REDIRECT : reason_action(reason);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
