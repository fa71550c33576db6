/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl plan, diff, apply, confirm, undo: whole documents */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "ctl.h"
#include "duration.h"

enum { OPTION_CONFIRM = 256, OPTION_EXIT_CODE, OPTION_FORCE, OPTION_REASON };

struct document {
	struct ctl_words words; /* FILE */
	struct ctl_change_options change;
	json_int_t confirm; /* seconds; 0: none */
};

static const char *const file_name[] = {"FILE", NULL};

/* Sends the document; the reply says what it changes. */
static int send_document(const struct document *document, json_t **reply)
{
	const char *path = document->words.value[0];
	json_t *parameters;
	int code;
	char *text = ctl_read_document(path, &code);

	if (!text)
		return code ? code : CTL_INVALID;
	parameters = json_object();
	if (json_object_set_new(parameters, "document", json_string(text)))
		code = ctl_fail(CTL_INVALID, "Invalid", "%s is not UTF-8 text: save it as UTF-8", path);
	explicit_bzero(text, strlen(text)); /* the key may be in it */
	free(text);
	if (code) {
		json_decref(parameters);
		return code;
	}
	ctl_set_text(parameters, "source", strcmp(path, "-") != 0 ? path : "<stdin>");
	if (document->confirm)
		json_object_set_new(parameters, "confirm_within", json_integer(document->confirm));
	return ctl_change_reply("Apply", parameters, &document->change, reply);
}

/* ---- plan and diff ---- */

static error_t parse_plan(int key, char *arg, struct argp_state *state)
{
	struct document *document = state->input;

	switch (key) {
	case OPTION_EXIT_CODE:
		document->change.exit_code = true;
		return 0;
	case OPTION_FORCE:
		document->change.force = true;
		return 0;
	default:
		return ctl_word(&document->words, key, arg, state);
	}
}

#define EXIT_CODE_OPTION                                                                                               \
	{                                                                                                              \
		"exit-code", OPTION_EXIT_CODE, NULL, 0, "exit 5 where there is something to do", 0                     \
	}

int cmd_plan(int argc, char **argv)
{
	static const struct argp_option options[] = {
		EXIT_CODE_OPTION,
		{"force", OPTION_FORCE, NULL, 0, "as with apply --force: the policy is not asked", 0},
		{},
	};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_plan,
		.args_doc = "FILE",
		.doc = "Shows what applying a document would change: services, pools and backends; of each table how "
		       "many slots move, and how many at least have to; and whether the policy allows it. Changes "
		       "nothing. Exit 4: the policy refuses it.",
		.children = children,
	};
	struct document document = {.words = {.names = file_name, .required = 1}, .change = {.plan = true}};
	json_t *reply;
	int code = ctl_parse(&argp, argc, argv, NULL, &document);

	if (!code)
		code = send_document(&document, &reply);
	return code ? code : ctl_print_plan(reply, document.change.exit_code);
}

int cmd_diff(int argc, char **argv)
{
	static const struct argp_option options[] = {EXIT_CODE_OPTION, {}};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_plan,
		.args_doc = "FILE",
		.doc = "Shows what a document has that is not in force (+), what is in force that it has not (-), and "
		       "what both have and say differently (~).",
		.children = children,
	};
	struct document document = {.words = {.names = file_name, .required = 1},
				    .change = {.plan = true, .force = true}};
	json_t *reply, *changes;
	int code = ctl_parse(&argp, argc, argv, NULL, &document);

	if (!code)
		code = send_document(&document, &reply);
	if (code)
		return code;
	changes = json_incref(json_object_get(reply, "changes"));
	json_decref(reply);
	if (document.change.exit_code && json_array_size(changes))
		code = CTL_CHANGES;
	if (ctl_options.json) {
		ctl_print_json(json_pack("{s:o}", "changes", changes));
		return code;
	}
	ctl_print_changes(changes);
	json_decref(changes);
	return code;
}

/* ---- apply ---- */

static error_t parse_apply(int key, char *arg, struct argp_state *state)
{
	struct document *document = state->input;
	uint64_t milliseconds;

	switch (key) {
	case ARGP_KEY_INIT:
		return ctl_change_init(state, &document->change);
	case OPTION_CONFIRM:
		if (duration_parse(arg, &milliseconds) || milliseconds < 1000 || milliseconds > 86400000)
			return ctl_usage(state, "--confirm-within %s: give 1s to 24h, such as 90s or 5m", arg);
		document->confirm = (json_int_t)(milliseconds / 1000);
		return 0;
	default:
		return ctl_word(&document->words, key, arg, state);
	}
}

int cmd_apply(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"confirm-within", OPTION_CONFIRM, "TIME", 0,
		 "take the change back after so long (90s, 5m), unless it was confirmed", 0},
		{},
	};
	static const struct argp_child children[] = {CTL_CHANGE, CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_apply,
		.args_doc = "FILE",
		.doc = "Makes a document the one in force. One that is wrong, or that the policy refuses (exit 4), "
		       "changes nothing. FILE \"-\" is standard input.",
		.children = children,
	};
	struct document document = {.words = {.names = file_name, .required = 1}};
	json_t *reply;
	int code = ctl_parse(&argp, argc, argv, NULL, &document);

	if (!code)
		code = send_document(&document, &reply);
	if (code)
		return code;
	return ctl_print_applied(reply, &document.change, document.confirm);
}

/* ---- confirm and undo ---- */

struct settling {
	struct ctl_words words;
	struct ctl_change_options change;
};

static error_t parse_settling(int key, char *arg, struct argp_state *state)
{
	struct settling *settling = state->input;

	if (key == OPTION_REASON) {
		settling->change.reason = arg;
		return 0;
	}
	return ctl_word(&settling->words, key, arg, state);
}

static int settle(const char *method, const struct argp_option *options, const char *doc, const char *sentence,
		  int argc, char **argv)
{
	static const char *const none[] = {NULL};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	const struct argp argp = {.options = options, .parser = parse_settling, .doc = doc, .children = children};
	struct settling settling = {.words = {.names = none}};
	json_t *reply;
	int code = ctl_parse(&argp, argc, argv, NULL, &settling);

	if (!code)
		code = ctl_change_reply(method, json_object(), &settling.change, &reply);
	if (code)
		return code;
	if (ctl_options.json)
		return ctl_print_json(reply);
	printf(sentence, (long long)json_integer_value(json_object_get(reply, "revision")));
	json_decref(reply);
	return CTL_OK;
}

int cmd_confirm(int argc, char **argv)
{
	return settle("Confirm", NULL, "Lets a change stand that \"apply --confirm-within\" made.",
		      "Revision %lld is confirmed.\n", argc, argv);
}

int cmd_undo(int argc, char **argv)
{
	static const struct argp_option options[] = {{"reason", OPTION_REASON, "TEXT", 0, "why, for the history", 0},
						     {}};

	return settle("Undo", options,
		      "Takes back a change that waits to be confirmed, without waiting for its time to be over.",
		      "It is taken back: revision %lld is in force, which says what was before.\n", argc, argv);
}
