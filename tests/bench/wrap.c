/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A program in a loop on one frame, without a clock for each packet and without a veth. */
#include <errno.h>
#include <bpf/bpf.h>
#include <linux/if_ether.h>

#include "live.h"

static int map_of(const struct traffic *traffic, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(traffic->object, name);

	if (!map)
		die(name, ENOENT);
	return bpf_map__fd(map);
}

void add_wrap_cost(const struct traffic *traffic, int program, uint32_t verdict, bool verify, unsigned int frames,
		   struct cost *cost)
{
	static uint32_t first; /* packets before */
	struct path_wrap state = {.first = first, .verdict = verdict, .verify = verify};
	unsigned int size = ETH_HLEN + traffic->constants.length, repeat = frames / PATH_WRAP_LOOP;
	struct xdp_md ctx = {.data_end = size, .ingress_ifindex = site_interface()};
	char frame[1514] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = size, .ctx_in = &ctx,
		    .ctx_size_in = sizeof(ctx), .repeat = (int)repeat);
	int states = map_of(traffic, ".bss.wrap");
	uint32_t zero = 0;

	if (bpf_map_update_elem(map_of(traffic, "contender"), &zero, &program, BPF_ANY) ||
	    bpf_map_update_elem(states, &zero, &state, BPF_ANY) || bpf_prog_test_run_opts(traffic->wrap, &opts) ||
	    bpf_map_lookup_elem(states, &zero, &state))
		die("wrapper", errno);
	if (state.wrong || state.packets != (uint64_t)repeat * PATH_WRAP_LOOP)
		die("wrapper: a packet did not come out right", EBADMSG);
	first += frames;
	cost->ns += (double)opts.duration * repeat;
	cost->runs += (double)state.packets;
}
