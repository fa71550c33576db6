/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load balancer once more, for `shuntctl explain`: the same stages on the same maps, never attached, run on one
 * packet.  It writes down what each stage learned, counts nothing and leaves nothing behind.
 */
#define SHUNT_EXPLAIN 1
#include "shunt.bpf.c"
