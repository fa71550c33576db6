/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "ctl.h"
#include "simulate_verb.h"

static json_t *head(const struct simulate_options *o, const char *event)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:s?}", "algorithm", o->algorithm->name, "backends",
			 (json_int_t)o->n, "slots", (json_int_t)o->params.slots, "keys", (json_int_t)o->keys, "seed",
			 (json_int_t)o->seed, "event", event);
}

static json_t *load(const struct simulate_load *l)
{
	return json_pack("{s:f, s:f, s:f}", "max_over_mean", l->max_over_mean, "min_over_mean", l->min_over_mean, "cv",
			 l->cv);
}

json_t *simulate_row(const struct simulate_options *o, const char *event, const struct simulate_result *r,
		     const struct report *report)
{
	json_t *row = head(o, event), *measured = load(&r->load);
	json_t *change = json_pack("{s:f, s:f, s:f, s:I, s:b, s:f, s:I}", "moved", r->moved, "minimum", r->minimum,
				   "excess", r->excess, "steps", (json_int_t)r->steps, "restored", r->restored,
				   "build_ms", r->build_ms, "peak_bytes", (json_int_t)r->peak_bytes);

	json_object_update(row, measured);
	json_object_update(row, change);
	json_decref(measured);
	json_decref(change);
	if (o->keys && o->zipf > 0) {
		json_object_set_new(row, "by_key", load(&r->load));
		json_object_set_new(row, "by_request", load(&r->by_request));
		json_object_set_new(row, "by_byte", load(&r->by_byte));
		json_object_set_new(row, "hot_share", json_real(r->hot_share));
		json_object_set_new(row, "hot_over_mean", json_real(r->hot_over_mean));
	}
	if (o->replicas) {
		json_object_set_new(row, "replicas", json_integer(o->replicas));
		json_object_set_new(row, "under_replicated", json_real(r->under_replicated));
		json_object_set_new(row, "zones_least", json_integer(r->zones_least));
		json_object_set_new(row, "by_replica", load(&r->by_replica));
	}
	json_object_set_new(row, "warnings", control_entries(report));
	return row;
}

json_t *simulate_refused(const struct simulate_options *o, const char *event, const struct report *report)
{
	json_t *row = head(o, event);
	const char *text = "out of memory";

	for (size_t i = report->count; i--;)
		if (report->entries[i].level == REPORT_ERROR)
			text = report->entries[i].text;
	json_object_set_new(row, "error", control_text(text));
	return row;
}

/* ---- for people ---- */

static char *percent(const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);
	char *text = NULL;

	if (!value || json_is_null(json_object_get(row, "event")))
		return strdup("-");
	return asprintf(&text, "%.3f%%", 100 * json_number_value(value)) < 0 ? NULL : text;
}

static char *moved(const json_t *row)
{
	return percent(row, "moved");
}

static char *minimum(const json_t *row)
{
	return percent(row, "minimum");
}

static char *excess(const json_t *row)
{
	return percent(row, "excess");
}

static char *decimals(const json_t *value, const char *format)
{
	char *text = NULL;

	if (!value)
		return strdup("-");
	return asprintf(&text, format, json_number_value(value)) < 0 ? NULL : text;
}

static char *most(const json_t *row)
{
	return decimals(json_object_get(row, "max_over_mean"), "%.4f");
}

static char *least(const json_t *row)
{
	return decimals(json_object_get(row, "min_over_mean"), "%.4f");
}

static char *variation(const json_t *row)
{
	return decimals(json_object_get(row, "cv"), "%.4f");
}

static char *build_ms(const json_t *row)
{
	return decimals(json_object_get(row, "build_ms"), "%.3f");
}

static char *kib(const json_t *row)
{
	const json_t *value = json_object_get(row, "peak_bytes");
	char *text = NULL;

	if (!value)
		return strdup("-");
	return asprintf(&text, "%.1f", json_number_value(value) / 1024) < 0 ? NULL : text;
}

