/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * path SHUNT_OBJECT_DIR PATH_OBJECT REPORT [ROUNDS FRAMES]: what a packet costs in the balancer, in the floor program
 * and in an empty one, by the kernel's own run-time statistics ("live": frames cross a real veth to the unchanged
 * program). Programs are interleaved, rounds are repeated, medians are printed and written as JSON.
 * docs/performance.md.
 */
#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <jansson.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>

#include "addr.h"
#include "document.h"
#include "engine.h"
#include "path.h"
#include "program.h"

#define BATCH 64
#define ROUNDS_MAX 99

struct bench_case {
	const char *name;
	unsigned int setup; /* of setups[] */
	struct path_traffic traffic;
	struct bpf_object *object; /* the generator with this traffic */
	int generate;
	double ns[3][ROUNDS_MAX]; /* empty, floor, balancer */
};

/* Documents: services and pools; every pool has the same number of backends in each family. */
static const struct setup {
	unsigned int services, pools, backends;
} setups[] = {{1, 1, 100}, {64, 1, 100}, {64, 64, 100}};
#define N_SETUPS (sizeof(setups) / sizeof(setups[0]))

static struct bench_case cases[] = {
	{.name = "steady.v4.ipip.1", .setup = 0, .traffic = {.flows = 1}},
	{.name = "steady.v4.ipip.10k", .setup = 0, .traffic = {.flows = 10000}},
	{.name = "steady.v4.ipip.1m", .setup = 0, .traffic = {.flows = 1000000}},
	{.name = "steady.v4.ipip.1m.1400", .setup = 0, .traffic = {.flows = 1000000, .length = 1400}},
	{.name = "steady.v6.ipip.1m", .setup = 0, .traffic = {.flows = 1000000, .ipv6 = 1}},
	{.name = "syn.v4.ipip.1m", .setup = 0, .traffic = {.flows = 1000000, .syn = 1}},
	{.name = "services64.v4.ipip.1m", .setup = 1, .traffic = {.flows = 1000000, .services = 64}},
	{.name = "pools64.v4.ipip.1m", .setup = 2, .traffic = {.flows = 1000000, .services = 64}},
	{.name = "pass.v4.1m", .setup = 0, .traffic = {.flows = 1000000, .foreign = 1}},
};
#define N_CASES (sizeof(cases) / sizeof(cases[0]))

static void die(const char *what, int error)
{
	fprintf(stderr, "path: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

static void die_report(const char *what, const struct report *report)
{
	char *text = report_text(report);

	fprintf(stderr, "path: %s:\n%s", what, text ? text : "");
	exit(1);
}

static void run(const char *command)
{
	if (system(command))
		die(command, EIO);
}

/* ---- the balancers ---- */

static char *write_document(const struct setup *setup)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "version: 1\nhash-key: \"000102030405060708090a0b0c0d0e0f\"\npools:\n");
	for (unsigned int i = 0; i < setup->pools; i++) {
		fprintf(out, "- name: pool%u\n  backends:\n", i);
		for (unsigned int j = 0; j < setup->backends; j++)
			fprintf(out, "  - {name: a%u, address: 10.200.%u.%u}\n", j, i, j + 1);
		fprintf(out, "- name: six%u\n  backends:\n", i);
		for (unsigned int j = 0; j < setup->backends; j++)
			fprintf(out, "  - {name: b%u, address: \"fd00:c8::%x:%x\"}\n", j, i, j + 1);
	}
	fprintf(out, "services:\n");
	for (unsigned int i = 0; i < setup->services; i++) {
		unsigned int address = 1 + i / PATH_SERVICES_SIDE, port = 1 + i % PATH_SERVICES_SIDE;

		fprintf(out, "- {name: s%u, address: 192.0.2.%u, protocol: tcp, ports: [%u], pool: pool%u}\n", i,
			address, port, i % setup->pools);
		fprintf(out, "- {name: t%u, address: \"2001:db8::%x\", protocol: tcp, ports: [%u], pool: six%u}\n", i,
			address, port, i % setup->pools);
	}
	fclose(out);
	return text;
}

struct ways {
	struct engine *engine;
	struct engine_nexthop nexthop;
};

