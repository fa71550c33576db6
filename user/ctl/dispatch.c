/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "suggest.h"

/* Of name and words in help: what is longer has the summary on the next line. */
#define WORDS_MAX 42

/* Name and words in one column, the summary beside them or, where there is no room, below. */
static char *help_text(const struct ctl_verb *verbs, size_t n, const char *intro)
{
	size_t size, width = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%s\n", intro);
	for (size_t i = 0; i < n; i++) {
		size_t own = strlen(verbs[i].name) + 1 + strlen(verbs[i].words);

		if (own > width && own <= WORDS_MAX)
			width = own;
	}
	for (size_t i = 0; i < n; i++) {
		int printed = fprintf(out, "\n  %s %s", verbs[i].name, verbs[i].words) - 3;

		if (printed > (int)width)
			printed = fprintf(out, "\n  ") - 3;
		fprintf(out, "%*s  %s", (int)width - printed, "", verbs[i].summary);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static int unknown(const struct ctl_verb *verbs, size_t n, const char *name, const char *word)
{
	char hint[SUGGEST_TEXT_MAX];
	struct suggestion near = {};

	for (size_t i = 0; i < n; i++)
		suggest(&near, word, verbs[i].name);
	if (near.best)
		return ctl_fail(CTL_USAGE, "Usage", "\"%s\" is no verb of %s%s", word, name, suggest_text(&near, hint));
	return ctl_fail(CTL_USAGE, "Usage", "\"%s\" is no verb of %s (see: %s --help)", word, name, name);
}

static int run(const struct ctl_verb *verb, const char *name, int argc, char **argv)
{
	char *full, *word = argv[0];
	int code;

	if (asprintf(&full, "%s %s", name, verb->name) < 0)
		return ctl_fail(CTL_INVALID, "Failed", "out of memory");
	argv[0] = full;
	code = verb->run(argc, argv);
	argv[0] = word;
	free(full);
	return code;
}

int ctl_dispatch(const struct ctl_verb *verbs, size_t n, const char *intro, int argc, char **argv)
{
	const struct argp_child children[] = {CTL_GLOBAL, {}};
	char *help = help_text(verbs, n, intro);
	const struct argp argp = {.args_doc = "VERB ...", .doc = help, .children = children};
	int first, code;

	if (!help)
		return ctl_fail(CTL_INVALID, "Failed", "out of memory");
	code = ctl_parse(&argp, argc, argv, &first, NULL);
	free(help);
	if (code)
		return code;
	if (first == argc)
		return ctl_fail(CTL_USAGE, "Usage", "a verb is missing (see: %s --help)", argv[0]);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(argv[first], verbs[i].name))
			return run(&verbs[i], argv[0], argc - first, argv + first);
	return unknown(verbs, n, argv[0], argv[first]);
}
