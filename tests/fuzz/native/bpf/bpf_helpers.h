/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * In place of libbpf's bpf_helpers.h: the BPF sources as plain C, with the helpers that they call in native.h.  The
 * context's pointers have 32 bits, so frames lie in the lowest 4 GiB.
 */
#ifndef NATIVE_BPF_HELPERS_H
#define NATIVE_BPF_HELPERS_H

#include <stddef.h>
#include <linux/bpf.h>

#define SEC(name) __attribute__((used))
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))

#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name
#define __array(name, value) typeof(value) *name[]

void *bpf_map_lookup_elem(void *map, const void *key);
long bpf_xdp_adjust_head(struct xdp_md *ctx, int delta);
long bpf_xdp_adjust_tail(struct xdp_md *ctx, int delta);
__u64 bpf_ktime_get_coarse_ns(void);
__u64 bpf_jiffies64(void);
__u64 bpf_xdp_get_buff_len(struct xdp_md *ctx);
/* A program that it calls does not come back. */
#define bpf_tail_call(ctx, map, index) return (map)->values[index](ctx)

long bpf_fib_lookup(void *ctx, struct bpf_fib_lookup *params, int size, __u32 flags);
long bpf_redirect(__u32 ifindex, __u64 flags);

#endif
