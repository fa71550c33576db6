/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TESTS_BENCH_FLOWHASH_H
#define TESTS_BENCH_FLOWHASH_H

#include <shunt/types.h>

#define BENCH_HASHES 512

struct bench_flow {
	union shunt_address source, destination;
	__u32 ports;
	__u32 protocol;
};

#endif
