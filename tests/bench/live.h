/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The packet path's benchmark: balancers on maps of their own, and frames that cross a real veth to them. */
#ifndef BENCH_LIVE_H
#define BENCH_LIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <bpf/libbpf.h>

#include "engine.h"
#include "path.h"

/* Ends the program with a sentence. */
void die(const char *what, int error) __attribute__((noreturn));

/* ---- balancer.c ---- */

/* A document: services and pools; every pool has the same number of backends in each family. */
struct setup {
	unsigned int services, pools, backends;
	const char *encapsulation;
	bool transition; /* all backends of IPv4 leave, others come, and every slot is between the two */
};

struct balancer {
	struct engine *engine;
	int program;
	uint32_t *used; /* buckets of the flow table that were not empty when it was wiped first */
	size_t n_used;
};

/* Whether this build's documents have the setup's encapsulation. */
bool knows_encapsulation(const struct setup *setup);

/* An instance with the setup's document in force, and the program of `dir` on it, which sends to `ifindex`. */
struct balancer open_balancer(const struct setup *setup, const char *dir, unsigned int ifindex);
void close_balancer(struct balancer *balancer);
/* The pins of all instances of this process. */
void remove_instances(void);

/* Empty the flow table: bucket by bucket, so that the caches stay much as packets left them. */
void wipe_flows(struct balancer *balancer);
/* inserted and refused of pool 0, since the instance began. */
struct shunt_pool_stats flow_stats(const struct balancer *balancer);

/* ---- live.c ---- */

enum contender { EMPTY, FLOOR, SHUNT, N_CONTENDERS };

struct traffic {
	struct path_traffic constants;
	struct bpf_object *object; /* the generator and the sink of these constants */
	int generate, sink, wrap, order;
};

/* A namespace with a veth pair, one queue for each CPU.  The calling thread stays on one of them. */
void make_site(void);
unsigned int site_interface(void);
bool have_two_cpus(void);

void load_traffic(struct traffic *traffic, const char *file);
/* EMPTY or FLOOR. */
int contender_of(const struct traffic *traffic, enum contender contender);
/* Each flow once, from `first` on; or any of them at random, as at first. */
void set_order(const struct traffic *traffic, bool ordered, unsigned int first);
/* The programs at both ends of the veth: the sink, and this one. */
void attach(const struct traffic *traffic, int program);

/* Through the attached program.  cpus: 1, or 2, of which each sends one half. */
void send_frames(const struct traffic *traffic, unsigned int frames, unsigned int cpus);
struct path_sink arrived(const struct traffic *traffic);

struct cost {
	double ns, runs;
};
/* The same, and what the program cost by the kernel's run-time statistics. */
void add_cost(const struct traffic *traffic, int program, unsigned int frames, unsigned int cpus, struct cost *cost);
/* The same from end to end: generator, veth, program, veth, sink. */
double packets_per_second(const struct traffic *traffic, unsigned int frames, unsigned int cpus);

/* ---- wrap.c ---- */

/*
 * What the program costs in a loop: a frame of the traffic is written anew, the program run, the head put back.  Some
 * program must be attached.  verdict: expected of each packet; another one ends the benchmark.  verify: look at each
 * frame that comes out, too, which takes time.
 */
void add_wrap_cost(const struct traffic *traffic, int program, uint32_t verdict, bool verify, unsigned int frames,
		   struct cost *cost);

#endif
