/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One program for each hash, each a loop of BENCH_HASHES whose input hangs on the output before it, so that the time
 * is latency: what a packet waits before its slot is known.  Key and flow are loaded anew each time, as for a packet.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <shunt/flowhash.h>

#include "flowhash.h"

struct bench_flow bench_flow = {};
struct shunt_hash_key bench_key = {};
__u64 bench_siphash_key[2] = {};
__u64 bench_result = 0;

#define forget_memory() asm volatile("" ::: "memory")

#define BENCH(name, expression)                                                                                        \
	SEC("xdp")                                                                                                     \
	int name(struct xdp_md *ctx)                                                                                   \
	{                                                                                                              \
		__u64 last = bench_result;                                                                             \
                                                                                                                       \
		(void)ctx;                                                                                             \
		for (int i = 0; i < BENCH_HASHES; i++) {                                                               \
			__u32 ports = bench_flow.ports + (__u32)last;                                                  \
                                                                                                                       \
			last = (expression);                                                                           \
			forget_memory();                                                                               \
		}                                                                                                      \
		bench_result = last;                                                                                   \
		return XDP_PASS;                                                                                       \
	}

/* ---- SipHash-1-3 over the same words ---- */

static __always_inline __u64 rotate64(__u64 x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static __always_inline void sip_round(__u64 v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate64(v[1], 13) ^ v[0];
	v[3] = rotate64(v[3], 16) ^ v[2];
	v[0] = rotate64(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate64(v[1], 17) ^ v[2];
	v[3] = rotate64(v[3], 21) ^ v[0];
	v[2] = rotate64(v[2], 32);
}

static __always_inline void sip_word(__u64 v[4], __u64 word)
{
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
}

static __always_inline __u64 siphash13(const struct bench_flow *flow, __u32 ports, int ipv6)
{
	__u64 v[4] = {
		bench_siphash_key[0] ^ 0x736f6d6570736575ull,
		bench_siphash_key[1] ^ 0x646f72616e646f6dull,
		bench_siphash_key[0] ^ 0x6c7967656e657261ull,
		bench_siphash_key[1] ^ 0x7465646279746573ull,
	};

	if (ipv6) {
		sip_word(v, flow->source.half[0]);
		sip_word(v, flow->source.half[1]);
		sip_word(v, flow->destination.half[0]);
		sip_word(v, flow->destination.half[1]);
	} else {
		sip_word(v, (__u64)flow->source.word[3] << 32 | flow->destination.word[3]);
	}
	/* The last word: the rest, and the length. */
	sip_word(v, (__u64)ports | (__u64)flow->protocol << 32 | (ipv6 ? 37ull : 13ull) << 56);
	v[2] ^= 0xff;
	sip_round(v);
	sip_round(v);
	sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ---- MurmurHash3, 32 bits, seeded ---- */

static __always_inline __u32 rotate32(__u32 x, int bits)
{
	return x << bits | x >> (32 - bits);
}

static __always_inline __u32 murmur_word(__u32 hash, __u32 word)
{
	hash ^= rotate32(word * 0xcc9e2d51, 15) * 0x1b873593;
	return rotate32(hash, 13) * 5 + 0xe6546b64;
}

static __always_inline __u32 murmur3(const struct bench_flow *flow, __u32 ports, int ipv6)
{
	__u32 hash = (__u32)bench_siphash_key[0];
	int first = ipv6 ? 0 : 3;

#pragma clang loop unroll(full)
	for (int i = 0; i < 4; i++)
		if (i >= first)
			hash = murmur_word(murmur_word(hash, flow->source.word[i]), flow->destination.word[i]);
	hash = murmur_word(murmur_word(hash, ports), flow->protocol);
	hash ^= ipv6 ? 40 : 16;
	hash = (hash ^ hash >> 16) * 0x85ebca6b;
	hash = (hash ^ hash >> 13) * 0xc2b2ae35;
	return hash ^ hash >> 16;
}

#define NH(ipv6)                                                                                                       \
	shunt_flow_hash(&bench_key, SHUNT_HASH_5TUPLE, ipv6, &bench_flow.source, &bench_flow.destination, ports,       \
			(__u8)bench_flow.protocol)

BENCH(nothing, ports ^ 1)
BENCH(nh_v4, NH(0))
BENCH(nh_v6, NH(1))
BENCH(siphash13_v4, siphash13(&bench_flow, ports, 0))
BENCH(siphash13_v6, siphash13(&bench_flow, ports, 1))
BENCH(murmur3_v4, murmur3(&bench_flow, ports, 0))
BENCH(murmur3_v6, murmur3(&bench_flow, ports, 1))

const char LICENSE[] SEC("license") = "Dual BSD/GPL";
