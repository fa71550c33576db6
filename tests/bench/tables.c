/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tables FILE: medians of build times, in CPU time of one thread, and the most memory of a build with its table; also
 * as JSON in FILE. `minimal` is built from the table of one backend less.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <jansson.h>

#include "table/table.h"

#define ROUNDS 15
#define BUDGET_MS 3000.0 /* of one row: slow algorithms get fewer rounds, but three */

struct sample {
	double ms;
	double bytes_per_slot; /* what is left after 256 bytes a backend */
};

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct table_member *make_members(size_t n)
{
	struct table_member *members = calloc(n, sizeof(*members));

	for (size_t i = 0; members && i < n; i++) {
		char *name;

		if (asprintf(&name, "web%05zu", i) < 0)
			abort();
		members[i] = (struct table_member){.name = name, .weight = 1};
	}
	if (!members)
		abort();
	return members;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static struct sample measure(const struct table_algorithm *algorithm, size_t n, uint32_t slots)
{
	struct table_member *members = make_members(n);
	uint16_t *owner = malloc(slots * sizeof(*owner)), *before = malloc(slots * sizeof(*before));
	struct table_params params = {.slots = slots};
	struct table previous = {members, n - 1, slots, before};
	double times[ROUNDS], begin = now_ms();
	size_t peak = 0;
	int rounds = 0;

	if (!owner || !before || table_algorithm("maglev")->build(members, n - 1, &params, NULL, before, NULL))
		abort();
	while (rounds < ROUNDS && (rounds < 3 || now_ms() - begin < BUDGET_MS)) {
		double start = now_ms();

		(void)table_memory_peak();
		if (algorithm->build(members, n, &params, algorithm->history ? &previous : NULL, owner, NULL))
			abort();
		times[rounds++] = now_ms() - start;
		peak = table_memory_peak() + slots * sizeof(*owner);
	}
	qsort(times, (size_t)rounds, sizeof(*times), by_value);
	for (size_t i = 0; i < n; i++)
		free((char *)members[i].name);
	free(members);
	free(owner);
	free(before);
	return (struct sample){(times[rounds / 2] + times[(rounds - 1) / 2]) / 2,
			       ((double)peak - 256 * (double)n) / slots};
}

static void row(json_t *json, const struct table_algorithm *algorithm, size_t n, uint32_t slots)
{
	struct sample sample = measure(algorithm, n, slots);
	char key[64], size[16] = "";

	printf("%-12s %8zu %9u %12.3f %16.1f\n", algorithm->name, n, slots, sample.ms,
	       sample.bytes_per_slot > 0 ? sample.bytes_per_slot : 0);
	fflush(stdout);
	if (slots != 65537)
		snprintf(size, sizeof(size), ".%u", slots);
	snprintf(key, sizeof(key), "tables.%s.%zu%s.build_ms", algorithm->name, n, size);
	json_object_set_new(json, key, json_real(sample.ms));
}

int main(int argc, char **argv)
{
	static const size_t backends[] = {10, 100, 1000, 10000};
	json_t *json = json_object();

	if (argc != 2) {
		fprintf(stderr, "usage: tables FILE\n");
		return 2;
	}
	printf("%-12s %8s %9s %12s %16s\n", "algorithm", "backends", "slots", "median ms", "bytes per slot*");
	for (size_t a = 0; a < table_n_algorithms; a++) {
		const struct table_algorithm *algorithm = &table_algorithms[a];

		for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
			row(json, algorithm, backends[i], 65537);
		if (strcmp(algorithm->name, "rendezvous") != 0)
			row(json, algorithm, 1000, 1048573);
	}
	printf("* of the most memory at any time, the table included, beyond 256 bytes a backend\n");
	if (json_dump_file(json, argv[1], JSON_INDENT(2) | JSON_SORT_KEYS)) {
		fprintf(stderr, "tables: cannot write %s\n", argv[1]);
		return 1;
	}
	json_decref(json);
	return 0;
}
