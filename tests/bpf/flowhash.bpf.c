/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The shared flow hash as the kernel's JIT runs it: one case a frame. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <shunt/flowhash.h>

#include "flowhash.h"

SEC("xdp")
int flowhash(struct xdp_md *ctx)
{
	struct flowhash_case *one = (void *)(long)ctx->data;

	if ((void *)(one + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	one->hash = shunt_flow_hash(&one->key, one->mode, one->ipv6 != 0, &one->source, &one->destination, one->ports,
				    (__u8)one->protocol);
	one->slot = shunt_hash_slot(one->hash, one->slots);
	return XDP_PASS;
}

const char LICENSE[] SEC("license") = "Dual BSD/GPL";
