/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl stats: what was counted, and the rates of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define OPTION_WATCH 'w'
#define INTERVAL_DEFAULT 1.0
#define INTERVAL_MIN 0.1
#define INTERVAL_MAX 3600.0

struct stats {
	struct ctl_words words;
	bool watch;
	double interval; /* seconds */
};

/* ---- a sample: {"time", "classes": [], "services": [], "backends": []} ---- */

static json_int_t integer(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

/* Packets by class, in the order in which the classes come. */
static json_t *classes(const json_t *counters)
{
	json_t *rows = json_array(), *index = json_object();
	const json_t *counter;
	size_t i;

	json_array_foreach (counters, i, counter) {
		const char *class = json_string_value(json_object_get(counter, "class"));
		json_t *row = json_object_get(index, class ? class : "");

		if (!row) {
			row = json_pack("{s:s, s:i}", "class", class ? class : "", "packets", 0);
			json_array_append_new(rows, row);
			json_object_set(index, class ? class : "", row);
		}
		json_object_set_new(row, "packets",
				    json_integer(integer(row, "packets") + integer(counter, "packets")));
	}
	json_decref(index);
	return rows;
}

/* The rows with these members alone. */
static json_t *pick(const json_t *rows, const char *const *keys)
{
	json_t *picked = json_array();
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		json_t *one = json_object();

		for (const char *const *key = keys; *key; key++)
			json_object_set(one, *key, json_object_get(row, *key));
		json_array_append_new(picked, one);
	}
	return picked;
}

static int take(json_t **sample)
{
	static const char *const service_keys[] = {"name", "packets", "bytes", NULL};
	static const char *const backend_keys[] = {"pool", "name", "id", "generation", "packets", "bytes", NULL};
	json_t *counters = NULL, *services = NULL, *backends = NULL;
	const json_t *counter_rows, *service_rows, *backend_rows;
	int code = ctl_rows("Counters", NULL, "counters", &counters, &counter_rows);

	if (!code)
		code = ctl_rows("ServiceList", NULL, "services", &services, &service_rows);
	if (!code)
		code = ctl_rows("BackendList", NULL, "backends", &backends, &backend_rows);
	if (!code)
		*sample = json_pack("{s:I, s:o, s:o, s:o}", "time", (json_int_t)time(NULL), "classes",
				    classes(counter_rows), "services", pick(service_rows, service_keys), "backends",
				    pick(backend_rows, backend_keys));
	json_decref(counters);
	json_decref(services);
	json_decref(backends);
	return code;
}

/* ---- rates ---- */

/* What makes a row the same as one before: names, and for a backend its id, which may be another's by now. */
static char *identity(const json_t *row)
{
	static const char *const keys[] = {"class", "pool", "name"};
	size_t size;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < LENGTH(keys); i++) {
		const char *value = json_string_value(json_object_get(row, keys[i]));

		fprintf(out, "%s/", value ? value : "");
	}
	fprintf(out, "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT, integer(row, "id"), integer(row, "generation"));
	fclose(out);
	return text;
}

static json_t *index_rows(const json_t *rows)
{
	json_t *index = json_object(), *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		char *key = identity(row);

		if (key)
			json_object_set(index, key, row);
		free(key);
	}
	return index;
}

/* Null where there is no earlier row, or the counter began anew. */
static void add_rate(json_t *row, const json_t *before, const char *key, const char *rate, double seconds)
{
	json_int_t now = integer(row, key), then = integer(before, key);
	bool known = before && now >= then && seconds > 0;

	if (json_object_get(row, key))
		json_object_set_new(row, rate, known ? json_real((double)(now - then) / seconds) : json_null());
}

static void add_rates(json_t *sample, const json_t *before, double seconds)
{
	static const char *const lists[] = {"classes", "services", "backends"};

	for (size_t i = 0; i < LENGTH(lists); i++) {
		json_t *index = index_rows(json_object_get(before, lists[i])), *row;
		size_t j;

		json_array_foreach (json_object_get(sample, lists[i]), j, row) {
			char *key = identity(row);
			const json_t *old = key ? json_object_get(index, key) : NULL;

			add_rate(row, old, "packets", "packets_per_second", seconds);
			add_rate(row, old, "bytes", "bytes_per_second", seconds);
			free(key);
		}
		json_decref(index);
	}
	json_object_set_new(sample, "seconds", json_real(seconds));
}

/* ---- for people ---- */

/* Three digits and a prefix: 1.23M.  Negative: "-". */
static char *scaled(double value)
{
	static const char prefixes[] = " kMGTPE";
	size_t i = 0;
	char *text;

	if (value < 0)
		return strdup("-");
	/* 999.5 would be printed as 1000. */
	for (; value >= 999.5 && prefixes[i + 1]; i++)
		value /= 1000;
	if (asprintf(&text, "%.*f%.*s", i && value < 99.95 ? value < 9.995 ? 2 : 1 : 0, value, i ? 1 : 0,
		     &prefixes[i]) < 0)
		return NULL;
	return text;
}

static char *rate(const json_t *row, const char *key, double factor)
{
	const json_t *value = json_object_get(row, key);

	return scaled(json_is_number(value) ? json_number_value(value) * factor : -1);
}

static char *packet_rate(const json_t *row)
{
	return rate(row, "packets_per_second", 1);
}

static char *bit_rate(const json_t *row)
{
	return rate(row, "bytes_per_second", 8);
}

