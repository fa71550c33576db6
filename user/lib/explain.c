/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "explain.h"
#include "kernel.h"
#include "program.h"

#define ROOM 256u /* that a frame can grow by */

int explain_open(const struct maps *maps, bool frags, struct explain *out, struct report *report)
{
	struct explain explain = {};
	int error = program_load(PROGRAM_EXPLAIN, NULL, &(struct program_options){.frags = frags}, maps,
				 &explain.object, &explain.program, report);

	if (error)
		return error;
	explain.trace = bpf_object__find_map_fd_by_name(explain.object, SHUNT_MAP_TRACE);
	if (explain.trace < 0) {
		error = report_error(report, -EUCLEAN,
				     "the object has no map '" SHUNT_MAP_TRACE
				     "': install program and objects of one version");
		explain_close(&explain);
		return error;
	}
	*out = explain;
	return 0;
}

void explain_close(struct explain *explain)
{
	bpf_object__close(explain->object);
	explain->object = NULL;
}

static int run(const struct explain *explain, const void *frame, size_t length, uint32_t ifindex,
	       struct explain_result *result)
{
	struct xdp_md context = {.ingress_ifindex = ifindex, .data_end = (uint32_t)length};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = (uint32_t)length,
		    .data_out = result->frame, .data_size_out = (uint32_t)length + ROOM, .ctx_in = &context,
		    .ctx_size_in = sizeof(context), .repeat = 1);
	uint32_t zero = 0;
	int error;

	if (length > EXPLAIN_LINEAR)
		context.data_end = EXPLAIN_LINEAR;
	error = bpf_map_update_elem(explain->trace, &zero, &result->trace, BPF_ANY);
	if (!error)
		error = bpf_prog_test_run_opts(explain->program, &options);
	if (!error)
		error = bpf_map_lookup_elem(explain->trace, &zero, &result->trace);
	result->action = (int)options.retval;
	result->length = options.data_size_out;
	return error;
}

int explain_run(const struct explain *explain, const void *frame, size_t length, uint32_t ifindex,
		struct explain_result *out, struct report *report)
{
	struct explain_result result = {.frame = malloc(length + ROOM)};
	int error = result.frame ? run(explain, frame, length, ifindex, &result) : -ENOMEM;

	if (error) {
		free(result.frame);
		return kernel_error(report, error, "the kernel does not run the program on this frame of %zu bytes",
				    length);
	}
	*out = result;
	return 0;
}

static const struct explain_reason reasons[] = {
#define SHUNT_CLASS_NAME_PASS "pass"
#define SHUNT_CLASS_NAME_FORWARD "forward"
#define SHUNT_CLASS_NAME_ANSWER "answer"
#define SHUNT_CLASS_NAME_DROP "drop"
#define SHUNT_CLASS_NAME_BUG "bug"
#define SHUNT_COUNTER(id, name, class, sentence) [SHUNT_##id] = {name, SHUNT_CLASS_NAME_##class, sentence},
#include <shunt/counters.def>
#undef SHUNT_COUNTER
};

struct explain_reason explain_reason(int reason)
{
	if (reason >= 0 && reason < SHUNT_NR_REASONS)
		return reasons[reason];
	return (struct explain_reason){"unknown", "bug", "A reason that this version does not know."};
}
