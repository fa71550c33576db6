/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a change does, for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "duration.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* ---- what is different ---- */

static const char *text_in(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "?";
}

/* A value as in the document. */
static void print_value(const json_t *value)
{
	char *text;

	if (json_is_string(value)) {
		fputs(json_string_value(value), stdout);
		return;
	}
	text = !value || json_is_null(value) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	fputs(text ? text : "-", stdout);
	free(text);
}

static void print_members(const json_t *row, char sign)
{
	const json_t *member;
	size_t i;

	json_array_foreach (json_object_get(row, "members"), i, member) {
		const json_t *from = json_object_get(member, "from"), *to = json_object_get(member, "to");

		printf("%s%s", i ? ", " : "  ", text_in(member, "member"));
		if (sign == '~' && json_is_null(from) && json_is_null(to))
			continue; /* it is another, and nobody shall see which */
		putchar(' ');
		print_value(sign == '+' ? to : from);
		if (sign == '~') {
			fputs(" -> ", stdout);
			print_value(to);
		}
	}
}

void ctl_print_changes(const json_t *changes)
{
	const json_t *row;
	size_t i;

	json_array_foreach (changes, i, row) {
		const char *change = text_in(row, "change");
		char sign = !strcmp(change, "added") ? '+' : !strcmp(change, "removed") ? '-' : '~';

		printf("%c %s", sign, text_in(row, "kind"));
		if (strcmp(text_in(row, "kind"), "document") != 0)
			printf(" %s", text_in(row, "name"));
		print_members(row, sign);
		putchar('\n');
	}
}

/* ---- tables ---- */

static char *two(const json_t *row, const char *from, const char *to, const char *format)
{
	double a = json_number_value(json_object_get(row, from)), b = json_number_value(json_object_get(row, to));
	char x[32], y[32], *text;

	snprintf(x, sizeof(x), format, a);
	snprintf(y, sizeof(y), format, b);
	return asprintf(&text, "%s -> %s", a > 0 ? x : "-", b > 0 ? y : "-") < 0 ? NULL : text;
}

static char *backends(const json_t *row)
{
	return two(row, "backends_before", "backends_after", "%.0f");
}

static char *max_mean(const json_t *row)
{
	return two(row, "max_mean_before", "max_mean_after", "%.3f");
}

static char *what(const json_t *row)
{
	return strdup(json_is_true(json_object_get(row, "added"))     ? "new"
		      : json_is_true(json_object_get(row, "removed")) ? "removed"
		      : json_is_true(json_object_get(row, "resized")) ? "resized"
								      : "changed");
}

static const struct ctl_column columns[] = {
	{"POOL", "pool", CTL_TEXT, NULL},	  {"TABLE", NULL, CTL_TEXT, what},
	{"SLOTS", "slots", CTL_NUMBER, NULL},	  {"MOVED", "moved", CTL_NUMBER, NULL},
	{"MINIMUM", "minimum", CTL_NUMBER, NULL}, {"PART", "moved_percent", CTL_PERCENT, NULL},
	{"BACKENDS", NULL, CTL_TEXT, backends},	  {"LEAVING", "leaving", CTL_NUMBER, NULL},
	{"MAX/MEAN", NULL, CTL_TEXT, max_mean},	  {"EPOCH", "epoch", CTL_NUMBER, NULL},
};

void ctl_print_warnings(const json_t *entries)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (entries, i, entry) {
		const char *level = json_string_value(json_object_get(entry, "level"));

		fprintf(stderr, "shuntctl: %s: %s\n", level ? level : "warning",
			json_is_string(entry) ? json_string_value(entry) : text_in(entry, "text"));
	}
}

/* What moves is what has to drain: connections on those slots stay where they are until they end. */
static void print_sum(const json_t *pools, const char *verdict)
{
	json_int_t moved = 0, connections = 0;
	const json_t *row;
	size_t i;

	json_array_foreach (pools, i, row) {
		if (json_is_true(json_object_get(row, "added")))
			continue;
		moved += json_integer_value(json_object_get(row, "moved"));
		connections += json_integer_value(json_object_get(row, "connections"));
	}
	printf("%" JSON_INTEGER_FORMAT
	       " slots get another backend; their connections have to drain, of which %" JSON_INTEGER_FORMAT
	       " are recorded. Policy: %s.\n",
	       moved, connections, verdict);
}

int ctl_print_plan(json_t *plan, bool exit_code)
{
	const json_t *changes = json_object_get(plan, "changes"), *pools = json_object_get(plan, "pools");
	const char *verdict = text_in(plan, "verdict");
	bool changed = json_is_true(json_object_get(plan, "changed"));
	int code = !strcmp(verdict, "refused") ? CTL_POLICY : changed && exit_code ? CTL_CHANGES : CTL_OK;

	if (ctl_options.json) {
		ctl_print_json(plan);
		return code;
	}
	if (!changed) {
		puts("Nothing to do.");
	} else {
		ctl_print_changes(changes);
		if (json_array_size(pools)) {
			putchar('\n');
			ctl_print_table(pools, columns, LENGTH(columns));
		}
		putchar('\n');
		print_sum(pools, verdict);
	}
	fflush(stdout);
	ctl_print_warnings(json_object_get(plan, "entries"));
	json_decref(plan);
	return code;
}

static void print_applied(const json_t *reply, json_int_t confirm)
{
	json_int_t revision = json_integer_value(json_object_get(reply, "revision"));
	char text[DURATION_TEXT_MAX];

	if (!json_is_true(json_object_get(reply, "changed"))) {
		puts("Nothing to do.");
		return;
	}
	printf("Revision %" JSON_INTEGER_FORMAT " is in force.\n", revision);
	if (confirm)
		printf("It is taken back in %s, unless you say \"shuntctl confirm\".\n",
		       duration_format((uint64_t)confirm * 1000, text));
}

int ctl_print_applied(json_t *reply, const struct ctl_change_options *options, json_int_t confirm)
{
	if (options->plan)
		return ctl_print_plan(reply, options->exit_code);
	if (ctl_options.json)
		return ctl_print_json(reply);
	print_applied(reply, confirm);
	fflush(stdout);
	ctl_print_warnings(json_object_get(reply, "entries"));
	json_decref(reply);
	return CTL_OK;
}
