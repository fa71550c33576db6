/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl check: judge a document. */
#include <stdio.h>
#include <stdlib.h>

#include "control.h"
#include "ctl.h"
#include "document.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	return ctl_word(state->input, key, arg, state);
}

static size_t count_backends(const struct model *model)
{
	size_t n = 0;

	for (size_t i = 0; i < model->n_pools; i++)
		n += model->pools[i].n_backends;
	return n;
}

static int good(const char *file, const struct model *model, const struct report *report)
{
	char *text;

	if (ctl_options.json)
		return ctl_print_json(json_pack("{s:o, s:I, s:I, s:I, s:o}", "file", control_text(file), "services",
						(json_int_t)model->n_services, "pools", (json_int_t)model->n_pools,
						"backends", (json_int_t)count_backends(model), "entries",
						control_entries(report)));
	text = report_text(report);
	fputs(text ? text : "", stdout);
	free(text);
	printf("%s: ok: %zu services, %zu pools, %zu backends\n", file, model->n_services, model->n_pools,
	       count_backends(model));
	return CTL_OK;
}

static int bad(const struct report *report)
{
	char *text;

	if (ctl_options.json)
		return ctl_fail_report(CTL_INVALID, "Invalid", report);
	text = report_text(report);
	fputs(text ? text : "error: out of memory\n", stdout);
	free(text);
	return CTL_INVALID;
}

int cmd_check(int argc, char **argv)
{
	static const char *const names[] = {"FILE", NULL};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "FILE",
		.doc = "Judges a document as shuntd on this host would, and prints all that is wrong with it. Needs no "
		       "daemon and changes nothing. FILE \"-\" is standard input.",
		.children = children,
	};
	struct ctl_words words = {.names = names, .required = 1};
	struct report report = {};
	struct model *model;
	int err, code = ctl_parse(&argp, argc, argv, NULL, &words);

	if (code)
		return code;
	err = document_load(words.value[0], &model, &report);
	if (!err)
		model_warn(model, &report);
	code = err ? bad(&report) : good(words.value[0], model, &report);
	if (!err)
		model_free(model);
	report_free(&report);
	return code;
}
