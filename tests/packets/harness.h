/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The packet tests' hand in the kernel: the real library on one side, PROG_TEST_RUN on the other. */
#ifndef TESTS_PACKETS_HARNESS_H
#define TESTS_PACKETS_HARNESS_H

#include <jansson.h>
#include <bpf/libbpf.h>

#include "engine.h"
#include "program.h"

#define HARNESS_ROLES 3 /* by enum program_role */

struct harness {
	struct engine *engine;
	struct maps decap; /* .instance is "" before it is open */
	struct bpf_object *object[HARNESS_ROLES];
	int program[HARNESS_ROLES];
	struct report report; /* of the request at hand */
};

struct harness_frame {
	const void *bytes;
	size_t size; /* bytes, metadata included */
	uint32_t ifindex;
	uint32_t meta;	 /* bytes at its beginning that become metadata, which takes headroom away */
	uint32_t linear; /* bytes of the first segment; 0: as the kernel likes */
};

/* Where it is set, each frame of harness_run() goes there too, before the kernel's program gets it. */
typedef void harness_shadow_fn(struct bpf_object *object, enum program_role role, const struct harness_frame *frame);
extern harness_shadow_fn *harness_shadow;

/* One request.  Returns the answer (a new reference), or NULL with *error and what h->report says. */
typedef json_t *harness_fn(struct harness *h, json_t *request, int *error);

/* By the request's "role": "lb" (and none), "decap" or "explain". */
enum program_role harness_role(json_t *request);

harness_fn harness_run, harness_counters, harness_poke, harness_peek, harness_digest;
harness_fn harness_patch, harness_value, harness_pool_stats, harness_race, harness_flood;
harness_fn harness_stream, harness_phase, harness_stream_end;

/* Hexadecimal digits to malloc'd bytes, and back. */
unsigned char *harness_bytes(const char *text, size_t *length);
json_t *harness_hex(const unsigned char *bytes, size_t length);

#endif
