/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The backends of a simulation, and what an event does to them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulate_internal.h"

static const struct {
	const char *name;
	enum simulate_what what;
	uint32_t least, most; /* of the number; 0: takes none */
} events[] = {
	{"add", SIMULATE_ADD, 0, 0},
	{"remove", SIMULATE_REMOVE, 0, 0},
	{"fail", SIMULATE_FAIL, 1, TABLE_MEMBERS_MAX},
	{"double", SIMULATE_DOUBLE, 0, 0},
	{"halve", SIMULATE_HALVE, 0, 0},
	{"drain", SIMULATE_DRAIN, 0, 0},
	{"flap", SIMULATE_FLAP, 0, 0},
	{"ramp", SIMULATE_RAMP, 1, SIMULATE_STEPS_MAX},
	{"roll", SIMULATE_ROLL, 0, 0},
	{"grow", SIMULATE_GROW, 1, TABLE_MEMBERS_MAX},
};

static int parse_number(const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value < least || value > most)
		return -EINVAL;
	*out = (uint32_t)value;
	return 0;
}

int simulate_event_parse(const char *text, struct simulate_event *out, struct report *report)
{
	size_t length = strcspn(text, ":");
	uint32_t number = 0;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (strlen(events[i].name) != length || strncmp(events[i].name, text, length) != 0)
			continue;
		if (!events[i].most && text[length])
			return report_error(report, -EINVAL, "event \"%s\": %s takes no number", text, events[i].name);
		if (events[i].most &&
		    (!text[length] || parse_number(text + length + 1, events[i].least, events[i].most, &number)))
			return report_error(report, -EINVAL, "event \"%s\": write %s:NUMBER, a number from %u to %u",
					    text, events[i].name, events[i].least, events[i].most);
		*out = (struct simulate_event){events[i].what, number};
		return 0;
	}
	return report_error(report, -EINVAL,
			    "event \"%s\" is unknown: use add, remove, fail:K, double, halve, drain, flap, ramp:STEPS, "
			    "roll or grow:N",
			    text);
}

/* Weights of the list one after another, from the start again after the last. */
static int listed_weights(const char *list, struct table_member *members, size_t n)
{
	const char *at = list;

	for (size_t i = 0; i < n; i++) {
		char item[12] = "";
		size_t length = strcspn(at, ",");

		if (length >= sizeof(item))
			return -EINVAL;
		memcpy(item, at, length);
		if (parse_number(item, 0, TABLE_WEIGHT_MAX, &members[i].weight))
			return -EINVAL;
		at = at[length] ? at + length + 1 : list;
	}
	return 0;
}

static int random_weights(const char *range, const char *dash, struct table_member *members, size_t n, uint64_t seed)
{
	char low_text[12] = "";
	uint32_t low, high;

	if ((size_t)(dash - range) >= sizeof(low_text))
		return -EINVAL;
	memcpy(low_text, range, (size_t)(dash - range));
	if (parse_number(low_text, 0, TABLE_WEIGHT_MAX, &low) || parse_number(dash + 1, low, TABLE_WEIGHT_MAX, &high))
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		members[i].weight = low + simulate_below(&seed, high - low + 1);
	return 0;
}

void simulate_zones(struct table_member *members, size_t n, uint32_t zones)
{
	for (size_t i = 0; zones && i < n; i++)
		members[i].zone = members[i % zones].name;
}

int simulate_backends(size_t n, const char *weights, uint32_t zones, uint64_t seed, struct simulate_backends *out,
		      struct report *report)
{
	const char *dash = weights ? strchr(weights, '-') : NULL;
	struct simulate_backends made = {calloc(n + 1, sizeof(*made.members)), n, calloc(n + 1, sizeof(*made.names))};
	int err = 0;

	if (!made.members || !made.names) {
		simulate_backends_free(&made);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		snprintf(made.names[i], sizeof(made.names[i]), "s%" PRIu64 "-%05zu", seed, i + 1);
		made.members[i] = (struct table_member){.name = made.names[i], .weight = 1};
	}
	if (dash)
		err = random_weights(weights, dash, made.members, n, seed);
	else if (weights)
		err = listed_weights(weights, made.members, n);
	if (err) {
		simulate_backends_free(&made);
		return report_error(report, err, "weights \"%s\": write numbers from 0 to %u, 1,2,4 or 1-100", weights,
				    TABLE_WEIGHT_MAX);
	}
	simulate_zones(made.members, n, zones);
	*out = made;
	return 0;
}

void simulate_backends_free(struct simulate_backends *backends)
{
	free(backends->members);
	free(backends->names);
	*backends = (struct simulate_backends){};
}

/* How many join. */
static size_t newcomers(const struct simulate_options *o)
{
	switch (o->event.what) {
	case SIMULATE_ADD:
	case SIMULATE_RAMP:
		return 1;
	case SIMULATE_GROW:
		return o->event.number > o->n ? o->event.number - o->n : 0;
	default:
		return 0;
	}
}

