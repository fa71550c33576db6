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

/*
 * x (64 bits), or 0 where it is not below `limit`, so that the compiler cannot test one copy of x and use another:
 * kernel 6.1 does not see that a value was bounded after it was kept on the stack.
 */
#ifdef __bpf__
#define SHUNT_BOUND(x, limit) asm volatile("if %0 < %1 goto +1\n\t%0 = 0" : "+r"(x) : "ri"((__u64)(limit)))
#else
#define SHUNT_BOUND(x, limit) ((x) = (x) < (limit) ? (x) : 0)
#endif

/* Of this object: it tells what it learns of a packet, and changes and counts nothing (shunt_explain.bpf.c). */
#ifndef SHUNT_EXPLAIN
#define SHUNT_EXPLAIN 0
#endif

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))

#endif
