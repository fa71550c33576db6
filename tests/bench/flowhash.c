/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ns per flow hash in BPF: flowhash OBJECT.  Each program runs PROG_TEST_RUN's loop; rounds are interleaved, medians
 * taken, and the empty loop's time is subtracted.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "flowhash.h"

#define ROUNDS 9
#define REPEAT 4000 /* runs of BENCH_HASHES hashes */

static const char *const names[] = {
	"nothing", "nh_v4", "nh_v6", "siphash13_v4", "siphash13_v6", "murmur3_v4", "murmur3_v6",
};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

/* Random key and flow: a zero key word would make multiplications look the same, if not faster. */
static int fill(struct bpf_object *object)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".bss");
	unsigned char value[256];
	size_t size;

	if (!map || !bpf_map__initial_value(map, &size) || size > sizeof(value))
		return -ENOENT;
	srandom(1);
	for (size_t i = 0; i < size; i++)
		value[i] = (unsigned char)random();
	return bpf_map__set_initial_value(map, value, size);
}

/* ns of one run, or -errno. */
static int run(int program)
{
	char frame[64] = {};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame), .repeat = REPEAT);
	int error = bpf_prog_test_run_opts(program, &options);

	return error ? error : (int)options.duration;
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int measure(struct bpf_object *object, int times[N_NAMES][ROUNDS])
{
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < N_NAMES; i++) {
			struct bpf_program *program = bpf_object__find_program_by_name(object, names[i]);
			int ns = program ? run(bpf_program__fd(program)) : -ENOENT;

			if (ns < 0)
				return ns;
			times[i][round] = ns;
		}
	}
	for (size_t i = 0; i < N_NAMES; i++)
		qsort(times[i], ROUNDS, sizeof(times[i][0]), compare);
	return 0;
}

int main(int argc, char **argv)
{
	struct bpf_object *object = argc == 2 ? bpf_object__open(argv[1]) : NULL;
	int times[N_NAMES][ROUNDS], error;

	if (!object) {
		fprintf(stderr, "usage: flowhash OBJECT (build/tests/bench/flowhash.bpf.o)\n");
		return 2;
	}
	error = fill(object);
	if (!error)
		error = bpf_object__load(object);
	if (!error)
		error = measure(object, times);
	if (error) {
		fprintf(stderr, "flowhash: %s: %s\n", argv[1], strerror(-error));
		bpf_object__close(object);
		return 1;
	}
	printf("ns per hash in BPF, median (fastest to slowest) of %d rounds of %d, empty loop subtracted\n", ROUNDS,
	       REPEAT * BENCH_HASHES);
	for (size_t i = 1; i < N_NAMES; i++)
		printf("  %-14s %5.1f  (%.1f to %.1f)\n", names[i],
		       (double)(times[i][ROUNDS / 2] - times[0][ROUNDS / 2]) / BENCH_HASHES,
		       (double)(times[i][0] - times[0][ROUNDS / 2]) / BENCH_HASHES,
		       (double)(times[i][ROUNDS - 1] - times[0][ROUNDS / 2]) / BENCH_HASHES);
	bpf_object__close(object);
	return 0;
}
