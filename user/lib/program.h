/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Loads the BPF objects onto an instance's maps. */
#ifndef SHUNT_PROGRAM_H
#define SHUNT_PROGRAM_H

#include <stdbool.h>
#include <bpf/libbpf.h>

#include "maps.h"

/*
 * PROGRAM_EXPLAIN: the load balancer's twin, which is run on single packets and never attached.  PROGRAM_PROBE: for tc,
 * see probe.h.
 */
enum program_role { PROGRAM_LB, PROGRAM_DECAP, PROGRAM_EXPLAIN, PROGRAM_PROBE };

/* The name of the role's program, which the kernel shows. */
const char *program_function(enum program_role role);

/*
 * Load shunt.bpf.o (or shunt_decap.bpf.o, shunt_explain.bpf.o or shunt_probe.bpf.o) with its maps replaced by the
 * pinned ones (of maps_open(), or maps_open_decap()) and its section .rodata.config filled from the capacities.  dir:
 * where the objects are, NULL for $SHUNT_OBJECT_DIR, the executable's folder, or
 * ../lib/shunt beside it. frags: load with BPF_F_XDP_HAS_FRAGS.  0 and *out, which the caller closes with
 * bpf_object__close(); -errno, reported with the last lines of the verifier's log.
 */
int program_load(enum program_role role, const char *dir, bool frags, const struct maps *maps, struct bpf_object **out,
		 int *program_fd, struct report *report);

#endif
