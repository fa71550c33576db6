/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * swap OBJECT REPORT: how long a table of 65,537 slots takes to come into force, and until nothing can see the old one,
 * against one batched update of as many elements of an array map; 64 outer entries against one; and the memory that
 * maps take.  docs/performance.md.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <jansson.h>

#include <shunt/flow.h>
#include "figures.h"
#include "maps.h"

#define SLOTS SHUNT_SLOTS_M
#define POOLS 64
#define ROUNDS 41

static void die(const char *what, int error)
{
	fprintf(stderr, "swap: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(1);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- who sees the table in force ---- */

struct watch {
	int program; /* phase_in_force() */
	_Atomic uint32_t seen;
	_Atomic bool stop;
	double seen_us; /* written before `seen` */
};

static uint32_t phase_in_force(int program)
{
	char frame[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = sizeof(frame));

	if (bpf_prog_test_run_opts(program, &opts))
		die("phase_in_force", errno);
	return opts.retval;
}

static void *watch_phase(void *arg)
{
	struct watch *watch = arg;

	while (!watch->stop) {
		uint32_t phase = phase_in_force(watch->program);

		if (phase == watch->seen)
			continue;
		watch->seen_us = now_us();
		watch->seen = phase;
	}
	return NULL;
}

/* The object with phase_in_force(), on the instance's tables of 65,537 slots. */
static struct bpf_object *load_watch(const char *file, const struct maps *maps, int *program)
{
	struct bpf_object *object = bpf_object__open(file);
	struct bpf_map *map;

	if (!object)
		die(file, errno);
	bpf_object__for_each_map(map, object)
	{
		bool tables = !strcmp(bpf_map__name(map), SHUNT_MAP_TABLES_M);

		if (bpf_map__is_internal(map))
			continue;
		if (tables ? bpf_map__reuse_fd(map, maps->tables[SHUNT_TABLE_M]) : bpf_map__set_autocreate(map, false))
			die(file, EINVAL);
	}
	if (bpf_object__load(object))
		die(file, errno);
	*program = bpf_program__fd(bpf_object__find_program_by_name(object, "phase_in_force"));
	return object;
}

struct install {
	double in_force_us; /* until a program saw the new table */
	double barrier_us;  /* until no program could see the old one */
};

/* Fill, freeze, swap, in force: as a program that runs on another CPU sees it. */
static struct install install(const struct maps *maps, int program)
{
	size_t size = maps_inner_size(maps, MAPS_TABLE_M);
	struct watch watch = {.program = program};
	uint8_t *value = calloc(1, size);
	double in_force[ROUNDS], barrier[ROUNDS];
	struct shunt_table *header = (void *)value;
	pthread_t thread;
	int error;

	if (!value || pthread_create(&thread, NULL, watch_phase, &watch))
		die("thread", EAGAIN);
	for (int i = 0; i < ROUNDS; i++) {
		double start = now_us();

		memset(value + sizeof(*header), i, size - sizeof(*header));
		header->phase = i + 1;
		error = maps_inner_publish(maps, MAPS_TABLE_M, 0, value);
		if (error)
			die("publish", error);
		barrier[i] = now_us() - start;
		while (watch.seen != header->phase)
			;
		in_force[i] = watch.seen_us - start;
	}
	watch.stop = true;
	pthread_join(thread, NULL);
	free(value);
	return (struct install){median(in_force, ROUNDS), median(barrier, ROUNDS)};
}

static double batch(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "batch", 4, 4, SLOTS, NULL);
	uint32_t *keys = calloc(SLOTS, sizeof(*keys)), *values = calloc(SLOTS, sizeof(*values));
	double us[ROUNDS];

	if (fd < 0 || !keys || !values)
		die("array map", errno);
	for (uint32_t i = 0; i < SLOTS; i++)
		keys[i] = i;
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t count = SLOTS;
		double start = now_us();

		if (bpf_map_update_batch(fd, keys, values, &count, NULL))
			die("batched update", errno);
		us[i] = now_us() - start;
	}
	free(keys);
	free(values);
	close(fd);
	return median(us, ROUNDS);
}

/* n outer entries in one batch, of inner maps that are ready. */
static double swap_many(const struct maps *maps, uint32_t n)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_RDONLY_PROG);
	uint32_t keys[POOLS], fds[2][POOLS];
	double us[ROUNDS];

	for (uint32_t i = 0; i < 2 * n; i++) {
		int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "inner", 4, maps_inner_size(maps, MAPS_TABLE_S), 1, &opts);

		if (fd < 0)
			die("inner map", errno);
		keys[i % n] = i % n;
		fds[i / n][i % n] = (uint32_t)fd;
	}
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t count = n;
		double start = now_us();

		if (bpf_map_update_batch(maps->tables[SHUNT_TABLE_S], keys, fds[i % 2], &count, NULL))
			die("outer map", errno);
		us[i] = now_us() - start;
	}
	for (uint32_t i = 0; i < 2 * n; i++)
		close((int)fds[i / n][i % n]);
	return median(us, ROUNDS);
}

