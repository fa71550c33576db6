/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options and input of the verbs that change something. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl.h"
#include "document.h"

enum { OPTION_WAIT = 256, OPTION_PLAN, OPTION_FORCE, OPTION_REASON, OPTION_EXIT_CODE };

static const struct argp_option options[] = {
	{"wait", OPTION_WAIT, NULL, 0, "return when every packet sees the change", 0},
	{"plan", OPTION_PLAN, NULL, 0, "show what would change, and change nothing", 0},
	{"exit-code", OPTION_EXIT_CODE, NULL, 0, "with --plan: exit 5 if there is something to do", 0},
	{"reason", OPTION_REASON, "TEXT", 0, "why, for the history", 0},
	{"force", OPTION_FORCE, NULL, 0, "override the document's policy; this is recorded", 0},
	{},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ctl_change_options *out = state->input;

	switch (key) {
	case OPTION_WAIT:
		out->wait = true;
		return 0;
	case OPTION_PLAN:
		out->plan = true;
		return 0;
	case OPTION_FORCE:
		out->force = true;
		return 0;
	case OPTION_EXIT_CODE:
		out->exit_code = true;
		return 0;
	case OPTION_REASON:
		out->reason = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp ctl_change_argp = {.options = options, .parser = parse};

error_t ctl_change_init(const struct argp_state *state, struct ctl_change_options *out)
{
	state->child_inputs[0] = out;
	return 0;
}

/* malloc'd and terminated; NULL: errno says why. */
static char *read_stream(FILE *file, size_t *length)
{
	char *text = malloc(DOCUMENT_SIZE_MAX + 2);

	if (!text)
		return NULL;
	*length = fread(text, 1, DOCUMENT_SIZE_MAX + 1, file);
	text[*length] = '\0';
	if (!ferror(file))
		return text;
	free(text);
	return NULL;
}

char *ctl_read_document(const char *path, int *code)
{
	bool standard_input = !strcmp(path, "-");
	FILE *file = standard_input ? stdin : fopen(path, "re");
	size_t length = 0;
	char *text = file ? read_stream(file, &length) : NULL;

	*code = CTL_INVALID;
	if (!text)
		ctl_fail(CTL_INVALID, "Invalid", "cannot read %s: %s", path, strerror(errno));
	if (file && !standard_input)
		fclose(file);
	if (text && length <= DOCUMENT_SIZE_MAX && strlen(text) == length) {
		*code = CTL_OK;
		return text;
	}
	if (text && length > DOCUMENT_SIZE_MAX)
		ctl_fail(CTL_INVALID, "Invalid", "%s is larger than %u MiB: make it shorter", path,
			 DOCUMENT_SIZE_MAX >> 20);
	else if (text)
		ctl_fail(CTL_INVALID, "Invalid", "%s has a NUL byte in it: this is no document", path);
	free(text);
	return NULL;
}
