/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl counters */
#include <stdio.h>

#include "ctl.h"

#define OPTION_ALL 256

static const struct ctl_column columns[] = {
	{"COUNTER", "name", CTL_TEXT, NULL},
	{"CLASS", "class", CTL_TEXT, NULL},
	{"PACKETS", "packets", CTL_NUMBER, NULL},
	{"MEANING", "description", CTL_LONG, NULL},
};

struct counters {
	struct ctl_words words;
	bool all;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct counters *counters = state->input;

	if (key != OPTION_ALL)
		return ctl_word(&counters->words, key, arg, state);
	counters->all = true;
	return 0;
}

static int print_for_people(const json_t *rows, bool all)
{
	json_t *shown = json_array();
	const json_t *row;
	int code = CTL_OK;
	size_t i;

	json_array_foreach (rows, i, row)
		if (all || json_integer_value(json_object_get(row, "packets")))
			json_array_append(shown, (json_t *)row);
	if (json_array_size(shown))
		code = ctl_print_table(shown, columns, sizeof(columns) / sizeof(columns[0]));
	else
		puts("No packet has been counted yet (--all lists every counter).");
	json_decref(shown);
	return code;
}

int cmd_counters(int argc, char **argv)
{
	static const char *const names[] = {NULL};
	static const struct argp_option options[] = {
		{"all", OPTION_ALL, NULL, 0, "those that are zero too", 0},
		{},
	};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Shows why packets left the packet path, with the meaning of each reason. Class: pass, to the "
		       "host; "
		       "forward, to a backend; drop; bug, which is never above zero unless shunt is at fault.",
		.children = children,
	};
	struct counters counters = {.words = {.names = names}};
	const json_t *rows;
	json_t *reply;
	int code = ctl_parse(&argp, argc, argv, NULL, &counters);

	if (!code)
		code = ctl_rows("Counters", NULL, "counters", &reply, &rows);
	if (code)
		return code;
	if (ctl_options.json)
		return ctl_print_json(reply);
	code = print_for_people(rows, counters.all);
	json_decref(reply);
	return code;
}