static void print_loads(const json_t *rows)
{
	static const struct {
		const char *key, *title;
	} loads[] = {{"by_key", "by key"},
		     {"by_request", "by request"},
		     {"by_byte", "by byte"},
		     {"by_replica", "by replica"}};
	static const struct ctl_column columns[] = {
		{"ALGORITHM", "algorithm", CTL_TEXT, NULL}, {"EVENT", "event", CTL_TEXT, NULL},
		{"LOAD", "load", CTL_TEXT, NULL},	    {"MAX/MEAN", NULL, CTL_NUMBER, most},
		{"MIN/MEAN", NULL, CTL_NUMBER, least},	    {"CV", NULL, CTL_NUMBER, variation},
	};
	json_t *table = json_array();
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		for (size_t k = 0; k < sizeof(loads) / sizeof(loads[0]); k++) {
			json_t *line = json_copy(json_object_get(row, loads[k].key));

			if (!line)
				continue;
			json_object_set(line, "algorithm", json_object_get(row, "algorithm"));
			json_object_set(line, "event", json_object_get(row, "event"));
			json_object_set_new(line, "load", json_string(loads[k].title));
			json_array_append_new(table, line);
		}
	}
	if (json_array_size(table)) {
		putchar('\n');
		ctl_print_table(table, columns, sizeof(columns) / sizeof(columns[0]));
	}
	json_decref(table);
}

static void print_hot_key(const json_t *row)
{
	const json_t *share = json_object_get(row, "hot_share");

	if (share)
		printf("\nNo table splits one key: the hottest has %.2f%% of the requests, so its backend's load is at "
		       "least %.2f of the mean.\n",
		       100 * json_number_value(share), json_number_value(json_object_get(row, "hot_over_mean")));
}

static void print_replicas(const json_t *row)
{
	const json_t *replicas = json_object_get(row, "replicas");
	double under = json_number_value(json_object_get(row, "under_replicated"));

	if (!replicas)
		return;
	if (under > 0)
		printf("\nunder-replicated: %.2f%% of the slots have fewer than %" JSON_INTEGER_FORMAT
		       " distinct backends in distinct zones; the fewest zones of a slot are %" JSON_INTEGER_FORMAT
		       ".\n",
		       100 * under, json_integer_value(replicas),
		       json_integer_value(json_object_get(row, "zones_least")));
	else
		printf("\nEvery slot has %" JSON_INTEGER_FORMAT " distinct backends in distinct zones.\n",
		       json_integer_value(replicas));
}

/* Sentences that are the same for several rows come once. */
static void print_notes(const json_t *rows)
{
	json_t *said = json_object();
	const json_t *row, *entry;
	size_t i, k;

	json_array_foreach (rows, i, row) {
		const char *name = json_string_value(json_object_get(row, "algorithm"));
		const char *error = json_string_value(json_object_get(row, "error"));

		if (error && !json_object_get(said, error))
			fprintf(stderr, "%s: error: %s\n", name, error);
		if (error)
			json_object_set_new(said, error, json_true());
		json_array_foreach (json_object_get(row, "warnings"), k, entry) {
			const char *text = json_string_value(json_object_get(entry, "text"));

			if (text && !json_object_get(said, text)) {
				fprintf(stderr, "%s: warning: %s\n", name, text);
				json_object_set_new(said, text, json_true());
			}
		}
	}
	json_decref(said);
}

static void print_tables(const struct simulate_options *o, const json_t *rows)
{
	static const struct ctl_column columns[] = {
		{"ALGORITHM", "algorithm", CTL_TEXT, NULL}, {"EVENT", "event", CTL_TEXT, NULL},
		{"MAX/MEAN", NULL, CTL_NUMBER, most},	    {"MIN/MEAN", NULL, CTL_NUMBER, least},
		{"CV", NULL, CTL_NUMBER, variation},	    {"MOVED", NULL, CTL_NUMBER, moved},
		{"MINIMUM", NULL, CTL_NUMBER, minimum},	    {"EXCESS", NULL, CTL_NUMBER, excess},
		{"BUILD ms", NULL, CTL_NUMBER, build_ms},   {"KiB", NULL, CTL_NUMBER, kib},
	};

	printf("%zu backends, %u slots", o->n, o->params.slots);
	if (o->keys)
		printf(", %u keys%s: movement is of keys", o->keys, o->zipf > 0 ? " (Zipf)" : "");
	putchar('\n');
	ctl_print_table(rows, columns, sizeof(columns) / sizeof(columns[0]));
	print_loads(rows);
	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		if (json_object_get(row, "error"))
			continue;
		print_hot_key(row);
		print_replicas(row);
		break;
	}
	fflush(stdout);
	print_notes(rows);
}

int simulate_print(const struct simulate_options *o, json_t *rows)
{
	if (!ctl_options.json) {
		print_tables(o, rows);
		json_decref(rows);
		return CTL_OK;
	}
	if (json_array_size(rows) != 1)
		return ctl_print_json(rows);
	ctl_print_json(json_incref(json_array_get(rows, 0)));
	json_decref(rows);
	return CTL_OK;
}
