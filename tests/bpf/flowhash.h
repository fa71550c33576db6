/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the flow hash's test program takes as its frame, and fills. */
#ifndef TESTS_BPF_FLOWHASH_H
#define TESTS_BPF_FLOWHASH_H

#include <shunt/types.h>

struct flowhash_case {
	struct shunt_hash_key key;
	union shunt_address source, destination;
	__u32 mode;
	__u32 ipv6;
	__u32 ports; /* as shunt_flow_hash() takes them */
	__u32 protocol;
	__u32 slots;
	__u32 slot; /* out */
	__u64 hash; /* out */
};

#endif
