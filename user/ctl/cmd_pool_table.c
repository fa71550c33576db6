/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl pool table */
#include <stdio.h>

#include "ctl.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define OPTION_SLOTS 256

struct table {
	struct ctl_words words;
	bool slots;
};

static const struct ctl_column head[] = {
	{"pool", "pool", CTL_TEXT, NULL},	{"epoch", "epoch", CTL_NUMBER, NULL},
	{"digest", "digest", CTL_TEXT, NULL},	{"slots", "slots", CTL_NUMBER, NULL},
	{"since", "activated", CTL_TIME, NULL},
};

static const struct ctl_column columns[] = {
	{"BACKEND", "backend", CTL_TEXT, NULL},	 {"WEIGHT", "weight", CTL_NUMBER, NULL},
	{"SLOTS", "slots", CTL_NUMBER, NULL},	 {"SHARE", "share", CTL_PERCENT, NULL},
	{"TARGET", "target", CTL_PERCENT, NULL},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct table *table = state->input;

	if (key != OPTION_SLOTS)
		return ctl_word(&table->words, key, arg, state);
	table->slots = true;
	return 0;
}

/* One line "slot owner" for each slot, from the runs [index in rows or -1, length]. */
static int print_slots(const json_t *reply, const json_t *rows)
{
	const json_t *owners = json_object_get(reply, "owners"), *run;
	json_int_t slot = 0;
	size_t i;

	if (!json_is_array(owners))
		return ctl_fail(CTL_UNREACHABLE, "Unreachable", "shuntd's reply to PoolTable has no \"owners\"");
	json_array_foreach (owners, i, run) {
		json_int_t index = json_integer_value(json_array_get(run, 0));
		json_int_t length = json_integer_value(json_array_get(run, 1));
		const json_t *row = index < 0 ? NULL : json_array_get(rows, (size_t)index);
		const char *name = json_string_value(json_object_get(row, "backend"));

		while (length-- > 0 && !ferror(stdout))
			printf("%" JSON_INTEGER_FORMAT " %s\n", slot++, name ? name : "-");
	}
	return CTL_OK;
}

static int print(json_t *reply, const json_t *rows, bool slots)
{
	int code;

	if (ctl_options.json)
		return ctl_print_json(reply);
	if (slots) {
		code = print_slots(reply, rows);
	} else {
		ctl_print_object(reply, head, LENGTH(head));
		putchar('\n');
		code = ctl_print_table(rows, columns, LENGTH(columns));
	}
	json_decref(reply);
	return code;
}

int cmd_pool_table(int argc, char **argv)
{
	static const char *const names[] = {"NAME", NULL};
	static const struct argp_option options[] = {
		{"slots", OPTION_SLOTS, NULL, 0, "the owner of each slot instead", 0},
		{},
	};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "NAME",
		.doc = "Shows a pool's table in force: slots and share of each backend beside the share that its "
		       "weight asks "
		       "for. Two load balancers with the same digest send every flow to the same backend.",
		.children = children,
	};
	struct table table = {.words = {.names = names, .required = 1}};
	json_t *reply, *parameters;
	const json_t *rows;
	int code = ctl_parse(&argp, argc, argv, NULL, &table);

	if (code)
		return code;
	parameters = json_object();
	ctl_set_text(parameters, "name", table.words.value[0]);
	if (table.slots)
		json_object_set_new(parameters, "owners", json_true());
	code = ctl_rows("PoolTable", parameters, "rows", &reply, &rows);
	return code ? code : print(reply, rows, table.slots);
}
