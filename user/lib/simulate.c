/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "simulate_internal.h"
#include "table/internal.h"

#define FIRST_BUILDS 5
#define FIRST_BUILDS_MS 1000 /* no more of them when those so far took this long */
#define TIMES_MAX 64

struct simulation {
	const struct simulate_options *o;
	struct course course;
	struct traffic traffic;
	struct table_params params;
	uint16_t *first, *before, *after;
	double times[TIMES_MAX]; /* milliseconds of the first so many builds */
	size_t n_times;
	size_t peak;
	double *had, *has; /* per member, while movement is counted */
};

static struct table table_of(const struct simulation *s, const uint16_t *owner)
{
	return (struct table){s->course.members, s->course.n, s->params.slots, owner};
}

static int build(struct simulation *s, const uint16_t *previous, uint16_t *owner, struct report *report)
{
	struct table table = table_of(s, previous);
	uint64_t start;
	size_t peak;
	int err;

	(void)table_memory_peak();
	start = s->o->clock ? s->o->clock() : 0;
	err = s->o->algorithm->build(s->course.members, s->course.n, &s->params, previous ? &table : NULL, owner,
				     report);
	if (s->o->clock && s->n_times < TIMES_MAX)
		s->times[s->n_times++] = (double)(s->o->clock() - start) / 1e6;
	peak = table_memory_peak() + s->params.slots * sizeof(*owner);
	if (peak > s->peak)
		s->peak = peak;
	return err;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return n ? (values[(n - 1) / 2] + values[n / 2]) / 2 : 0;
}

/* Every member's share has an index, so what both tables have in common with these shares is a sum of minima. */
static void count_movement(struct simulation *s, struct simulate_result *out)
{
	double moved = 0, all = 0, kept = 0;

	memset(s->had, 0, s->course.n * sizeof(*s->had));
	memset(s->has, 0, s->course.n * sizeof(*s->has));
	for (uint32_t slot = 0; slot < s->params.slots; slot++) {
		double each = s->traffic.keys ? s->traffic.keys[slot] : 1;

		s->had[s->before[slot]] += each;
		s->has[s->after[slot]] += each;
		all += each;
		if (s->before[slot] != s->after[slot])
			moved += each;
	}
	for (size_t i = 0; i < s->course.n; i++)
		kept += s->had[i] < s->has[i] ? s->had[i] : s->has[i];
	out->moved += moved / all;
	out->minimum += (all - kept) / all;
	out->excess = out->moved - out->minimum;
}

static int run_event(struct simulation *s, struct simulate_result *out, struct report *report)
{
	struct report first = {};
	int err = 0;

	out->steps = s->course.steps;
	memcpy(s->before, s->first, s->params.slots * sizeof(*s->before));
	for (uint32_t step = 0; !err && step < s->course.steps; step++) {
		uint16_t *swap = s->before;

		course_step(&s->course, s->o->event, step);
		err = build(s, s->before, s->after, &first);
		if (err) {
			report_move(report, &first);
			break;
		}
		report_free(&first);
		count_movement(s, out);
		s->before = s->after;
		s->after = swap;
	}
	out->restored = s->course.steps && !memcmp(s->before, s->first, s->params.slots * sizeof(*s->first));
	return err;
}

static int measure_zipf(struct simulation *s, struct simulate_result *out)
{
	const struct traffic *t = &s->traffic;
	const struct course *c = &s->course;
	uint32_t hot = c->members[s->first[t->hot_slot]].weight;
	double weights = 0;
	int err = traffic_load(c, s->first, t->slots, t->requests, &out->by_request);

	if (!err)
		err = traffic_load(c, s->first, t->slots, t->bytes, &out->by_byte);
	for (size_t i = 0; i < c->n; i++)
		weights += c->members[i].weight;
	out->hot_share = t->hot_requests / t->all_requests;
	out->hot_over_mean = out->hot_share * weights / hot;
	return err;
}

static int measure_replicas(struct simulation *s, struct simulate_result *out)
{
	struct table table = table_of(s, s->first);
	struct table_preference *preference;
	uint32_t under = 0, k = s->o->replicas;
	uint16_t *list = calloc(k, sizeof(*list));
	int err = list ? table_preference_open(&table, &preference) : -ENOMEM;

	if (err)
		goto out;
	out->zones_least = k;
	memset(s->has, 0, s->course.n * sizeof(*s->has));
	for (uint32_t slot = 0; slot < s->params.slots; slot++) {
		struct table_replicas r = table_preference_list(preference, slot, k, list);

		under += r.under_replicated;
		if (r.zones < out->zones_least)
			out->zones_least = (uint32_t)r.zones;
		for (size_t i = 0; i < r.count; i++)
			s->has[list[i]]++;
	}
	table_preference_close(preference);
	out->under_replicated = (double)under / s->params.slots;
	traffic_ratios(&s->course, s->has, &out->by_replica);
out:
	free(list);
	return err;
}

/* More than once, from the table itself where the algorithm looks at the previous one: builds are timed. */
static int build_first(struct simulation *s, struct report *report)
{
	int err = build(s, NULL, s->first, report);
	double spent = s->times[0];

	for (int i = 1; !err && s->o->clock && i < FIRST_BUILDS && spent < FIRST_BUILDS_MS; i++) {
		err = build(s, s->first, s->after, NULL);
		spent += s->times[i];
	}
	return err;
}

static int allocate(struct simulation *s)
{
	size_t size = s->params.slots * sizeof(*s->first);

	s->first = malloc(size);
	s->before = malloc(size);
	s->after = malloc(size);
	s->had = calloc(s->course.n + 1, sizeof(*s->had));
	s->has = calloc(s->course.n + 1, sizeof(*s->has));
	return s->first && s->before && s->after && s->had && s->has ? 0 : -ENOMEM;
}

static int run(struct simulation *s, struct simulate_result *out, struct report *report)
{
	int err = allocate(s);

	if (!err)
		err = build_first(s, report);
	if (!err)
		err = traffic_make(&s->traffic, s->o);
	if (!err)
		err = traffic_load(&s->course, s->first, s->params.slots, s->traffic.keys, &out->load);
	if (!err && s->o->zipf > 0 && s->o->keys)
		err = measure_zipf(s, out);
	if (!err && s->o->replicas)
		err = measure_replicas(s, out);
	if (!err)
		err = run_event(s, out, report);
	out->build_ms = median(s->times, s->n_times);
	out->peak_bytes = s->peak;
	return err;
}

int simulate(const struct simulate_options *options, struct simulate_result *out, struct report *report)
{
	struct simulation s = {.o = options, .params = options->params};
	struct simulate_result result = {};
	uint32_t vnodes = options->params.vnodes ? options->params.vnodes : TABLE_VNODES_DEFAULT;
	int err = table_check_size(options->params.slots, report);

	if (!err)
		err = course_start(&s.course, options, report);
	if (err)
		return err;
	/* As many tokens as before weights were scaled. */
	s.params.vnodes = vnodes / s.course.scale ? vnodes / s.course.scale : 1;
	err = run(&s, &result, report);
	traffic_free(&s.traffic);
	course_free(&s.course);
	free(s.first);
	free(s.before);
	free(s.after);
	free(s.had);
	free(s.has);
	if (!err)
		*out = result;
	return err;
}
