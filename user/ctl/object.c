/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "object.h"

static const struct argp_child children[] = {CTL_GLOBAL, {}};
static const struct argp_child change_children[] = {CTL_CHANGE, CTL_GLOBAL, {}};

bool ctl_object_name(json_t *parameters, const char *word)
{
	ctl_set_text(parameters, "name", word);
	return true;
}

static error_t parse_words(int key, char *arg, struct argp_state *state)
{
	return ctl_word(state->input, key, arg, state);
}

static int wrong_word(const struct ctl_object *object, const char *word, const char *verb)
{
	return ctl_fail(CTL_USAGE, "Usage", "\"%s\" is not of the form %s (see: %s --help)", word, object->word, verb);
}

int ctl_object_list(const struct ctl_object *object, int argc, char **argv)
{
	static const char *const none[] = {NULL};
	const struct argp argp = {.parser = parse_words, .doc = object->list_doc, .children = children};
	struct ctl_words words = {.names = none};
	const json_t *rows;
	json_t *reply;
	int code = ctl_parse(&argp, argc, argv, NULL, &words);

	if (!code)
		code = ctl_rows(object->method, NULL, object->rows, &reply, &rows);
	if (code)
		return code;
	if (ctl_options.json)
		return ctl_print_json(reply);
	code = ctl_print_table(rows, object->list, object->n_list);
	json_decref(reply);
	return code;
}

int ctl_object_show(const struct ctl_object *object, int argc, char **argv)
{
	const char *const names[] = {object->word, NULL};
	const struct argp argp = {
		.parser = parse_words, .args_doc = object->word, .doc = object->show_doc, .children = children};
	struct ctl_words words = {.names = names, .required = 1};
	json_t *reply, *parameters, *row;
	const json_t *rows;
	int code = ctl_parse(&argp, argc, argv, NULL, &words);

	if (code)
		return code;
	parameters = json_object();
	if (!object->name(parameters, words.value[0])) {
		json_decref(parameters);
		return wrong_word(object, words.value[0], argv[0]);
	}
	code = ctl_rows(object->method, parameters, object->rows, &reply, &rows);
	if (code)
		return code;
	row = json_incref(json_array_get(rows, 0));
	json_decref(reply);
	if (!row)
		return ctl_fail(CTL_INVALID, "NotFound", "there is no %s \"%s\" (see: shuntctl %s list)", object->kind,
				words.value[0], object->kind);
	if (ctl_options.json)
		return ctl_print_json(row);
	code = ctl_print_object(row, object->show, object->n_show);
	json_decref(row);
	return code;
}

/* ---- del ---- */

enum { OPTION_IGNORE_MISSING = 256 };

struct del {
	struct ctl_words words;
	struct ctl_change_options change;
	bool ignore_missing;
};

static error_t parse_del(int key, char *arg, struct argp_state *state)
{
	struct del *del = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		return ctl_change_init(state, &del->change);
	case OPTION_IGNORE_MISSING:
		del->ignore_missing = true;
		return 0;
	default:
		return ctl_word(&del->words, key, arg, state);
	}
}

int ctl_object_del(const struct ctl_object *object, int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"ignore-missing", OPTION_IGNORE_MISSING, NULL, 0, "no error if there is none", 0},
		{},
	};
	const char *const names[] = {object->word, NULL};
	const struct argp argp = {
		.options = options,
		.parser = parse_del,
		.args_doc = object->word,
		.doc = object->del_doc,
		.children = change_children,
	};
	struct del del = {.words = {.names = names, .required = 1}};
	json_t *parameters;
	int code = ctl_parse(&argp, argc, argv, NULL, &del);

	if (code)
		return code;
	parameters = json_object();
	if (!object->name(parameters, del.words.value[0])) {
		json_decref(parameters);
		return wrong_word(object, del.words.value[0], argv[0]);
	}
	if (del.ignore_missing)
		json_object_set_new(parameters, "ignore_missing", json_true());
	return ctl_change(object->del_method, parameters, &del.change);
}
