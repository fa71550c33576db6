/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Slots in transition: tables and ranges written byte by byte, what a pool counted, and packets on several CPUs at
 * once. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "harness.h"

static int inner_of(const char *name, enum maps_inner *kind)
{
	static const char *const names[] = {SHUNT_MAP_TABLES_S, SHUNT_MAP_TABLES_M, SHUNT_MAP_TABLES_L,
					    SHUNT_MAP_RANGES_S, SHUNT_MAP_RANGES_M, SHUNT_MAP_RANGES_L,
					    SHUNT_MAP_SNAPSHOT};

	for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0) {
			*kind = (enum maps_inner)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int patch_value(unsigned char *value, size_t size, json_t *bytes)
{
	for (size_t i = 0; i < json_array_size(bytes); i++) {
		json_t *patch = json_array_get(bytes, i);
		size_t at = (size_t)json_integer_value(json_array_get(patch, 0)), length;
		unsigned char *in = harness_bytes(json_string_value(json_array_get(patch, 1)), &length);

		if (!in || at + length > size) {
			free(in);
			return -EINVAL;
		}
		memcpy(value + at, in, length);
		free(in);
	}
	return 0;
}

/* Which inner map a request is about. */
static int target(struct harness *h, json_t *request, enum maps_inner *kind, uint32_t *index)
{
	const char *pool = json_string_value(json_object_get(request, "pool"));
	struct engine_pool_info info;
	int error = inner_of(json_string_value(json_object_get(request, "map")), kind);

	if (!error && pool)
		error = engine_pool_info(h->engine, pool, &info);
	if (!error)
		*index = pool ? info.index : (uint32_t)json_integer_value(json_object_get(request, "index"));
	return error;
}

json_t *harness_patch(struct harness *h, json_t *request, int *error)
{
	const struct maps *maps = engine_maps(h->engine);
	unsigned char *value;
	enum maps_inner kind;
	uint32_t index;
	int lock = -1;

	*error = target(h, request, &kind, &index);
	if (*error)
		return NULL;
	value = calloc(1, maps_inner_size(maps, kind));
	*error = value ? maps_inner_read(maps, kind, index, value) : -ENOMEM;
	if (*error == -ENOENT)
		*error = 0;
	if (!*error)
		*error = patch_value(value, maps_inner_size(maps, kind), json_object_get(request, "bytes"));
	if (!*error)
		*error = lock = maps_lock(maps->instance, 10000);
	if (lock >= 0) {
		*error = maps_inner_publish(maps, kind, index, value);
		close(lock);
	}
	free(value);
	return *error ? NULL : json_object();
}

json_t *harness_value(struct harness *h, json_t *request, int *error)
{
	const struct maps *maps = engine_maps(h->engine);
	unsigned char *value = NULL;
	json_t *reply = NULL;
	enum maps_inner kind;
	uint32_t index;

	*error = target(h, request, &kind, &index);
	if (!*error) {
		value = malloc(maps_inner_size(maps, kind));
		*error = value ? maps_inner_read(maps, kind, index, value) : -ENOMEM;
	}
	if (!*error)
		reply = json_pack("{s:o}", "value", harness_hex(value, maps_inner_size(maps, kind)));
	free(value);
	return reply;
}

json_t *harness_pool_stats(struct harness *h, json_t *request, int *error)
{
	const struct maps *maps = engine_maps(h->engine);
	uint32_t pool = (uint32_t)json_integer_value(json_object_get(request, "pool"));
	struct shunt_pool_stats *cpus = calloc((size_t)maps->n_cpus, sizeof(*cpus)), sum = {};

	*error = !cpus ? -ENOMEM : bpf_map_lookup_elem(maps->pool_stats, &pool, cpus) ? -errno : 0;
	for (int i = 0; !*error && i < maps->n_cpus; i++) {
		sum.inserted += cpus[i].inserted;
		sum.refused += cpus[i].refused;
		sum.replaced += cpus[i].replaced;
		sum.base += cpus[i].base;
	}
	free(cpus);
	return *error ? NULL
		      : json_pack("{s:I, s:I, s:I, s:I}", "inserted", (json_int_t)sum.inserted, "refused",
				  (json_int_t)sum.refused, "replaced", (json_int_t)sum.replaced, "base",
				  (json_int_t)sum.base);
}

/* ---- the same frames on several CPUs at the same moment ---- */

struct race {
	int program;
	json_t *frames;
	unsigned int threads;
	atomic_uint arrived; /* sum over all frames and threads */
	atomic_int error;
};

struct racer {
	struct race *race;
	unsigned int cpu;
	pthread_t thread;
};

static void *run_race(void *arg)
{
	struct racer *racer = arg;
	struct race *race = racer->race;
	size_t count = json_array_size(race->frames);
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(racer->cpu, &cpus);
	if (pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus))
		race->error = -EINVAL;
	for (size_t i = 0; i < count; i++) {
		size_t length;
		unsigned char *in = harness_bytes(json_string_value(json_array_get(race->frames, i)), &length);
		LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = in, .data_size_in = (uint32_t)length, .repeat = 1);

		/* All wait here for the last. */
		atomic_fetch_add(&race->arrived, 1);
		while (atomic_load(&race->arrived) < (i + 1) * race->threads)
			sched_yield();
		if (!in || bpf_prog_test_run_opts(race->program, &options))
			race->error = in ? -errno : -ENOMEM;
		free(in);
	}
	return NULL;
}