static char *path(const json_t *row)
{
	const char *pool = json_string_value(json_object_get(row, "pool"));
	const char *name = json_string_value(json_object_get(row, "name"));
	char *text;

	return asprintf(&text, "%s/%s", pool ? pool : "-", name ? name : "-") < 0 ? NULL : text;
}

#define PACKETS                                                                                                        \
	{                                                                                                              \
		"PACKETS", "packets", CTL_NUMBER, NULL                                                                 \
	}
#define BYTES                                                                                                          \
	{                                                                                                              \
		"BYTES", "bytes", CTL_NUMBER, NULL                                                                     \
	}
#define PACKET_RATE                                                                                                    \
	{                                                                                                              \
		"PACKETS/S", NULL, CTL_NUMBER, packet_rate                                                             \
	}
#define BIT_RATE                                                                                                       \
	{                                                                                                              \
		"BIT/S", NULL, CTL_NUMBER, bit_rate                                                                    \
	}

static const struct ctl_column class_columns[] = {{"CLASS", "class", CTL_TEXT, NULL}, PACKETS, PACKET_RATE};
static const struct ctl_column service_columns[] = {
	{"SERVICE", "name", CTL_TEXT, NULL}, PACKETS, BYTES, PACKET_RATE, BIT_RATE};
static const struct ctl_column backend_columns[] = {
	{"BACKEND", NULL, CTL_TEXT, path}, PACKETS, BYTES, PACKET_RATE, BIT_RATE};

/* The last columns of each table are rates, which only a second sample gives. */
static int print_for_people(const json_t *sample, bool rates)
{
	static const struct {
		const char *rows;
		const struct ctl_column *columns;
		size_t n, n_rates;
	} tables[] = {
		{"classes", class_columns, LENGTH(class_columns), 1},
		{"services", service_columns, LENGTH(service_columns), 2},
		{"backends", backend_columns, LENGTH(backend_columns), 2},
	};
	int code = CTL_OK;

	for (size_t i = 0; !code && i < LENGTH(tables); i++) {
		const json_t *rows = json_object_get(sample, tables[i].rows);

		if (!json_array_size(rows))
			continue;
		if (i)
			putchar('\n');
		code = ctl_print_table(rows, tables[i].columns, tables[i].n - (rates ? 0 : tables[i].n_rates));
	}
	return code;
}

static int print_watched(const json_t *sample)
{
	char clock[32] = "";
	time_t when = (time_t)integer(sample, "time");
	struct tm tm;
	int code;

	if (ctl_options.json) {
		json_dumpf(sample, stdout, JSON_COMPACT);
		code = putchar('\n') == EOF;
	} else {
		/* On a terminal: home, and clear what is below. */
		fputs(isatty(STDOUT_FILENO) ? "\033[H\033[J" : "", stdout);
		if (localtime_r(&when, &tm))
			strftime(clock, sizeof(clock), "%F %T", &tm);
		printf("%s\n\n", clock);
		code = print_for_people(sample, true);
		putchar('\n');
	}
	fflush(stdout);
	return code;
}

/* ---- the verb ---- */

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void pause_for(double seconds)
{
	time_t whole = (time_t)seconds;
	struct timespec left = {whole, (long)((seconds - (double)whole) * 1e9)};

	if (seconds > 0)
		nanosleep(&left, NULL);
}

/* Until the daemon or the reader goes away, or a signal comes. */
static int watch(double interval)
{
	double taken = now(), next = taken;
	json_t *before = NULL, *sample;
	int code = take(&before);

	while (!code) {
		double earlier = taken;

		next += interval;
		pause_for(next - now());
		taken = now();
		if (taken > next + interval)
			next = taken;
		code = take(&sample);
		if (code)
			break;
		add_rates(sample, before, taken - earlier);
		json_decref(before);
		before = sample;
		code = print_watched(sample);
		if (ferror(stdout))
			break;
	}
	json_decref(before);
	return code;
}

static int once(void)
{
	json_t *sample;
	int code = take(&sample);

	if (code)
		return code;
	if (ctl_options.json)
		return ctl_print_json(sample);
	code = print_for_people(sample, false);
	json_decref(sample);
	return code;
}

static error_t set_interval(struct stats *stats, const char *text, const struct argp_state *state)
{
	char *end;

	stats->interval = strtod(text, &end);
	if (end == text || *end || !(stats->interval >= INTERVAL_MIN && stats->interval <= INTERVAL_MAX))
		return ctl_usage(state, "--watch %s: give seconds, from %g to %g", text, INTERVAL_MIN, INTERVAL_MAX);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct stats *stats = state->input;

	switch (key) {
	case OPTION_WATCH:
		stats->watch = true;
		return arg ? set_interval(stats, arg, state) : 0;
	case ARGP_KEY_ARG:
		/* getopt leaves "--watch 5" in two words. */
		if (stats->watch && state->arg_num == 0)
			return set_interval(stats, arg, state);
		return ctl_usage(state, "\"%s\" is one word too many", arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_stats(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"watch", OPTION_WATCH, "SECONDS", OPTION_ARG_OPTIONAL, "rates, again and again (every second)", 0},
		{},
	};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Shows packets and bytes by class, service and backend, since the counters began; with --watch "
		       "also "
		       "the rates since the sample before. With -j each sample is one line.",
		.children = children,
	};
	struct stats stats = {.interval = INTERVAL_DEFAULT};
	int code = ctl_parse(&argp, argc, argv, NULL, &stats);

	if (code)
		return code;
	return stats.watch ? watch(stats.interval) : once();
}
