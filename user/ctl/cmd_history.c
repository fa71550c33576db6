/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl epoch and revision: what was before */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "document_output.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static error_t parse_words(int key, char *arg, struct argp_state *state)
{
	return ctl_word(state->input, key, arg, state);
}

static const struct argp_child children[] = {CTL_GLOBAL, {}};

/* Reads the words, calls the method with them: those named in upper case after parameters that are numbers. */
struct question {
	const char *method;
	const char *doc, *args_doc;
	const char *const *names;
	unsigned int required;
	const char *const *parameters; /* beside names */
};

static int set_parameter(json_t *parameters, const char *name, const char *word)
{
	json_int_t number;

	if (!word)
		return CTL_OK;
	if (!strcmp(name, "pool")) {
		ctl_set_text(parameters, name, word);
		return CTL_OK;
	}
	if (ctl_number(word, &number))
		return ctl_fail(CTL_USAGE, "Usage", "\"%s\" is no number of a revision or an epoch", word);
	json_object_set_new(parameters, name, json_integer(number));
	return CTL_OK;
}

static int ask(const struct question *question, int argc, char **argv, json_t **reply)
{
	const struct argp argp = {
		.parser = parse_words, .args_doc = question->args_doc, .doc = question->doc, .children = children};
	struct ctl_words words = {.names = question->names, .required = question->required};
	json_t *parameters;
	int code = ctl_parse(&argp, argc, argv, NULL, &words);

	if (code)
		return code;
	parameters = json_object();
	for (size_t i = 0; question->names[i] && !code; i++)
		code = set_parameter(parameters, question->parameters[i], words.value[i]);
	if (!code)
		return ctl_call(question->method, parameters, reply);
	json_decref(parameters);
	return code;
}

static char *who(const json_t *row)
{
	const char *user = json_string_value(json_object_get(row, "user"));
	json_int_t uid = json_integer_value(json_object_get(row, "uid"));
	char *text;

	if (!user || !*user)
		return strdup("-");
	if (uid < 0)
		return strdup(user);
	return asprintf(&text, "%s (%" JSON_INTEGER_FORMAT "), pid %" JSON_INTEGER_FORMAT, user, uid,
			json_integer_value(json_object_get(row, "pid"))) < 0
		       ? NULL
		       : text;
}

static int print_rows(json_t *reply, const char *member, const struct ctl_column *columns, size_t n)
{
	int code;

	if (ctl_options.json)
		return ctl_print_json(reply);
	code = ctl_print_table(json_object_get(reply, member), columns, n);
	json_decref(reply);
	return code;
}

/* ---- epochs ---- */

static const struct ctl_column epoch_columns[] = {
	{"POOL", "pool", CTL_TEXT, NULL},     {"EPOCH", "epoch", CTL_NUMBER, NULL},
	{"TIME", "time", CTL_TIME, NULL},     {"DIGEST", "digest", CTL_TEXT, NULL},
	{"MOVED", "moved", CTL_NUMBER, NULL}, {"MINIMUM", "minimum", CTL_NUMBER, NULL},
	{"WHO", NULL, CTL_TEXT, who},	      {"FORCED", "forced", CTL_TEXT, NULL},
	{"WHY", "why", CTL_LONG, NULL},
};

static int epoch_list(int argc, char **argv)
{
	static const char *const names[] = {"POOL", NULL}, *const parameters[] = {"pool"};
	static const struct question question = {
		"EpochList", "Lists the epochs of all pools, or of one, the oldest first.", "[POOL]", names, 0,
		parameters};
	json_t *reply;
	int code = ask(&question, argc, argv, &reply);

	return code ? code : print_rows(reply, "epochs", epoch_columns, LENGTH(epoch_columns));
}

static void print_member(const json_t *member)
{
	printf("  %-32s weight %5" JSON_INTEGER_FORMAT "  slots %7" JSON_INTEGER_FORMAT "\n",
	       json_string_value(json_array_get(member, 0)), json_integer_value(json_array_get(member, 1)),
	       json_integer_value(json_array_get(member, 2)));
}

static int epoch_show(int argc, char **argv)
{
	static const char *const names[] = {"POOL", "EPOCH", NULL}, *const parameters[] = {"pool", "epoch"};
	static const struct question question = {
		"EpochShow", "Shows an epoch, and the backends of its table.", "POOL EPOCH", names, 2, parameters};
	const json_t *member;
	json_t *reply;
	size_t i;
	int code = ask(&question, argc, argv, &reply);

	if (code)
		return code;
	if (ctl_options.json)
		return ctl_print_json(reply);
	ctl_print_object(reply, epoch_columns, LENGTH(epoch_columns));
	json_array_foreach (json_object_get(reply, "members"), i, member)
		print_member(member);
	json_decref(reply);
	return CTL_OK;
}

static const struct ctl_column diff_columns[] = {
	{"BACKEND", "backend", CTL_TEXT, NULL},	       {"WEIGHT", "weight_from", CTL_NUMBER, NULL},
	{"NEW WEIGHT", "weight_to", CTL_NUMBER, NULL}, {"SLOTS", "slots_from", CTL_NUMBER, NULL},
	{"NEW SLOTS", "slots_to", CTL_NUMBER, NULL},
};

static void print_count(const json_t *value)
{
	if (json_is_integer(value))
		printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else
		fputs("an unknown number", stdout);
}

