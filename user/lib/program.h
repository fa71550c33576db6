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

struct program_options {
	bool frags;	   /* with BPF_F_XDP_HAS_FRAGS */
	uint16_t gue_port; /* decap: UDP port of GUE, 0: none */
};

/*
 * Load shunt.bpf.o (or shunt_decap.bpf.o, shunt_explain.bpf.o or shunt_probe.bpf.o) with its maps replaced by the
 * pinned ones (of maps_open(), or maps_open_decap()) and its section .rodata.config filled from the capacities and
 * `options`.  dir: where the objects are, NULL for $SHUNT_OBJECT_DIR, the executable's folder, or ../lib/shunt beside
 * it.  0 and *out, which the caller closes with bpf_object__close(); -errno, reported with the last lines of the
 * verifier's log.
 */
int program_load(enum program_role role, const char *dir, const struct program_options *options,
		 const struct maps *maps, struct bpf_object **out, int *program_fd, struct report *report);

/* The UDP port of GUE that a loaded program unwraps, 0 for none, or -errno: -ENOENT if it has no such option. */
int program_gue_port(uint32_t program_id);

/* Whether a loaded program uses a map: 1 or 0, or -errno where that cannot be told. */
int program_uses_map(uint32_t program_id, uint32_t map_id);

#endif
