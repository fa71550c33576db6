/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl reload */
#include <stdio.h>

#include "ctl.h"

#define OPTION_WAIT 256

struct reload {
	struct ctl_words words;
	bool wait;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct reload *reload = state->input;

	if (key != OPTION_WAIT)
		return ctl_word(&reload->words, key, arg, state);
	reload->wait = true;
	return 0;
}

static void print_for_people(const json_t *reply)
{
	const json_t *warning;
	size_t i;

	json_array_foreach (json_object_get(reply, "warnings"), i, warning) {
		const json_t *text = json_is_object(warning) ? json_object_get(warning, "text") : warning;

		fprintf(stderr, "shuntctl: warning: %s\n", json_is_string(text) ? json_string_value(text) : "?");
	}
	puts(json_is_true(json_object_get(reply, "changed")) ? "The document is applied."
							     : "The document says what is in force already.");
}

int cmd_reload(int argc, char **argv)
{
	static const char *const names[] = {NULL};
	static const struct argp_option options[] = {
		{"wait", OPTION_WAIT, NULL, 0, "return when every packet sees the change", 0},
		{},
	};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Makes shuntd read its document again and apply it. Services, pools, backends and weights "
		       "become what "
		       "it says, those that verbs made included. A document that is wrong changes nothing.",
		.children = children,
	};
	struct reload reload = {.words = {.names = names}};
	json_t *reply;
	int code = ctl_parse(&argp, argc, argv, NULL, &reload);

	if (!code)
		code = ctl_change_reply("Reload", json_object(), reload.wait, &reply);
	if (code)
		return code;
	if (ctl_options.json)
		return ctl_print_json(reply);
	print_for_people(reply);
	json_decref(reply);
	return CTL_OK;
}
