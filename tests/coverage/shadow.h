/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The BPF programs compiled as C, beside the kernel: each frame that the packet tests hand to a program goes through
 * its native build too, on copies of what the program's maps hold, so that lines can be counted.  What it writes is
 * lost.
 */
#ifndef TESTS_COVERAGE_SHADOW_H
#define TESTS_COVERAGE_SHADOW_H

#include <stddef.h>
#include <linux/bpf.h>

struct shadow_map {
	void *variable; /* of the native program */
	const char *name;
};

struct shadow_program {
	const struct shadow_map *maps; /* the last has no name */
	void *config;		       /* its load-time constants, or NULL */
	size_t config_size;
	int (*run)(struct xdp_md *context);
};

/* The helpers.  bpf_map_lookup_elem() is libbpf's name too, so that lb.c and decap.c are compiled with this one. */
void *shadow_lookup(void *map, const void *key);
long bpf_xdp_adjust_head(struct xdp_md *ctx, int delta);
long bpf_xdp_adjust_tail(struct xdp_md *ctx, int delta);
__u64 bpf_xdp_get_buff_len(struct xdp_md *ctx);
long bpf_fib_lookup(void *ctx, struct bpf_fib_lookup *params, int size, __u32 flags);
long bpf_redirect(__u32 ifindex, __u64 flags);
__u64 bpf_ktime_get_coarse_ns(void);
__u64 bpf_jiffies64(void);

extern const struct shadow_program shadow_lb, shadow_explain, shadow_decap;

#endif
