/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load balancer.  What is for no service goes to the host untouched; what is for one goes to the backend
 * that its slot names, encapsulated, or is dropped and counted with a reason.
 */
#include "count.bpf.h"
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
 * Inlined once for each family, with `ipv6` a constant: what one family has to carry through its stages is not what the
 * other has, and BPF has few registers.
 */
SHUNT_STAGE balance_ip(struct pkt *p, bool ipv6)
{
	const struct shunt_snapshot *snap;

	p->ipv6 = ipv6;
	TRY(parse_addresses(p));
	TRY(get_snapshot(&snap));
	TRY(service_address(p, snap));
	TRY(parse_header(p));
	TRY(parse_transport(p));
	TRY(service_port(p, snap));
	TRY(steer(p, snap));
	return forward(p);
}

SHUNT_STAGE balance(struct pkt *p)
{
	TRY(parse_link(p));
	return p->ipv6 ? balance_ip(p, true) : balance_ip(p, false);
}

SEC("xdp")
int shunt(struct xdp_md *ctx)
{
	struct pkt p = {.ctx = ctx};
	enum shunt_reason reason;

	pkt_load(&p);
	reason = balance(&p);
	count_reason(&reasons, reason);
	return reason == SHUNT_FORWARD_REDIRECT ? XDP_REDIRECT : reason_action(reason);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
