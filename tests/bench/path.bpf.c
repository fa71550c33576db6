/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Around the packet path, for its benchmark: a generator (run by live frames, so that each frame passes a real
 * veth), a sink that checks what the balancer made, and two programs to compare with: one that does nothing,
 * and the floor: parse, encapsulate to a constant, transmit.  And a wrapper that runs any of them on one frame in a
 * loop.
 */
#include "floor.bpf.h"
#include "frames.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct path_sink);
} sink_count SEC(".maps");

SEC("xdp")
int generate(struct xdp_md *ctx)
{
	return write_frame(ctx, bpf_get_prandom_u32()) ? bpf_redirect(traffic.out, 0) : XDP_DROP;
}

SEC("xdp")
int sink(struct xdp_md *ctx)
{
	struct path_sink *count;
	__u32 zero = 0;

	count = bpf_map_lookup_elem(&sink_count, &zero);
	if (!count)
		return XDP_DROP;
	if (came_out_right(ctx))
		count->good++;
	else
		count->bad++;
	return XDP_DROP;
}

SEC("xdp")
int empty(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_DROP;
}

SEC("xdp")
int path_floor(struct xdp_md *ctx)
{
	return floor_packet(ctx);
}

/* ---- the wrapper ---- */

struct path_wrap wrap_state SEC(".bss.wrap");

/* The program that the wrapper runs: one of those above, or the balancer's, as it is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} contender SEC(".maps");

/*
 * A program that is called by a tail call returns to the caller of this function.  Global, because the verifier would
 * believe of a static one that it returns what stands here.
 */
__noinline int run_contender(struct xdp_md *ctx)
{
	int verdict = -1;

	SHUNT_OPAQUE(verdict);
	bpf_tail_call(ctx, &contender, 0);
	return verdict;
}

static __always_inline long frame_size(const struct xdp_md *ctx)
{
	long size = (void *)(long)ctx->data_end - (void *)(long)ctx->data;

	SHUNT_OPAQUE(size); /* else clang subtracts pointers in 32 bits, which the verifier does not allow */
	return size;
}

/* What is not sent back is as long as it was. */
static __always_inline bool is_right(struct xdp_md *ctx, int verdict)
{
	return verdict == XDP_TX ? came_out_right(ctx) : frame_size(ctx) == ETH_HLEN + traffic.length;
}

/* Numbers in a row become as if at random: the kernel's own random numbers cost 13 ns. */
static __always_inline __u32 scatter(__u32 x)
{
	x = (x ^ x >> 16) * 0x7feb352du;
	x = (x ^ x >> 15) * 0x846ca68bu;
	return x ^ x >> 16;
}

/* As many packets as one run may do tail calls, each on the same frame, written anew. */
SEC("xdp")
int wrap(struct xdp_md *ctx)
{
	__u32 wrong = 0;
	int verdict;

	for (int i = 0; i < PATH_WRAP_LOOP; i++) {
		if (!write_frame(ctx, scatter(wrap_state.first + wrap_state.packets)))
			break;
		/* A locked instruction: the frame is in the cache, as a NIC leaves it, and not on its way there. */
		__sync_fetch_and_add(&wrap_state.packets, 1);
		verdict = run_contender(ctx);
		wrong |= verdict ^ wrap_state.verdict;
		if (wrap_state.verify)
			wrong |= !is_right(ctx, verdict);
		if (bpf_xdp_adjust_head(ctx, (int)(frame_size(ctx) - ETH_HLEN - traffic.length)))
			break;
	}
	wrap_state.wrong |= wrong;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