static struct maps open_instance(char *name, size_t size, const char *suffix, const struct maps_capacities *capacities)
{
	struct report report = {};
	struct maps maps;

	snprintf(name, size, "bench-%d-%s", getpid(), suffix);
	if (maps_open(name, capacities, &maps, &report)) {
		fputs(report_text(&report), stderr);
		exit(1);
	}
	return maps;
}

static void remove_pins(const char *name)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf " SHUNT_PIN_ROOT "/%s /run/shunt/%s.lock", name, name);
	if (system(command))
		die(command, EIO);
}

static uint64_t memory_of(const struct maps *maps, uint64_t *per_cpu)
{
	uint64_t bytes;
	int error = maps_memory(maps, &bytes, per_cpu);

	if (error)
		die("memory", error);
	return bytes;
}

static uint64_t whole_memory(const struct maps *maps)
{
	uint64_t per_cpu, bytes = memory_of(maps, &per_cpu);

	return bytes + per_cpu;
}

/* What the instance takes once pool 0 has a table, and what comes on top while its slots are in transition. */
static json_t *memory(const struct maps *maps, uint64_t empty)
{
	uint8_t *ranges = calloc(1, maps_inner_size(maps, MAPS_RANGES_M));
	uint64_t full, per_cpu, transition;
	int error;

	full = memory_of(maps, &per_cpu);
	error = ranges ? maps_inner_publish(maps, MAPS_RANGES_M, SHUNT_RANGES_INDEX(0, 0), ranges) : -ENOMEM;
	if (error)
		die("ranges", error);
	free(ranges);
	transition = whole_memory(maps) - full - per_cpu;
	return json_pack("{s:I, s:I, s:I, s:I}", "pool_bytes", (json_int_t)(full + per_cpu - empty), "transition_bytes",
			 (json_int_t)transition, "total_default_bytes", (json_int_t)full, "total_default_per_cpu_bytes",
			 (json_int_t)per_cpu);
}

static json_t *small_memory(const char *object)
{
	static const struct maps_capacities small = {
		.services = 64, .addresses = 64, .pools = 1, .backends = 16, .flows = 100000};
	char name[SHUNT_INSTANCE_MAX + 1];
	struct maps maps = open_instance(name, sizeof(name), "small", &small);
	struct bpf_object *watch;
	uint64_t bytes, per_cpu;
	int program;

	watch = load_watch(object, &maps, &program);
	install(&maps, program);
	bytes = memory_of(&maps, &per_cpu);
	bpf_object__close(watch);
	maps_close(&maps);
	remove_pins(name);
	return json_pack("{s:I, s:I, s:f}", "total_small_bytes", (json_int_t)(bytes + per_cpu),
			 "total_small_per_cpu_bytes", (json_int_t)per_cpu, "flow_bytes",
			 (double)SHUNT_FLOW_BUCKETS(SHUNT_DEFAULT_FLOWS) * sizeof(struct shunt_flow_bucket) /
				 SHUNT_DEFAULT_FLOWS);
}

static json_t *swaps(const struct maps *maps, const struct install *installed)
{
	double batch_us = batch(), one_us = swap_many(maps, 1), many_us = swap_many(maps, POOLS);

	printf("a table in force after %.0f us (the old one seen by nobody after %.0f us), a batched update %.0f us: "
	       "ratio %.3f (%.3f)\n64 outer entries %.0f us, one %.0f us: ratio %.2f\n",
	       installed->in_force_us, installed->barrier_us, batch_us, installed->in_force_us / batch_us,
	       installed->barrier_us / batch_us, many_us, one_us, many_us / one_us);
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "install_us", installed->in_force_us, "barrier_us",
			 installed->barrier_us, "batch_us", batch_us, "ratio_to_batch",
			 installed->in_force_us / batch_us, "barrier_ratio_to_batch", installed->barrier_us / batch_us,
			 "one_us", one_us, "sixty_four_us", many_us, "ratio_64_to_1", many_us / one_us);
}

int main(int argc, char **argv)
{
	static const struct maps_capacities defaults = {};
	char name[SHUNT_INSTANCE_MAX + 1];
	struct bpf_object *watch;
	struct install installed;
	json_t *bytes, *report;
	struct maps maps;
	uint64_t empty;
	int program;

	if (argc != 3) {
		fprintf(stderr, "usage: swap OBJECT REPORT\n");
		return 2;
	}
	maps = open_instance(name, sizeof(name), "default", &defaults);
	empty = whole_memory(&maps);
	watch = load_watch(argv[1], &maps, &program);
	installed = install(&maps, program);
	bytes = memory(&maps, empty);
	json_object_update_new(bytes, small_memory(argv[1]));
	report = json_pack("{s:o, s:o}", "swap", swaps(&maps, &installed), "memory", bytes);
	bpf_object__close(watch);
	maps_close(&maps);
	remove_pins(name);
	json_dumpf(bytes, stdout, JSON_INDENT(2));
	putchar('\n');
	if (!report || json_dump_file(report, argv[2], JSON_INDENT(2) | JSON_SORT_KEYS))
		die(argv[2], EIO);
	json_decref(report);
	return 0;
}
