/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The keyed flow hash: the same inline code in BPF and in user space, and part of every fleet's contract
 * (docs/adr/0001-flow-hash.md; tests/golden/flowhash.py is the second implementation).
 *
 * NH over the flow's 32-bit words (Black et al., UMAC, CRYPTO '99; RFC 4418): for any two different flows
 * of one family at most 2^-32 of all keys give the same sum, so no collision holds for every key.  The sum
 * is then mixed by a bijection, so that each input bit reaches each output bit.
 *
 * Words are what the packet holds, read as little-endian: on the usual hosts a plain load.
 */
#ifndef SHUNT_FLOWHASH_H
#define SHUNT_FLOWHASH_H

#include <shunt/types.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SHUNT_WIRE32(x) ((SHUNT_FORCE __u32)(x))
#else
#define SHUNT_WIRE32(x) __builtin_bswap32((SHUNT_FORCE __u32)(x))
#endif

/* The last word: IP protocol, hash mode and family, so that none of them shares sums with another. */
static inline __u32 shunt_hash_tail(__u8 protocol, __u32 mode, int ipv6)
{
	return (__u32)protocol | mode << 8 | (ipv6 ? 6u : 4u) << 16;
}

static inline __u64 shunt_nh(__u32 a, __u32 ka, __u32 b, __u32 kb)
{
	return (__u64)(__u32)(a + ka) * (__u32)(b + kb);
}

/* A bijection of 64 bits: two multiply-xorshift rounds. */
static inline __u64 shunt_hash_finish(__u64 sum, __u64 key)
{
	__u64 x = sum + key;

	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
	return x ^ x >> 32;
}

static inline __u64 shunt_hash4(const struct shunt_hash_key *key, __u32 source, __u32 destination, __u32 ports,
				__u32 tail)
{
	__u64 sum = shunt_nh(source, key->word[0], ports, key->word[1]) +
		    shunt_nh(destination, key->word[2], tail, key->word[3]);

	return shunt_hash_finish(sum, key->final);
}

/* keep: ~0, or 0 to leave the destination out. */
static inline __u64 shunt_hash6(const struct shunt_hash_key *key, const __be32 source[4], const __be32 destination[4],
				__u32 keep, __u32 ports, __u32 tail)
{
	__u64 sum = shunt_nh(ports, key->word[8], tail, key->word[9]);

	for (int i = 0; i < 4; i += 2) {
		sum += shunt_nh(SHUNT_WIRE32(source[i]), key->word[i], SHUNT_WIRE32(source[i + 1]), key->word[i + 1]);
		sum += shunt_nh(SHUNT_WIRE32(destination[i]) & keep, key->word[i + 4],
				SHUNT_WIRE32(destination[i + 1]) & keep, key->word[i + 5]);
	}
	return shunt_hash_finish(sum, key->final);
}

/*
 * The hash of a flow in a mode: what the mode leaves out counts as 0.
 * ports: source port in the low half, destination port in the high half, each as read from the packet by
 * one little-endian 32-bit load.  Always inlined: BPF calls no function with so many arguments.
 */
static inline __attribute__((always_inline)) __u64 shunt_flow_hash(const struct shunt_hash_key *key, __u32 mode,
								   int ipv6, const union shunt_address *source,
								   const union shunt_address *destination, __u32 ports,
								   __u8 protocol)
{
	__u32 keep = ~0u;

	/* A branch, which is predicted: the hash need not wait for the service's entry to be read. */
	if (__builtin_expect(mode != SHUNT_HASH_5TUPLE, 0)) {
		keep = 0;
		protocol = 0;
		ports &= mode == SHUNT_HASH_SOURCE_PORT ? 0xffff : 0;
	}
	if (ipv6)
		return shunt_hash6(key, source->word, destination->word, keep, ports,
				   shunt_hash_tail(protocol, mode, ipv6));
	return shunt_hash4(key, SHUNT_WIRE32(source->word[3]), SHUNT_WIRE32(destination->word[3]) & keep, ports,
			   shunt_hash_tail(protocol, mode, ipv6));
}

/* The slot of a hash in a table: multiply-shift over its high half (below `slots`, even to slots / 2^32). */
static inline __u32 shunt_hash_slot(__u64 hash, __u32 slots)
{
	return (__u32)((hash >> 32) * slots >> 32);
}

#endif
