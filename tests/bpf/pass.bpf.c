// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Lets every frame through.  veth delivers what the other end sends by XDP_TX only where a program is attached here
 * too; on a real NIC nothing like it is needed.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

int lab_pass(struct xdp_md *ctx);

/* frags: attaches at jumbo MTUs too. */
SEC("xdp.frags")
int lab_pass(struct xdp_md *ctx __attribute__((unused)))
{
	return XDP_PASS;
}

char lab_pass_license[] SEC("license") = "Dual BSD/GPL";
