/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Its twin for `shuntctl explain`, as C. */
#define SHUNT_EXPLAIN 1
#define SHADOW shadow_explain
#include "lb.c"
