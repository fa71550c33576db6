/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl reload */
#include <stdio.h>

#include "ctl.h"

struct reload {
	struct ctl_words words;
	struct ctl_change_options change;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct reload *reload = state->input;

	if (key == ARGP_KEY_INIT)
		return ctl_change_init(state, &reload->change);
	return ctl_word(&reload->words, key, arg, state);
}

static void print_for_people(const json_t *reply)
{
	ctl_print_warnings(json_object_get(reply, "warnings"));
	puts(json_is_true(json_object_get(reply, "changed"))
		     ? "The document is applied."
		     : "Nothing to do: the document says what is in force already.");
}

int cmd_reload(int argc, char **argv)
{
	static const char *const names[] = {NULL};
	static const struct argp_child children[] = {CTL_CHANGE, CTL_GLOBAL, {}};
	static const struct argp argp = {
		.parser = parse,
		.doc = "Makes shuntd read its document again and apply it. Services, pools, backends and weights "
		       "become what "
		       "it says, those that verbs made included. A document that is wrong changes nothing.",
		.children = children,
	};
	struct reload reload = {.words = {.names = names}};
	json_t *reply;
	int code = ctl_parse(&argp, argc, argv, NULL, &reload);

	if (!code && reload.change.plan)
		code = ctl_fail(CTL_USAGE, "Usage", "reload has no --plan: use \"shuntctl plan FILE\"");
	if (!code)
		code = ctl_change_reply("Reload", json_object(), &reload.change, &reply);
	if (code)
		return code;
	if (ctl_options.json)
		return ctl_print_json(reply);
	print_for_people(reply);
	json_decref(reply);
	return CTL_OK;
}
