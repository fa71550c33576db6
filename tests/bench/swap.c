/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * swap REPORT: how long a table of 65,537 slots takes to come into force, against one batched update of as many
 * elements of an array map; 64 outer entries against one; and the memory that maps take.  docs/performance.md.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <jansson.h>

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

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), by_value);
	return values[ROUNDS / 2];
}

/* Fill, freeze, swap, in force. */
static double install(const struct maps *maps)
{
	size_t size = maps_inner_size(maps, MAPS_TABLE_M);
	uint8_t *value = calloc(1, size);
	double us[ROUNDS];

	for (int i = 0; value && i < ROUNDS; i++) {
		double start = now_us();
		int error;

		memset(value + sizeof(struct shunt_table), i, size - sizeof(struct shunt_table));
		error = maps_inner_publish(maps, MAPS_TABLE_M, 0, value);
		if (error)
			die("publish", error);
		us[i] = now_us() - start;
	}
	free(value);
	return median(us);
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
	return median(us);
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
	return median(us);
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
	char command[128];

	snprintf(command, sizeof(command), "rm -rf " SHUNT_PIN_ROOT "/%s", name);
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

int main(int argc, char **argv)
{
	static const struct maps_capacities small = {
		.services = 64, .addresses = 64, .pools = 1, .backends = 16, .flows = 100000};
	static const struct maps_capacities many = {.pools = POOLS};
	double install_us, batch_us, one_us, many_us;
	uint64_t empty, full, per_cpu, small_bytes, small_cpu;
	char name[SHUNT_INSTANCE_MAX + 1];
	struct maps maps;
	json_t *report;

	if (argc != 2) {
		fprintf(stderr, "usage: swap REPORT\n");
		return 2;
	}
	maps = open_instance(name, sizeof(name), "small", &small);
	install(&maps);
	small_bytes = memory_of(&maps, &small_cpu);
	maps_close(&maps);
	remove_pins(name);
	maps = open_instance(name, sizeof(name), "many", &many);
	empty = memory_of(&maps, &per_cpu);
	install_us = install(&maps);
	full = memory_of(&maps, &per_cpu);
	batch_us = batch();
	one_us = swap_many(&maps, 1);
	many_us = swap_many(&maps, POOLS);
	report = json_pack("{s:{s:f, s:f, s:f, s:f, s:f, s:f}, s:{s:I, s:f, s:I, s:I, s:I, s:I}}", "swap", "install_us",
			   install_us, "batch_us", batch_us, "ratio_to_batch", install_us / batch_us, "one_us", one_us,
			   "sixty_four_us", many_us, "ratio_64_to_1", many_us / one_us, "memory", "pool_bytes",
			   (json_int_t)(full - empty), "flow_bytes",
			   64.0 * (double)SHUNT_DEFAULT_FLOWS / 2 / (double)SHUNT_DEFAULT_FLOWS, "total_small_bytes",
			   (json_int_t)(small_bytes + small_cpu), "total_small_per_cpu_bytes", (json_int_t)small_cpu,
			   "total_default_bytes", (json_int_t)full, "total_default_per_cpu_bytes", (json_int_t)per_cpu);
	maps_close(&maps);
	remove_pins(name);
	printf("install a table %.0f us, batched update %.0f us: ratio %.3f\n64 outer entries %.0f us, one %.0f us: "
	       "ratio "
	       "%.2f\n",
	       install_us, batch_us, install_us / batch_us, many_us, one_us, many_us / one_us);
	printf("memory: %llu KiB a pool; small %.2f MiB in all; default capacities %.1f MiB, per CPU %.1f MiB\n",
	       (unsigned long long)(full - empty) / 1024, (double)(small_bytes + small_cpu) / 1048576,
	       (double)full / 1048576, (double)per_cpu / 1048576);
	if (!report || json_dump_file(report, argv[1], JSON_INDENT(2) | JSON_SORT_KEYS))
		die(argv[1], EIO);
	return 0;
}
