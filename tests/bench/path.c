/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * path SHUNT_OBJECT_DIR PATH_OBJECT REPORT [ROUNDS [FRAMES [CASES]]]: what a packet costs in the balancer, in the floor
 * program and in an empty one, by the kernel's own run-time statistics ("live": frames cross a real veth to the
 * unchanged program) and by the time of a loop around it ("wrap"), and packets per second from end to end.  Programs
 * are interleaved, rounds are repeated, medians are printed and written as JSON.  docs/performance.md.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <jansson.h>

#include "cases.h"

#define WARM_UP 20000 /* packets */

static struct balancer balancers[N_BALANCERS];

void die(const char *what, int error)
{
	fprintf(stderr, "path: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

static unsigned int cpus_of(const struct bench_case *c)
{
	return c->cpus ?: 1;
}

static const char *wanted = ""; /* the beginnings of the names of cases that are measured, between commas; "": all */

static bool is_wanted(const struct bench_case *c)
{
	const char *name = wanted;

	do {
		size_t length = strcspn(name, ",");

		if (!strncmp(c->name, name, length))
			return true;
		name += length;
	} while (*name++);
	return false;
}

static bool possible(const struct bench_case *c)
{
	return is_wanted(c) && (cpus_of(c) == 1 || have_two_cpus()) && balancers[c->balancer].engine;
}

static bool is_needed(enum balancer_name balancer)
{
	for (size_t i = 0; i < n_cases; i++)
		if (cases[i].balancer == balancer && is_wanted(&cases[i]))
			return true;
	return false;
}

/* ---- measuring ---- */

/*
 * An entry is made by a flow's first packet and becomes a live one by the second; and a busy machine loses frames: so
 * the flows come several times.
 */
static void record_flows(struct bench_case *c)
{
	const struct balancer *balancer = &balancers[c->balancer];
	struct shunt_pool_stats stats = {};

	attach(&c->traffic, balancer->program);
	for (int i = 0; i < 20 && (i < 2 || stats.inserted < c->recorded / 1000 * 999); i++) {
		set_order(&c->traffic, true, 0);
		send_frames(&c->traffic, c->recorded, 1);
		stats = flow_stats(balancer);
	}
	set_order(&c->traffic, false, 0);
	printf("%s: %llu flows recorded, %llu times refused\n", c->name, stats.inserted, stats.refused);
	if (stats.inserted < c->recorded / 100 * 99)
		die(c->name, ENOSPC);
}

static int program_of(const struct bench_case *c, enum contender contender)
{
	return contender == SHUNT ? balancers[c->balancer].program : contender_of(&c->traffic, contender);
}

/* What the program does with a packet of the case. */
static uint32_t verdict_of(const struct bench_case *c, enum contender contender)
{
	if (contender == EMPTY)
		return XDP_DROP;
	return contender == SHUNT && c->constants.foreign ? XDP_PASS : XDP_TX;
}

static void send(struct bench_case *c, enum method method, enum contender contender, unsigned int frames,
		 struct cost *cost)
{
	int program = program_of(c, contender);

	if (method == LIVE)
		add_cost(&c->traffic, program, frames, cpus_of(c), cost);
	else
		add_wrap_cost(&c->traffic, program, verdict_of(c, contender), method == VERIFY, frames, cost);
}

static double measure(struct bench_case *c, enum method method, enum contender contender, unsigned int frames)
{
	struct balancer *balancer = &balancers[c->balancer];
	uint64_t before = flow_stats(balancer).inserted;
	struct cost cost = {}, warm = {};

	if (method == LIVE || c->insert_up_to)
		attach(&c->traffic, program_of(c, contender));
	if (c->insert_up_to) {
		set_order(&c->traffic, true, c->insert_up_to - frames);
		if (contender == SHUNT) {
			wipe_flows(balancer);
			set_order(&c->traffic, true, 0);
			send_frames(&c->traffic, c->insert_up_to - frames, 1);
		}
		send(c, method, contender, frames, &cost);
	} else if (c->insert_alone) {
		for (unsigned int sent = 0; sent < frames; sent += c->insert_alone) {
			wipe_flows(balancer);
			set_order(&c->traffic, true, 0);
			send(c, method, contender, c->insert_alone, &cost);
		}
	} else {
		/* What the case before left in the caches is no cost of this one. */
		send(c, method, contender, frames < WARM_UP ? frames : WARM_UP, &warm);
		send(c, method, contender, frames, &cost);
	}
	/* A case that inserts must have done so, once for each packet. */
	if (contender == SHUNT && (c->insert_up_to || c->insert_alone) &&
	    (double)(flow_stats(balancer).inserted - before) < 0.98 * cost.runs)
		die("packets without an entry of their own", ENOSPC);
	return cost.ns / cost.runs;
}

/* One CPU can be wrapped. */
static bool has_method(const struct bench_case *c, enum method method)
{
	return possible(c) && (method == LIVE || cpus_of(c) == 1);
}

static void measure_all(unsigned int rounds, unsigned int frames)
{
	for (size_t i = 0; i < n_cases; i++)
		if (cases[i].recorded && possible(&cases[i]) && !flow_stats(&balancers[cases[i].balancer]).inserted)
			record_flows(&cases[i]);
	for (unsigned int round = 0; round < rounds; round++)
		for (size_t i = 0; i < n_cases; i++)
			for (int m = 0; m < N_METHODS; m++)
				for (int j = 0; has_method(&cases[i], m) && j < N_CONTENDERS; j++)
					cases[i].ns[m][j][round] = measure(&cases[i], m, j, frames);
	for (size_t i = 0; i < n_cases; i++)
		for (int j = 0; has_method(&cases[i], VERIFY) && j < N_CONTENDERS; j++)
			measure(&cases[i], VERIFY, j, frames);
}

/* ---- figures ---- */

static json_t *judge(const char *name, const char *method, double ns[N_CONTENDERS][ROUNDS_MAX], unsigned int rounds)
{
	double empty = median(ns[EMPTY], rounds), least = median(ns[FLOOR], rounds), shunt = median(ns[SHUNT], rounds);
	struct ratio ratio = ratio_of(ns[SHUNT], ns[FLOOR], rounds);

	printf("%-31s %7.1f %7.1f %7.1f %12.1f   %5.2f  (%.2f .. %.2f)\n", name, empty, least, shunt, shunt - least,
	       ratio.median, ratio.least, ratio.most);
	return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "method", method, "ns", shunt, "empty_ns", empty,
			 "floor_ns", least, "ratio", ratio.median, "ratio_min", ratio.least, "ratio_max", ratio.most);
}

static json_t *judge_all(unsigned int rounds)
{
	static const char *const methods[N_METHODS] = {"live", "wrap"}, *const prefixes[N_METHODS] = {"", "wrap."};
	json_t *report = json_object();
	char name[64];

	printf("%-31s %7s %7s %7s %12s   %5s\n", "ns per packet", "empty", "floor", "shunt", "above floor", "ratio");
	for (int m = 0; m < N_METHODS; m++)
		for (size_t i = 0; i < n_cases; i++) {
			if (!has_method(&cases[i], m))
				continue;
			snprintf(name, sizeof(name), "%s%s", prefixes[m], cases[i].name);
			json_object_set_new(report, name, judge(name, methods[m], cases[i].ns[m], rounds));
		}
	return report;
}

/* Every frame that a sink saw must be right. */
static void check_frames(void)
{
	unsigned long long good = 0;

	for (size_t i = 0; i < n_cases; i++) {
		struct path_sink sum;

		if (!possible(&cases[i]) || cases[i].constants.foreign)
			continue;
		sum = arrived(&cases[i].traffic);
		good += sum.good;
		if (!sum.good || sum.bad) {
			fprintf(stderr, "path: %s: %llu frames came out right, %llu wrong\n", cases[i].name, sum.good,
				sum.bad);
			exit(1);
		}
	}
	printf("%llu frames came out right, none wrong\n", good);
}

/* ---- from end to end ---- */

/* Without run-time statistics, whose clock would be in the figure. */
static json_t *pipeline(struct bench_case *c, unsigned int rounds, unsigned int frames)
{
	double pps[N_CONTENDERS][ROUNDS_MAX];
	struct ratio ratio;

	for (unsigned int round = 0; round < rounds; round++)
		for (int i = FLOOR; i <= SHUNT; i++) {
			attach(&c->traffic, program_of(c, i));
			pps[i][round] = packets_per_second(&c->traffic, frames, cpus_of(c));
		}
	ratio = ratio_of(pps[SHUNT], pps[FLOOR], rounds);
	printf("whole pipeline, %u CPU: floor %.2f, shunt %.2f million packets a second: ratio %.2f (%.2f .. %.2f)\n",
	       cpus_of(c), median(pps[FLOOR], rounds) / 1e6, median(pps[SHUNT], rounds) / 1e6, ratio.median,
	       ratio.least, ratio.most);
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "ratio", ratio.median, "ratio_min", ratio.least, "ratio_max",
			 ratio.most, "pps", median(pps[SHUNT], rounds), "floor_pps", median(pps[FLOOR], rounds));
}