static int epoch_diff(int argc, char **argv)
{
	static const char *const names[] = {"POOL", "FROM", "TO", NULL}, *const parameters[] = {"pool", "from", "to"};
	static const struct question question = {
		"EpochDiff",
		"Shows what is different between two epochs of a pool. How many slots moved is known where tables "
		"can be computed again, which those of \"minimal\" cannot.",
		"POOL FROM TO",
		names,
		3,
		parameters};
	json_t *reply;
	int code = ask(&question, argc, argv, &reply);

	if (code || ctl_options.json)
		return code ? code : ctl_print_json(reply);
	ctl_print_table(json_object_get(reply, "rows"), diff_columns, LENGTH(diff_columns));
	putchar('\n');
	print_count(json_object_get(reply, "moved"));
	fputs(" of ", stdout);
	print_count(json_object_get(reply, "slots"));
	fputs(" slots moved; at least ", stdout);
	print_count(json_object_get(reply, "minimum"));
	puts(" had to.");
	json_decref(reply);
	return CTL_OK;
}

int cmd_epoch(int argc, char **argv)
{
	static const struct ctl_verb verbs[] = {
		{"list", epoch_list, "[POOL]", "epochs: when, who, why, what moved"},
		{"show", epoch_show, "POOL EPOCH", "one epoch, and whom its table was built from"},
		{"diff", epoch_diff, "POOL FROM TO", "between two epochs of a pool"},
	};

	return ctl_dispatch(verbs, LENGTH(verbs), "Epochs: the tables that pools have and had.", argc, argv);
}

/* ---- revisions ---- */

static const struct ctl_column revision_columns[] = {
	{"REVISION", "revision", CTL_NUMBER, NULL}, {"STATE", "state", CTL_TEXT, NULL},
	{"TIME", "time", CTL_TIME, NULL},	    {"CHANGES", "changes", CTL_NUMBER, NULL},
	{"TABLES", "pools", CTL_NUMBER, NULL},	    {"WHO", NULL, CTL_TEXT, who},
	{"FORCED", "forced", CTL_TEXT, NULL},	    {"WHY", "why", CTL_LONG, NULL},
};

static int revision_list(int argc, char **argv)
{
	static const char *const names[] = {NULL};
	static const struct question question = {
		"RevisionList", "Lists what was applied, the oldest first.", "", names, 0, NULL};
	json_t *reply;
	int code = ask(&question, argc, argv, &reply);

	return code ? code : print_rows(reply, "revisions", revision_columns, LENGTH(revision_columns));
}

static int revision_show(int argc, char **argv)
{
	static const char *const names[] = {"REVISION", NULL}, *const parameters[] = {"revision"};
	static const struct question question = {
		"RevisionShow", "Prints the document of a revision.", "REVISION", names, 1, parameters};
	json_t *reply;
	int code = ask(&question, argc, argv, &reply);

	if (code || ctl_options.json)
		return code ? code : ctl_print_json(reply);
	ctl_print_document(json_object_get(reply, "document"));
	json_decref(reply);
	return CTL_OK;
}

static int revision_diff(int argc, char **argv)
{
	static const char *const names[] = {"FROM", "TO", NULL}, *const parameters[] = {"from", "to"};
	static const struct question question = {
		"RevisionDiff", "Shows what is different between two revisions.", "FROM TO", names, 2, parameters};
	json_t *reply;
	int code = ask(&question, argc, argv, &reply);

	if (code || ctl_options.json)
		return code ? code : ctl_print_json(reply);
	ctl_print_changes(json_object_get(reply, "changes"));
	json_decref(reply);
	return CTL_OK;
}

struct rollback {
	struct ctl_words words;
	struct ctl_change_options change;
};

static error_t parse_rollback(int key, char *arg, struct argp_state *state)
{
	struct rollback *rollback = state->input;

	if (key == ARGP_KEY_INIT)
		return ctl_change_init(state, &rollback->change);
	return ctl_word(&rollback->words, key, arg, state);
}

static int revision_rollback(int argc, char **argv)
{
	static const char *const names[] = {"REVISION", NULL};
	static const struct argp_child change_children[] = {CTL_CHANGE, CTL_GLOBAL, {}};
	static const struct argp argp = {
		.parser = parse_rollback,
		.args_doc = "REVISION",
		.doc = "Applies the document of an older revision, as a new one. Tables are built anew, for the "
		       "backends that can be reached now; an old table never comes back as it was.",
		.children = change_children,
	};
	struct rollback rollback = {.words = {.names = names, .required = 1}};
	json_t *parameters, *reply;
	int code = ctl_parse(&argp, argc, argv, NULL, &rollback);

	if (code)
		return code;
	parameters = json_object();
	code = set_parameter(parameters, "revision", rollback.words.value[0]);
	if (code) {
		json_decref(parameters);
		return code;
	}
	code = ctl_change_reply("RevisionRollback", parameters, &rollback.change, &reply);
	if (code)
		return code;
	return ctl_print_applied(reply, &rollback.change, 0);
}

int cmd_revision(int argc, char **argv)
{
	static const struct ctl_verb verbs[] = {
		{"list", revision_list, "", "what was applied: when, who, why"},
		{"show", revision_show, "REVISION", "its document"},
		{"diff", revision_diff, "FROM TO", "between two revisions"},
		{"rollback", revision_rollback, "REVISION [--plan] ...", "apply an older document again"},
	};

	return ctl_dispatch(verbs, LENGTH(verbs), "Revisions: the documents that were applied.", argc, argv);
}