json_t *harness_race(struct harness *h, json_t *request, int *error)
{
	json_t *cpus = json_object_get(request, "cpus");
	struct race race = {.program = h->program[PROGRAM_LB],
			    .frames = json_object_get(request, "frames"),
			    .threads = (unsigned int)json_array_size(cpus)};
	struct racer *racers = calloc(race.threads + 1, sizeof(*racers));
	unsigned int started = 0;

	*error = racers ? 0 : -ENOMEM;
	for (; !*error && started < race.threads; started++) {
		racers[started] = (struct racer){
			.race = &race, .cpu = (unsigned int)json_integer_value(json_array_get(cpus, started))};
		*error = -pthread_create(&racers[started].thread, NULL, run_race, &racers[started]);
		if (*error)
			break;
	}
	/* Those that run would wait for ever for one that does not. */
	if (*error && started)
		abort();
	for (unsigned int i = 0; i < started; i++)
		pthread_join(racers[i].thread, NULL);
	free(racers);
	if (!*error)
		*error = race.error;
	return *error ? NULL : json_object();
}

/* ---- floods ---- */

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/*
 * frames: of IPv4 without options, sent one after the other with the same random source address (in 10.0.0.0/8, where
 * no client of the tests is), source port and sequence number.
 */
json_t *harness_flood(struct harness *h, json_t *request, int *error)
{
	json_t *frames = json_object_get(request, "frames");
	uint64_t count = (uint64_t)json_integer_value(json_object_get(request, "count"));
	uint64_t seed = (uint64_t)json_integer_value(json_object_get(request, "seed"));
	unsigned char *frame[4] = {};
	size_t length[4], n = json_array_size(frames);

	*error = n > 4 ? -EINVAL : 0;
	for (size_t i = 0; !*error && i < n; i++) {
		frame[i] = harness_bytes(json_string_value(json_array_get(frames, i)), &length[i]);
		*error = !frame[i] ? -ENOMEM : length[i] < 14 + 20 + 20 ? -EINVAL : 0;
	}
	for (uint64_t k = 0; !*error && k < count; k++) {
		uint64_t random = next_random(&seed), more = next_random(&seed);

		for (size_t i = 0; !*error && i < n; i++) {
			LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame[i],
				    .data_size_in = (uint32_t)length[i], .repeat = 1);

			memcpy(frame[i] + 14 + 13, &random, 3);
			memcpy(frame[i] + 14 + 20, (char *)&random + 3, 2);
			frame[i][14 + 20] |= 0x80; /* never port 0 */
			memcpy(frame[i] + 14 + 20 + 4, &more, 4);
			if (bpf_prog_test_run_opts(h->program[PROGRAM_LB], &options))
				*error = -errno;
		}
	}
	for (size_t i = 0; i < n && i < 4; i++)
		free(frame[i]);
	return *error ? NULL : json_object();
}