static void set_way(const union shunt_address *address, void *arg)
{
	struct ways *ways = arg;

	addr_parse(addr_is_v4(address) ? "10.200.255.1" : "fd00:c8::ffff", &ways->nexthop.source);
	engine_set_nexthop(ways->engine, address, &ways->nexthop);
}

/* An instance with the setup's document in force, and the balancer loaded on it.  Returns the program. */
static int open_balancer(const struct setup *setup, const char *dir, unsigned int ifindex, struct engine **engine)
{
	struct ways ways = {.nexthop = {.known = true,
					.ifindex = ifindex,
					.mac = {2, 0, 0, 0, 0, 1},
					.source_mac = {2, 0, 0, 0, 0, 2},
					.mtu = 1500}};
	char name[SHUNT_INSTANCE_MAX + 1], *text = write_document(setup);
	struct engine_options options = {.instance = name};
	struct report report = {};
	struct bpf_object *object;
	struct model *model;
	int fd;

	snprintf(name, sizeof(name), "bench-%d-%zu", getpid(), (size_t)(setup - setups));
	if (engine_open(&options, &ways.engine, &report) || document_parse(text, strlen(text), &model, &report) ||
	    engine_apply(ways.engine, model, NULL, &report))
		die_report(name, &report);
	free(text);
	engine_addresses(ways.engine, set_way, &ways);
	if (engine_publish(ways.engine, &report) ||
	    program_load(PROGRAM_LB, dir, false, engine_maps(ways.engine), &object, &fd, &report))
		die_report(name, &report);
	*engine = ways.engine;
	return fd;
}

static int remove_pin(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_pins(void)
{
	char path[128];

	for (size_t i = 0; i < N_SETUPS; i++) {
		snprintf(path, sizeof(path), SHUNT_PIN_ROOT "/bench-%d-%zu", getpid(), i);
		nftw(path, remove_pin, 8, FTW_DEPTH | FTW_PHYS);
	}
}

/* ---- measuring ---- */

static struct bpf_object *open_path(const char *file, const struct path_traffic *traffic)
{
	struct bpf_object *object = bpf_object__open(file);
	struct bpf_map *map;

	if (!object)
		die(file, errno);
	map = bpf_object__find_map_by_name(object, ".rodata.traffic");
	if (!map || bpf_map__set_initial_value(map, traffic, sizeof(*traffic)))
		die(file, EINVAL);
	if (bpf_object__load(object))
		die(file, errno);
	return object;
}

static int program_of(struct bpf_object *object, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	if (!program)
		die(name, ENOENT);
	return bpf_program__fd(program);
}

static void run_counts(int program, uint64_t *ns, uint64_t *runs)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(program, &info, &size))
		die("program info", errno);
	*ns = info.run_time_ns;
	*runs = info.run_cnt;
}

static double measure(const struct bench_case *c, int program, unsigned int ifindex, unsigned int frames)
{
	char frame[1514] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = ETH_HLEN + c->traffic.length,
		    .repeat = frames, .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);
	uint64_t ns[2], runs[2];
	int error;

	error = bpf_xdp_attach((int)ifindex, program, XDP_FLAGS_DRV_MODE, NULL);
	if (error)
		die("attach", error);
	run_counts(program, &ns[0], &runs[0]);
	error = bpf_prog_test_run_opts(c->generate, &opts);
	if (error)
		die("live frames", error);
	run_counts(program, &ns[1], &runs[1]);
	/* A busy machine lets the veth's ring overflow: what counts is a frame that arrived. */
	if (runs[1] - runs[0] < frames / 2) {
		fprintf(stderr, "path: %s: only %lu of %u frames arrived\n", c->name,
			(unsigned long)(runs[1] - runs[0]), frames);
		exit(1);
	}
	return (double)(ns[1] - ns[0]) / (double)(runs[1] - runs[0]);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(const double *values, unsigned int n)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[n / 2];
}

