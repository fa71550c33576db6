/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What every file of bpf/ builds on: the kernel's interface, the shared contract, the load-time constants. */
#ifndef SHUNT_ENV_BPF_H
#define SHUNT_ENV_BPF_H

#include <stdbool.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include <shunt/flowhash.h>
#include <shunt/types.h>
#include <shunt/wire.h>

/*
 * Set at load.  volatile: read at run time, not folded to 0 by the compiler; the section is frozen before the
 * program is verified, so the verifier knows the values and drops the branches that they rule out.
 */
const volatile struct shunt_config config SEC(".rodata.config") = {.address_buckets = 1, .service_buckets = 1};

/* Hide how a value came about, so that the compiler keeps the comparison (and the register) that bounds it. */
#define SHUNT_OPAQUE(x) asm volatile("" : "+r"(x))

#define unlikely(x) __builtin_expect(!!(x), 0)
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))

#endif