static struct bench_case *find_case(const char *name)
{
	for (size_t i = 0; i < n_cases; i++)
		if (!strcmp(cases[i].name, name))
			return &cases[i];
	die(name, ENOENT);
}

static json_t *pipelines(unsigned int rounds, unsigned int frames)
{
	json_t *report = pipeline(find_case("steady.v4.ipip.1m"), rounds, frames);

	if (have_two_cpus())
		json_object_set_new(report, "2cpus", pipeline(find_case("steady.v4.ipip.1m.2cpus"), rounds, frames));
	return report;
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 4 ? atoi(argv[4]) : 7, frames = argc > 5 ? atoi(argv[5]) : 200000;
	json_t *report, *pipeline_report;

	if (argc < 4 || !rounds || rounds > ROUNDS_MAX || frames < 64 || frames > MILLION) {
		fprintf(stderr, "usage: path OBJECT_DIR PATH_OBJECT REPORT [ROUNDS [FRAMES [CASES]]]\n");
		return 2;
	}
	wanted = argc > 6 ? argv[6] : "";
	make_site();
	atexit(remove_instances);
	for (size_t i = 0; i < N_BALANCERS; i++)
		if (is_needed(i) && knows_encapsulation(&setups[i]))
			balancers[i] = open_balancer(&setups[i], argv[1], site_interface());
	for (size_t i = 0; i < n_cases; i++) {
		if (!is_wanted(&cases[i]))
			continue;
		cases[i].traffic.constants = cases[i].constants;
		load_traffic(&cases[i].traffic, argv[2]);
	}
	pipeline_report = *wanted ? json_object() : pipelines(rounds, 2 * frames);
	if (bpf_enable_stats(BPF_STATS_RUN_TIME) < 0)
		die("bpf_enable_stats", errno);
	measure_all(rounds, frames);
	report = json_pack("{s:o, s:o}", "packet", judge_all(rounds), "pipeline", pipeline_report);
	check_frames();
	if (!report || json_dump_file(report, argv[3], JSON_INDENT(2)))
		die(argv[3], errno);
	json_decref(report);
	for (size_t i = 0; i < N_BALANCERS; i++)
		if (balancers[i].engine)
			close_balancer(&balancers[i]);
	return 0;
}
