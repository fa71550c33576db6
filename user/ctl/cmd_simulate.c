/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl simulate: what tables do with load, and what changes move; no daemon, no root. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl.h"
#include "simulate_verb.h"

enum {
	OPTION_SEED = 256,
	OPTION_ZIPF,
	OPTION_BALANCE,
	OPTION_VNODES,
	OPTION_REPLICAS,
	OPTION_ZONES,
	OPTION_POOL,
	OPTION_COMPARE,
};

static const struct argp_option options[] = {
	{"algorithm", 'a', "NAME[,NAME...]", 0, "maglev (the default), minimal, rendezvous, ring, jump, modulo", 0},
	{"compare", OPTION_COMPARE, NULL, 0, "all algorithms side by side", 0},
	{"backends", 'n', "N", 0, "so many backends", 0},
	{"weights", 'w', "LIST|LO-HI", 0, "their weights: 1,2,4 repeated, or 1-100 at random (all 1)", 0},
	{"slots", 'm', "M", 0, "the table's size, a prime (65537)", 0},
	{"config", 'c', "FILE", 0, "backends, and the table's size and options, of a pool of this document", 0},
	{"pool", OPTION_POOL, "NAME", 0, "which pool of the document", 0},
	{"event", 'e', "EVENT[,EVENT...]", 0,
	 "what happens: add, remove, fail:K, double, halve, drain, flap, ramp:STEPS, roll, grow:N", 0},
	{"keys", 'k', "K", 0, "count K keys instead of slots", 0},
	{"zipf", OPTION_ZIPF, "EXPONENT", 0, "the keys' requests follow Zipf's law, one key is hot", 0},
	{"seed", OPTION_SEED, "S", 0, "of names, random weights, keys and who is struck (1)", 0},
	{"balance", OPTION_BALANCE, "B", 0, "rendezvous, ring: no share above B (1.05) times its quota", 0},
	{"vnodes", OPTION_VNODES, "V", 0, "ring: virtual nodes for each unit of weight (200)", 0},
	{"replicas", OPTION_REPLICAS, "K", 0, "the first K distinct backends of each slot", 0},
	{"zones", OPTION_ZONES, "Z", 0, "backends lie in Z zones, in turn; replicas prefer distinct ones", 0},
	{},
};

static error_t number32(const struct argp_state *state, const char *option, const char *arg, uint32_t least,
			uint32_t most, uint32_t *out)
{
	json_int_t value = 0;
	error_t err = ctl_number_option(state, option, arg, least, most, &value);

	if (!err)
		*out = (uint32_t)value;
	return err;
}

