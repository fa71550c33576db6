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

SHUNT_STAGE balance(struct pkt *p)
{
	const struct shunt_snapshot *snap;

	TRY(parse_link(p));
	TRY(parse_addresses(p));
	TRY(get_snapshot(&snap));
	TRY(service_address(p, snap));
	TRY(parse_header(p));
	TRY(parse_transport(p));
	TRY(service_port(p, snap));
	TRY(steer(p, snap));
	return forward(p);
}

SEC("xdp")
int shunt(struct xdp_md *ctx)
{
	struct pkt p = {.ctx = ctx};
	enum shunt_reason reason;

	pkt_load(&p);
	reason = balance(&p);
	count_reason(&reasons, reason);
	if (reason == SHUNT_FORWARD_TX || reason == SHUNT_FORWARD_REDIRECT) {
		count_stats(&service_stats, p.counter, p.length);
		count_stats(&backend_stats, p.backend, p.length);
		return reason == SHUNT_FORWARD_TX ? XDP_TX : XDP_REDIRECT;
	}
	return reason_action(reason);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
