/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A namespace with a veth, and frames that a generator, run by live frames of PROG_TEST_RUN, sends over it. */
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>

#include "live.h"

#define BATCH 64

static const uint8_t mac[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
static unsigned int generator_end, balancer_end;

static void run(const char *command)
{
	if (system(command))
		die(command, EIO);
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("CPU", errno);
}

bool have_two_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

void make_site(void)
{
	char command[256];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	stay_on((int)cpus - 1);
	if (unshare(CLONE_NEWNET))
		die("unshare", errno);
	snprintf(command, sizeof(command),
		 "ip link add out address 02:00:00:00:00:01 numtxqueues %ld numrxqueues %ld type veth "
		 "peer name in address 02:00:00:00:00:02 numtxqueues %ld numrxqueues %ld",
		 cpus, cpus, cpus, cpus);
	run(command);
	/* Nothing but the generator's frames may reach the sink. */
	run("echo 1 >/proc/sys/net/ipv6/conf/out/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/in/disable_ipv6");
	run("ip link set out up; ip link set in up; ip link set lo up");
	generator_end = if_nametoindex("out");
	balancer_end = if_nametoindex("in");
}

unsigned int site_interface(void)
{
	return balancer_end;
}

/* ---- programs ---- */

static int program_of(struct bpf_object *object, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	if (!program)
		die(name, ENOENT);
	return bpf_program__fd(program);
}

void load_traffic(struct traffic *traffic, const char *file)
{
	struct path_traffic *constants = &traffic->constants;
	struct bpf_map *map, *order;

	constants->length = constants->length ?: (constants->ipv6 ? 60 : 46);
	constants->out = generator_end;
	memcpy(constants->destination_mac, mac[1], 6);
	memcpy(constants->source_mac, mac[0], 6);
	traffic->object = bpf_object__open(file);
	if (!traffic->object)
		die(file, errno);
	map = bpf_object__find_map_by_name(traffic->object, ".rodata.traffic");
	order = bpf_object__find_map_by_name(traffic->object, ".bss.order");
	if (!map || !order || bpf_map__set_initial_value(map, constants, sizeof(*constants)))
		die(file, EINVAL);
	if (bpf_object__load(traffic->object))
		die(file, errno);
	traffic->order = bpf_map__fd(order);
	traffic->generate = program_of(traffic->object, "generate");
	traffic->sink = program_of(traffic->object, "sink");
	traffic->wrap = program_of(traffic->object, "wrap");
}

int contender_of(const struct traffic *traffic, enum contender contender)
{
	return program_of(traffic->object, contender == EMPTY ? "empty" : "path_floor");
}

void set_order(const struct traffic *traffic, bool ordered, unsigned int first)
{
	struct path_order order = {.ordered = ordered, .next = first};
	uint32_t zero = 0;

	if (bpf_map_update_elem(traffic->order, &zero, &order, BPF_ANY))
		die("order of flows", errno);
}

void attach(const struct traffic *traffic, int program)
{
	int error = bpf_xdp_attach((int)generator_end, traffic->sink, XDP_FLAGS_DRV_MODE, NULL);

	if (!error)
		error = bpf_xdp_attach((int)balancer_end, program, XDP_FLAGS_DRV_MODE, NULL);
	if (error)
		die("attach", error);
}

/* ---- frames ---- */

struct sender {
	const struct traffic *traffic;
	unsigned int frames;
	int cpu;
	pthread_t thread;
};

static void *send_some(void *arg)
{
	const struct sender *sender = arg;
	char frame[1514] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
		    .data_size_in = ETH_HLEN + sender->traffic->constants.length, .repeat = (int)sender->frames,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);

	if (sender->cpu >= 0)
		stay_on(sender->cpu);
	if (bpf_prog_test_run_opts(sender->traffic->generate, &opts))
		die("live frames", errno);
	return NULL;
}

void send_frames(const struct traffic *traffic, unsigned int frames, unsigned int cpus)
{
	struct sender senders[2] = {{traffic, frames / cpus, -1, 0}, {traffic, frames / cpus, 0, 0}};

	if (cpus == 2 && pthread_create(&senders[1].thread, NULL, send_some, &senders[1]))
		die("thread", EAGAIN);
	send_some(&senders[0]);
	if (cpus == 2)
		pthread_join(senders[1].thread, NULL);
}

struct path_sink arrived(const struct traffic *traffic)
{
	int fd = bpf_map__fd(bpf_object__find_map_by_name(traffic->object, "sink_count"));
	int n = libbpf_num_possible_cpus();
	struct path_sink *counts = calloc(n, sizeof(*counts)), sum = {};
	uint32_t zero = 0;

	if (!counts || bpf_map_lookup_elem(fd, &zero, counts))
		die("sink", errno);
	for (int i = 0; i < n; i++) {
		sum.good += counts[i].good;
		sum.bad += counts[i].bad;
	}
	free(counts);
	return sum;
}

/* ---- figures ---- */

static void run_counts(int program, uint64_t *ns, uint64_t *runs)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(program, &info, &size))
		die("program info", errno);
	*ns = info.run_time_ns;
	*runs = info.run_cnt;
}

void add_cost(const struct traffic *traffic, int program, unsigned int frames, unsigned int cpus, struct cost *cost)
{
	uint64_t ns[2], runs[2];

	run_counts(program, &ns[0], &runs[0]);
	send_frames(traffic, frames, cpus);
	run_counts(program, &ns[1], &runs[1]);
	/* A busy machine lets the veth's ring overflow: what counts is a frame that arrived. */
	if (runs[1] - runs[0] < frames / 2) {
		fprintf(stderr, "path: only %lu of %u frames arrived\n", (unsigned long)(runs[1] - runs[0]), frames);
		exit(1);
	}
	cost->ns += (double)(ns[1] - ns[0]);
	cost->runs += (double)(runs[1] - runs[0]);
}

double packets_per_second(const struct traffic *traffic, unsigned int frames, unsigned int cpus)
{
	struct path_sink before = arrived(traffic), after;
	struct timespec start, end;

	clock_gettime(CLOCK_MONOTONIC, &start);
	send_frames(traffic, frames, cpus);
	clock_gettime(CLOCK_MONOTONIC, &end);
	after = arrived(traffic);
	return (double)(after.good - before.good) /
	       ((double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9);
}