static error_t parse_number_option(int key, const char *arg, struct simulate_arguments *a,
				   const struct argp_state *state)
{
	json_int_t seed = 0;
	double balance = 0;
	error_t err;

	switch (key) {
	case 'n':
		a->has_backends = true;
		return ctl_number_option(state, "--backends", arg, 1, TABLE_MEMBERS_MAX, &a->backends);
	case 'm':
		return number32(state, "--slots", arg, 1, UINT32_MAX, &a->o.params.slots);
	case 'k':
		return number32(state, "--keys", arg, 1, SIMULATE_KEYS_MAX, &a->o.keys);
	case OPTION_SEED:
		err = ctl_number_option(state, "--seed", arg, 0, INT64_MAX, &seed);
		a->o.seed = (uint64_t)seed;
		return err;
	case OPTION_ZIPF:
		return ctl_decimal(state, "zipf", arg, 0.01, SIMULATE_ZIPF_MAX, &a->o.zipf);
	case OPTION_BALANCE:
		err = ctl_decimal(state, "balance", arg, 1, 100, &balance);
		a->o.params.balance_percent = (uint32_t)(balance * 100 + 0.5);
		return err;
	case OPTION_VNODES:
		return number32(state, "--vnodes", arg, 1, 100000, &a->o.params.vnodes);
	case OPTION_REPLICAS:
		return number32(state, "--replicas", arg, 1, 100, &a->o.replicas);
	case OPTION_ZONES:
		return number32(state, "--zones", arg, 1, TABLE_MEMBERS_MAX, &a->zones);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t check(const struct simulate_arguments *a, const struct argp_state *state)
{
	if (a->config && (a->has_backends || a->weights))
		return ctl_usage(state, "--config gives the backends: leave out --backends and --weights");
	if (!a->config && a->pool)
		return ctl_usage(state, "--pool is of a document: give --config too");
	if (!a->config && !a->has_backends)
		return ctl_usage(state, "--backends is missing");
	if (a->o.zipf > 0 && !a->o.keys)
		return ctl_usage(state, "--zipf is about keys: give --keys too");
	if (a->zones && !a->o.replicas)
		return ctl_usage(state, "--zones is about replicas: give --replicas too");
	if (a->compare && a->algorithms)
		return ctl_usage(state, "--compare takes all algorithms: leave out --algorithm");
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct simulate_arguments *a = state->input;

	switch (key) {
	case 'a':
		a->algorithms = arg;
		return 0;
	case 'e':
		a->events = arg;
		return 0;
	case 'w':
		a->weights = arg;
		return 0;
	case 'c':
		a->config = arg;
		return 0;
	case OPTION_POOL:
		a->pool = arg;
		return 0;
	case OPTION_COMPARE:
		a->compare = true;
		return 0;
	case ARGP_KEY_ARG:
		return ctl_usage(state, "\"%s\" is one word too many", arg);
	case ARGP_KEY_END:
		return check(a, state);
	default:
		return parse_number_option(key, arg, a, state);
	}
}

/* ---- runs ---- */

static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One row.  An algorithm that refuses has its row too; *refused counts them. */
static int run(const struct simulate_arguments *a, const char *event, json_t *rows, size_t *refused,
	       struct report *report)
{
	struct simulate_options o = a->o;
	struct simulate_result result;
	struct report own = {};
	int err = event ? simulate_event_parse(event, &o.event, report) : 0;

	if (err)
		return err;
	err = simulate(&o, &result, &own);
	if (err && own.errors) {
		json_array_append_new(rows, simulate_refused(&o, event, &own));
		if (!(*refused)++ && report)
			report_move(report, &own);
	} else if (!err) {
		json_array_append_new(rows, simulate_row(&o, event, &result, &own));
	}
	report_free(&own);
	return err == -ENOMEM ? err : 0;
}

/* Each of a comma-separated list; without a list one row in which nothing happens. */
static int each_event(struct simulate_arguments *a, json_t *rows, size_t *refused, struct report *report)
{
	char *list, *rest, *word;
	int err = 0;

	if (!a->events)
		return run(a, NULL, rows, refused, report);
	list = rest = strdup(a->events);
	if (!list)
		return -ENOMEM;
	while (!err && (word = strsep(&rest, ",")))
		err = run(a, word, rows, refused, report);
	free(list);
	return err;
}

static int each_algorithm(struct simulate_arguments *a, json_t *rows, size_t *refused, struct report *report)
{
	char *list, *rest, *word;
	int err = 0;

	for (size_t i = 0; a->compare && !err && i < table_n_algorithms; i++) {
		a->o.algorithm = &table_algorithms[i];
		err = each_event(a, rows, refused, report);
	}
	if (a->compare)
		return err;
	list = rest = strdup(a->algorithms ? a->algorithms : "maglev");
	if (!list)
		return -ENOMEM;
	while (!err && (word = strsep(&rest, ","))) {
		a->o.algorithm = table_algorithm(word);
		if (!a->o.algorithm)
			err = report_error(
				report, -EINVAL,
				"algorithm \"%s\" is unknown: use maglev, minimal, rendezvous, ring, jump or modulo",
				word);
		else
			err = each_event(a, rows, refused, report);
	}
	free(list);
	return err;
}

/* What is wrong with a document has places in it. */
static int fail(const struct report *report)
{
	char *text;

	if (ctl_options.json || !report->source)
		return ctl_fail_report(CTL_INVALID, "Invalid", report);
	text = report_text(report);
	fputs(text ? text : "error: out of memory\n", stderr);
	free(text);
	return CTL_INVALID;
}

static int simulate_all(struct simulate_arguments *a)
{
	struct report report = {};
	struct simulate_subject subject = {};
	json_t *rows = json_array();
	size_t refused = 0;
	int code, err = simulate_subject(a, &subject, &report);

	if (!err)
		err = each_algorithm(a, rows, &refused, &report);
	/* All refused: that is the answer.  Some: it is in their rows. */
	if (err || refused == json_array_size(rows)) {
		if (!report.errors)
			report_error(&report, err, "%s", strerror(-err));
		code = fail(&report);
		json_decref(rows);
	} else {
		code = simulate_print(&a->o, rows);
	}
	simulate_subject_free(&subject);
	report_free(&report);
	return code;
}

int cmd_simulate(int argc, char **argv)
{
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Shows how evenly tables of an algorithm spread slots or keys over backends, and how many move "
		       "when something happens, beside the fewest that must. Needs no daemon and no root. With "
		       "several algorithms or events, all combinations. docs/tables.md explains the figures.",
		.children = children,
	};
	struct simulate_arguments arguments = {.o = {.seed = 1, .clock = cpu_time}};
	int code = ctl_parse(&argp, argc, argv, NULL, &arguments);

	return code ? code : simulate_all(&arguments);
}