static int check(const struct course *c, const struct simulate_options *o, struct report *report)
{
	size_t struck = o->event.what == SIMULATE_FAIL ? o->event.number : 1;

	if (!c->n_turns)
		return report_error(report, -EINVAL, "no backend has a positive weight");
	if (c->n > TABLE_MEMBERS_MAX)
		return report_error(report, -E2BIG, "%zu backends after the event: the limit is %u", c->n,
				    TABLE_MEMBERS_MAX);
	switch (o->event.what) {
	case SIMULATE_REMOVE:
	case SIMULATE_FAIL:
	case SIMULATE_DRAIN:
	case SIMULATE_FLAP:
	case SIMULATE_ROLL:
		if (struck >= c->n_turns)
			return report_error(report, -EINVAL,
					    "%zu of %zu backends with a positive weight go: the event leaves none",
					    struck, c->n_turns);
		return 0;
	case SIMULATE_GROW:
		if (o->event.number <= o->n)
			return report_error(report, -EINVAL, "grow:%u: there are %zu backends already", o->event.number,
					    o->n);
		return 0;
	default:
		return 0;
	}
}

static uint32_t count_steps(const struct course *c, struct simulate_event event)
{
	switch (event.what) {
	case SIMULATE_NOTHING:
		return 0;
	case SIMULATE_FLAP:
		return 2;
	case SIMULATE_RAMP:
		return event.number;
	case SIMULATE_ROLL:
		return (uint32_t)(2 * c->n_turns);
	default:
		return 1;
	}
}

/* So that a ramp's steps, or half a weight, are whole numbers. */
static int scale_weights(struct course *c, struct simulate_event event, struct report *report)
{
	uint64_t doubled = event.what == SIMULATE_DOUBLE ? 2 : 1;

	c->scale = event.what == SIMULATE_RAMP ? event.number : 1;
	if (event.what == SIMULATE_HALVE && c->weight[c->turn[0]] % 2)
		c->scale = 2;
	for (size_t i = 0; i < c->n; i++) {
		uint64_t weight = (uint64_t)c->weight[i] * c->scale;

		if (weight * (i == c->turn[0] ? doubled : 1) > TABLE_WEIGHT_MAX)
			return report_error(report, -EINVAL,
					    "the event needs weights up to %" PRIu64
					    ": the limit is %u, use smaller ones",
					    weight * (i == c->turn[0] ? doubled : 1), TABLE_WEIGHT_MAX);
		c->weight[i] = (uint32_t)weight;
	}
	return 0;
}

/* Newcomers come last in order of names, as jump has it, and are like random ones of those that are there. */
static void fill(struct course *c, const struct simulate_options *o)
{
	uint64_t random = o->seed ^ 0x636f75727365ull;

	for (size_t i = 0; i < o->n; i++) {
		c->members[i] = o->members[i];
		c->weight[i] = o->members[i].weight;
		if (c->weight[i])
			c->turn[c->n_turns++] = (uint32_t)i;
	}
	for (size_t i = c->n_turns; i > 1; i--) {
		size_t k = simulate_below(&random, (uint32_t)i);
		uint32_t swap = c->turn[i - 1];

		c->turn[i - 1] = c->turn[k];
		c->turn[k] = swap;
	}
	for (size_t i = o->n; i < c->n && c->n_turns; i++) {
		uint32_t like = c->turn[(i - o->n) % c->n_turns];

		snprintf(c->names[i - o->n], sizeof(c->names[0]), "~s%" PRIu64 "-%05zu", o->seed, i + 1);
		c->members[i] = (struct table_member){.name = c->names[i - o->n], .zone = o->members[like].zone};
		c->weight[i] = o->members[like].weight;
	}
}

int course_start(struct course *c, const struct simulate_options *o, struct report *report)
{
	int err;

	*c = (struct course){.n = o->n + newcomers(o), .n_start = o->n};
	c->members = calloc(c->n + 1, sizeof(*c->members));
	c->weight = calloc(c->n + 1, sizeof(*c->weight));
	c->turn = calloc(c->n + 1, sizeof(*c->turn));
	c->names = calloc(c->n - o->n + 1, sizeof(*c->names));
	err = c->members && c->weight && c->turn && c->names ? 0 : -ENOMEM;
	if (!err) {
		fill(c, o);
		err = check(c, o, report);
	}
	if (!err)
		err = scale_weights(c, o->event, report);
	if (err) {
		course_free(c);
		return err;
	}
	for (size_t i = 0; i < o->n; i++)
		c->members[i].weight = c->weight[i];
	c->steps = count_steps(c, o->event);
	return 0;
}

void course_step(struct course *c, struct simulate_event event, uint32_t step)
{
	uint32_t one = c->turn[event.what == SIMULATE_ROLL ? step / 2 : 0];
	struct table_member *struck = &c->members[one];

	switch (event.what) {
	case SIMULATE_ADD:
	case SIMULATE_GROW:
		for (size_t i = c->n_start; i < c->n; i++)
			c->members[i].weight = c->weight[i];
		break;
	case SIMULATE_RAMP:
		c->members[c->n_start].weight = c->weight[c->n_start] / c->scale * (step + 1);
		break;
	case SIMULATE_FAIL:
		for (uint32_t i = 0; i < event.number; i++)
			c->members[c->turn[i]].weight = 0;
		break;
	case SIMULATE_DOUBLE:
		struck->weight *= 2;
		break;
	case SIMULATE_HALVE:
		struck->weight /= 2;
		break;
	case SIMULATE_REMOVE:
	case SIMULATE_DRAIN:
	case SIMULATE_FLAP:
	case SIMULATE_ROLL:
		struck->weight = step % 2 ? c->weight[one] : 0;
		break;
	case SIMULATE_NOTHING:
		break;
	}
}

void course_free(struct course *c)
{
	free(c->members);
	free(c->weight);
	free(c->turn);
	free(c->names);
	*c = (struct course){};
}