static json_t *judge(const struct bench_case *c, unsigned int rounds)
{
	double ns = median(c->ns[2], rounds), floor_ns = median(c->ns[1], rounds), least = INFINITY, most = 0;

	for (unsigned int i = 0; i < rounds; i++) {
		double ratio = c->ns[2][i] / c->ns[1][i];

		least = ratio < least ? ratio : least;
		most = ratio > most ? ratio : most;
	}
	printf("%-24s %8.1f %8.1f %8.1f   %5.2f  (%.2f .. %.2f)\n", c->name, median(c->ns[0], rounds), floor_ns, ns,
	       ns / floor_ns, least, most);
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "method", "live", "ns", ns, "empty_ns",
			 median(c->ns[0], rounds), "floor_ns", floor_ns, "ratio", ns / floor_ns, "ratio_min", least,
			 "ratio_max", most);
}

/* Every frame that the sink saw must be right. */
static void check_sink(struct bpf_object *object)
{
	int fd = bpf_map__fd(bpf_object__find_map_by_name(object, "sink_count"));
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
	printf("%llu frames came out right, %llu wrong\n", sum.good, sum.bad);
	if (!sum.good || sum.bad)
		exit(1);
}

int main(int argc, char **argv)
{
	static const uint8_t mac[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};
	unsigned int rounds = argc > 4 ? atoi(argv[4]) : 7, frames = argc > 5 ? atoi(argv[5]) : 500000, out, in;
	struct engine *engines[N_SETUPS];
	struct bpf_object *reference;
	json_t *report = json_object();
	int programs[3], balancers[N_SETUPS];

	if (argc < 4 || !rounds || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: path OBJECT_DIR PATH_OBJECT REPORT [ROUNDS FRAMES]\n");
		return 2;
	}
	if (unshare(CLONE_NEWNET))
		die("unshare", errno);
	run("ip link add out address 02:00:00:00:00:01 type veth peer name in address 02:00:00:00:00:02");
	/* Nothing but the generator's frames may reach the sink. */
	run("echo 1 >/proc/sys/net/ipv6/conf/out/disable_ipv6; echo 1 >/proc/sys/net/ipv6/conf/in/disable_ipv6");
	run("ip link set out up; ip link set in up; ip link set lo up");
	out = if_nametoindex("out");
	in = if_nametoindex("in");
	if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
		die("bpf_enable_stats", errno);
	atexit(remove_pins);
	for (size_t i = 0; i < N_SETUPS; i++)
		balancers[i] = open_balancer(&setups[i], argv[1], in, &engines[i]);
	for (size_t i = 0; i < N_CASES; i++) {
		struct path_traffic *traffic = &cases[i].traffic;

		traffic->length = traffic->length ?: (traffic->ipv6 ? 60 : 46);
		traffic->out = out;
		memcpy(traffic->destination_mac, mac[1], 6);
		memcpy(traffic->source_mac, mac[0], 6);
		cases[i].object = open_path(argv[2], traffic);
		cases[i].generate = program_of(cases[i].object, "generate");
	}
	reference = cases[0].object;
	programs[0] = program_of(reference, "empty");
	programs[1] = program_of(reference, "path_floor");
	for (unsigned int round = 0; round < rounds; round++)
		for (size_t i = 0; i < N_CASES; i++) {
			programs[2] = balancers[cases[i].setup];
			if (bpf_xdp_attach((int)out, program_of(cases[i].object, "sink"), XDP_FLAGS_DRV_MODE, NULL))
				die("attach sink", errno);
			for (int j = 0; j < 3; j++)
				cases[i].ns[j][round] = measure(&cases[i], programs[j], in, frames);
		}
	printf("%-24s %8s %8s %8s   %5s\n", "ns per packet", "empty", "floor", "shunt", "ratio");
	for (size_t i = 0; i < N_CASES; i++)
		json_object_set_new(report, cases[i].name, judge(&cases[i], rounds));
	for (size_t i = 0; i < N_CASES; i++)
		if (!cases[i].traffic.foreign)
			check_sink(cases[i].object);
	if (json_dump_file(report, argv[3], JSON_INDENT(2) | JSON_SORT_KEYS))
		die(argv[3], errno);
	for (size_t i = 0; i < N_SETUPS; i++)
		engine_close(engines[i]);
	return 0;
}
