/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The load balancer's own stages on one packet, without consequences: shunt_explain.bpf.o on an instance's pinned maps,
 * run by the kernel's PROG_TEST_RUN.
 */
#ifndef SHUNT_EXPLAIN_H
#define SHUNT_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bpf/libbpf.h>
#include <shunt/trace.h>

#include "maps.h"

#define EXPLAIN_FRAME_MIN 14u	 /* bytes: an Ethernet header */
#define EXPLAIN_FRAME_MAX 65600u /* the longest IP packet with Ethernet header and tags */
#define EXPLAIN_LINEAR 3500u	 /* longer frames come in several segments, which only a program with frags takes */

struct explain {
	struct bpf_object *object;
	int program, trace;
};

struct explain_result {
	struct shunt_trace trace;
	int action;	/* XDP_* */
	uint8_t *frame; /* as it leaves; malloc'd */
	size_t length;
};

/* maps: of maps_open_existing(), open as long as *out is.  frags: as with program_load().  The caller closes *out. */
int explain_open(const struct maps *maps, bool frags, struct explain *out, struct report *report);
void explain_close(struct explain *explain);

/*
 * Run the program on a frame of EXPLAIN_FRAME_MIN to EXPLAIN_FRAME_MAX bytes that comes in by an interface of this
 * network namespace.  0 and *out, whose frame the caller frees; -errno, reported.
 */
int explain_run(const struct explain *explain, const void *frame, size_t length, uint32_t ifindex,
		struct explain_result *out, struct report *report);

/* The name and the sentence of a reason, and its class: as in counters.def; "unknown" where there is no such. */
struct explain_reason {
	const char *name, *class, *sentence;
};
struct explain_reason explain_reason(int reason);

#endif
