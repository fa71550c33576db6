/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load balancer.  What is for no service goes to the host untouched; what is for one goes to the backend
 * that its slot names, encapsulated, or is dropped and counted with a reason.
 */
#include "behind.bpf.h"
#include "count.bpf.h"
#include "frag.bpf.h"
#include "icmp.bpf.h"
#include "local.bpf.h"
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
	struct ahead ahead;

	p->ipv6 = ipv6;
	p->common = true;
	p->ip = p->data + p->l3;
	SHUNT_OPAQUE(p->ip);
	/* Once for all that is read of the headers; no frame of Ethernet proper is shorter. */
	if (unlikely(p->ip + pkt_room(p) > p->data_end))
		return SHUNT_END(SHUNT_RARE);
	TRY(parse_addresses(p));
	TRY(get_snapshot(&snap));
	TRY(service_address(p, snap));
	look_ahead(p, snap, &ahead);
	if (unlikely(!parse_common(p)))
		return SHUNT_END(SHUNT_RARE);
	TRY(service_port(p, snap, false));
	if (!was_ahead(p, &ahead) && !live_ahead(p, &ahead)) {
		read_words(p);
		TRY(steer(p, snap, &ahead));
	}
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

/* Whether a packet that contradicts itself names a service, as far as it can be read. */
static __always_inline bool names_service(struct pkt *p, const struct shunt_snapshot *snap)
{
	__u32 *ports = pkt_l4(p);

	if (p->l4 - p->l3 + sizeof(*ports) > p->length || (void *)(ports + 1) > p->data_end)
		return false;
	p->ports = SHUNT_WIRE32(*ports);
	return service_port(p, snap, true) == SHUNT_CONTINUE;
}

/* A reset answers no reset (RFC 9293, section 3.10.7.1), and a fragment does not say what it would acknowledge. */
SHUNT_STAGE refuse(struct pkt *p, const struct shunt_snapshot *snap)
{
	__u8 *tcp = pkt_l4(p);

	if (p->protocol == IPPROTO_TCP &&
	    (p->part != PKT_WHOLE || (void *)(tcp + sizeof(struct tcp_header)) > p->data_end || tcp[13] & TCP_RST))
		return SHUNT_DROP_UNKNOWN_PORT;
	return ask(p, snap, ANSWER_REFUSE, 0, SHUNT_ANSWER_REFUSED, SHUNT_DROP_UNKNOWN_PORT);
}

/* The service of TCP or UDP, or of what an ICMP error quotes. */
SHUNT_STAGE rare_port(struct pkt *p, const struct shunt_snapshot *snap)
{
	enum shunt_reason reason = p->quoted ? SHUNT_CONTINUE : parse_transport(p);

	if (reason != SHUNT_CONTINUE)
		return names_service(p, snap) ? reason : unless_pass(p, reason);
	reason = service_port(p, snap, true);
	if (reason == SHUNT_DROP_UNKNOWN_PORT && p->address_flags & SHUNT_ADDRESS_UNKNOWN_REFUSE)
		return refuse(p, snap);
	return reason;
}

/* The flow of a packet for a service address, or already where it goes, or what becomes of it. */
SHUNT_STAGE rare_flow(struct pkt *p, const struct shunt_snapshot *snap)
{
	if (is_icmp(p))
		TRY(icmp(p));
	else if (p->part == PKT_LATER)
		TRY(later_fragment(p, snap));
	if (p->steered)
		return SHUNT_CONTINUE;
	if (p->by_address)
		service_of_address(p);
	else
		TRY(rare_port(p, snap));
	return steer(p, snap, NULL);
}

/* TCP, UDP, ICMP, or a later fragment of a datagram that begins with options: whatever those are in front of. */
SHUNT_STAGE known_protocol(const struct pkt *p)
{
	if (p->protocol == IPPROTO_TCP || p->protocol == IPPROTO_UDP || is_icmp(p) ||
	    (p->part == PKT_LATER && p->ipv6 && is_extension(p->protocol)))
		return SHUNT_CONTINUE;
	return unless_pass(p, p->protocol == IPPROTO_IPIP || p->protocol == IPPROTO_IPV6 ? SHUNT_DROP_ENCAPSULATED
											 : SHUNT_DROP_PROTOCOL);
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
	reason = parse_header(p);
	if (reason != SHUNT_CONTINUE)
		return unless_pass(p, reason);
	TRY(known_protocol(p));
	TRY(rare_flow(p, snap));
	if (p->part == PKT_FIRST && !SHUNT_EXPLAIN)
		remember_first(p, snap);
	return forward(p, snap, true);
}

/* Where the IP header is and of which family, or a reason.  Global: its caller is verified for all outcomes at once. */
__noinline int rare_link(struct xdp_md *ctx)
{
	struct pkt p = {.ctx = ctx};

	pkt_load(&p);
	TRY(parse_link(&p));
	return SHUNT_NR_REASONS + (p.l3 << 1 | p.ipv6);
}

/* Global: verified once, not on each path that comes here. */
__noinline int balance_rare(struct xdp_md *ctx)
{
	struct pkt p = {.ctx = ctx};
	int link = rare_link(ctx) - SHUNT_NR_REASONS, reason;

	trace_restart();
	if (link < 0)
		return link + SHUNT_NR_REASONS;
	p.l3 = link >> 1 & 31;
	p.ipv6 = link & 1;
	pkt_load(&p);
	reason = balance_rare_ip(&p);
	if (reason == SHUNT_PASS_UNKNOWN_PORT && !host_keeps(ctx, p.l3, p.ipv6))
		return SHUNT_DROP_UNKNOWN_PORT;
	return reason;
}

static __always_inline int finish(enum shunt_reason reason)
{
	count_reason(&reasons, reason);
	trace_reason(reason);
	return reason == SHUNT_FORWARD_REDIRECT ? XDP_REDIRECT : reason_action(reason);
}

SEC("xdp")
int shunt_rare(struct xdp_md *ctx)
{
	int reason = balance_rare(ctx);
	struct answer *a;
	__u32 zero = 0;

	if (reason == SHUNT_ASK) {
		a = bpf_map_lookup_elem(&scratch_answer, &zero);
		reason = a ? give_answer(ctx, a) : SHUNT_BUG_SNAPSHOT;
	}
	return finish((enum shunt_reason)reason);
}

/*
 * A tail call, and not a call: it has a stack of its own, so that the common pipeline can be inlined here.  As a
 * function it cost 7 of 93 ns, because returns are dear where the processor's must be guarded.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, int(struct xdp_md *));
} calls SEC(".maps") = {.values = {(void *)&shunt_rare}};

SEC("xdp")
int shunt(struct xdp_md *ctx)
{
	struct pkt p = {.ctx = ctx};
	enum shunt_reason reason;

	pkt_load(&p);
	reason = balance(&p);
	if (reason == SHUNT_FORWARD_TX)
		return finish(SHUNT_FORWARD_TX);
	if (unlikely(reason == SHUNT_RARE)) {
		bpf_tail_call(ctx, &calls, 0);
		reason = SHUNT_BUG_CALLS; /* it does not come back */
	}
	return finish(reason);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
