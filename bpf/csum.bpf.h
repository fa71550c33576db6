/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The Internet checksum (RFC 1071), over words as loaded: its sum does not depend on byte order. */
#ifndef SHUNT_CSUM_BPF_H
#define SHUNT_CSUM_BPF_H

#include "env.bpf.h"

/* Fold a sum of at most 65,536 words into 16 bits: the second fold takes the carry of the first. */
static __always_inline __u16 csum_fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)sum;
}

/* The same in the high half, of a sum of at most 65,535 words: the low half's carry is added on the way. */
static __always_inline __u32 csum_fold_high(__u32 sum)
{
	return sum + (sum << 16) + (sum >> 16);
}

/* The checksum after one word changed (RFC 1624, equation 3). */
static __always_inline __sum16 csum_replace(__sum16 check, __be16 from, __be16 to)
{
	return (__sum16)~csum_fold((__u32)(__u16)~check + (__u16)~from + (__u16)to);
}

/* The same for a TTL one lower, which is the high byte of its word: csum_replace(check, 0x0100, 0) for every value. */
static __always_inline __sum16 csum_after_hop(__sum16 check)
{
	__u32 sum = (__u32)check + bpf_htons(0x0100);

	return (__sum16)(sum + ((sum + 1) >> 16));
}

#endif
