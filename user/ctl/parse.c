/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shunt/abi.h>

#include "ctl.h"
#include "duration.h"
#include "version.h"

#define TIMEOUT_MAX_S 3600
#define DURATION_MAX_MS (7u * 86400000u)

struct ctl_options ctl_options = {.instance = SHUNT_INSTANCE_DEFAULT};

enum { OPTION_TIMEOUT = 256, OPTION_VERSION };

static const struct argp_option global_options[] = {
	{"instance", 'i', "NAME", 0, "the instance to talk to (\"" SHUNT_INSTANCE_DEFAULT "\")", 0},
	{"json", 'j', NULL, 0, "JSON instead of tables, errors too", 0},
	{"timeout", OPTION_TIMEOUT, "SECONDS", 0,
	 "how long to wait for the daemon (5; changes 60); 90s, 5m and so on, too", 0},
	{"help", 'h', NULL, 0, "this text", 0},
	{"version", OPTION_VERSION, NULL, 0, "the version", 0},
	{},
};

static error_t set_timeout(const char *arg, const struct argp_state *state)
{
	char *end;
	double seconds = strtod(arg, &end);
	uint64_t duration;

	if (!duration_parse(arg, &duration) && duration && duration <= DURATION_MAX_MS) {
		ctl_options.timeout_ms = (unsigned int)duration;
		return 0;
	}
	if (end == arg || *end || !(seconds > 0 && seconds <= TIMEOUT_MAX_S))
		return ctl_usage(state, "--timeout %s: give seconds, above 0 and up to %d", arg, TIMEOUT_MAX_S);
	ctl_options.timeout_ms = seconds < 0.001 ? 1 : (unsigned int)(seconds * 1000);
	return 0;
}

static error_t parse_global(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'i':
		ctl_options.instance = arg;
		return 0;
	case 'j':
		ctl_options.json = true;
		return 0;
	case OPTION_TIMEOUT:
		return set_timeout(arg, state);
	case 'h':
		argp_state_help(state, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC);
		exit(ctl_finish(CTL_OK));
	case OPTION_VERSION:
		printf("shuntctl " SHUNT_VERSION "\n");
		exit(ctl_finish(CTL_OK));
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp ctl_global_argp = {.options = global_options, .parser = parse_global};

/* The outermost parser while parsing stops at the first word. */
struct outer {
	struct argp argp;
	struct argp_child children[2];
	int first;
	void *input;
};

static error_t stop_at_word(int key, char *arg, struct argp_state *state)
{
	struct outer *outer = state->input;

	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = outer->input;
		return 0;
	case ARGP_KEY_ARG:
		outer->first = state->next - 1;
		state->next = state->argc;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* What argp and getopt wrote: "name: sentence\nTry ...\n"; print the sentence. */
static int refuse(const char *name, char *written)
{
	size_t length = strlen(name);
	char *sentence = written;

	if (!strncmp(sentence, name, length) && !strncmp(sentence + length, ": ", 2))
		sentence += length + 2;
	sentence[strcspn(sentence, "\n")] = '\0';
	return ctl_fail(CTL_USAGE, "Usage", "%s (see: %s --help)", sentence, name);
}

/* argp and getopt write to the stream stderr: put another in its place to get at their words. */
static error_t parse_captured(const struct argp *argp, int argc, char **argv, unsigned int flags, void *input,
			      char **written)
{
	FILE *terminal = stderr;
	size_t size;
	FILE *capture = open_memstream(written, &size);
	error_t err;

	if (!capture)
		return errno;
	stderr = capture;
	err = argp_parse(argp, argc, argv, flags | ARGP_NO_EXIT | ARGP_NO_HELP, NULL, input);
	stderr = terminal;
	fclose(capture);
	return err;
}

int ctl_parse(const struct argp *argp, int argc, char **argv, int *first, void *input)
{
	struct outer outer = {
		.argp = {.parser = stop_at_word, .children = outer.children},
		.children = {{argp, 0, NULL, 0}},
		.first = argc,
		.input = input,
	};
	char *written = NULL;
	error_t err;
	int code = CTL_OK;

	if (first)
		err = parse_captured(&outer.argp, argc, argv, ARGP_IN_ORDER, &outer, &written);
	else
		err = parse_captured(argp, argc, argv, 0, input, &written);
	if (err == ENOMEM)
		code = ctl_fail(CTL_INVALID, "Failed", "out of memory");
	else if (err)
		code = refuse(argv[0], written);
	else if (first)
		*first = outer.first;
	free(written);
	return code;
}

error_t ctl_usage(const struct argp_state *state, const char *format, ...)
{
	va_list args;

	(void)state;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	return EINVAL;
}

error_t ctl_word(struct ctl_words *words, int key, char *arg, const struct argp_state *state)
{
	switch (key) {
	case ARGP_KEY_ARG:
		if (state->arg_num >= CTL_WORDS_MAX || !words->names[state->arg_num])
			return ctl_usage(state, "\"%s\" is one word too many", arg);
		words->value[state->arg_num] = arg;
		return 0;
	case ARGP_KEY_END:
		if (state->arg_num < words->required)
			return ctl_usage(state, "%s is missing", words->names[state->arg_num]);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

error_t ctl_decimal(const struct argp_state *state, const char *option, const char *arg, double least, double most,
		    double *out)
{
	char *end;
	double value = strtod(arg, &end);

	if (end == arg || *end || !(value >= least && value <= most))
		return ctl_usage(state, "--%s %s: give a number from %g to %g", option, arg, least, most);
	*out = value;
	return 0;
}

int ctl_number(const char *text, json_int_t *out)
{
	long long value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno || *end)
		return -EINVAL;
	*out = value;
	return 0;
}

error_t ctl_number_option(const struct argp_state *state, const char *option, const char *arg, json_int_t least,
			  json_int_t most, json_int_t *out)
{
	json_int_t value;

	if (ctl_number(arg, &value) || value < least || value > most)
		return ctl_usage(state, "%s %s: give a number from %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT,
				 option, arg, least, most);
	*out = value;
	return 0;
}
