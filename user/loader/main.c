/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shunt-loader: attaches, upgrades, detaches and shows the XDP programs; needs no daemon. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "control.h"
#include "loader.h"
#include "version.h"

static const struct {
	const char *name, *words, *summary;
	int (*run)(const struct loader_options *options, struct report *report);
} verbs[] = {
	[VERB_ATTACH] = {"attach", "IFACE...", "attach to interfaces, or bring them to the installed program",
			 loader_attach},
	[VERB_DETACH] = {"detach", "IFACE...", "take the program from interfaces", loader_detach},
	[VERB_STATUS] = {"status", "[-j]", "instances, interfaces, capacities, memory", loader_status},
	[VERB_UPGRADE] = {"upgrade", "", "put the installed programs in place, or other capacities, under traffic",
			  loader_upgrade},
};

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

static int help(void)
{
	printf("Usage: shunt-loader VERB ...\n\nPuts shunt's XDP programs on network interfaces; needs no daemon.\n\n");
	for (size_t i = 0; i < N_VERBS; i++)
		printf("  %-7s %-9s  %s\n", verbs[i].name, verbs[i].words, verbs[i].summary);
	printf("\n`shunt-loader VERB --help` tells the options of a verb; --version the version.\n");
	return LOADER_OK;
}

static void print_json(json_t *object)
{
	json_dumpf(object, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(object);
}

int loader_usage(bool json, const char *message)
{
	if (json)
		print_json(json_pack("{s:s, s:o}", "error", "Usage", "message", control_text(message)));
	else
		fprintf(stderr, "shunt-loader: %s\n", message);
	return LOADER_USAGE;
}

static const char *error_name(int error)
{
	switch (error) {
	case -ENOENT:
		return "NotFound";
	case -EPERM:
	case -EACCES:
		return "PermissionDenied";
	case -EINVAL:
		return "Invalid";
	default:
		return "Failed";
	}
}

/* The first error is the message; the rest is in the entries. */
static void print_json_error(int error, const struct report *report)
{
	const char *message = strerror(-error);

	for (size_t i = report->count; i--;)
		if (report->entries[i].level == REPORT_ERROR)
			message = report->entries[i].text;
	print_json(json_pack("{s:s, s:o, s:o*}", "error", error_name(error), "message", control_text(message),
			     "entries", control_entries(report)));
}

static void print_report(int error, const struct report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct report_entry *entry = &report->entries[i];

		if (entry->level == REPORT_INFO)
			printf("%s\n", entry->text);
		else
			fprintf(stderr, "shunt-loader: %s%s\n", entry->level == REPORT_WARNING ? "warning: " : "",
				entry->text);
	}
	if (error && !report->errors)
		fprintf(stderr, "shunt-loader: %s\n", strerror(-error));
}

static int run(enum loader_verb verb, int argc, char **argv)
{
	struct loader_options options = {};
	struct report report = {};
	int code = loader_parse(verb, argc, argv, &options), error;

	if (!code) {
		error = verbs[verb].run(&options, &report);
		if (options.json && error)
			print_json_error(error, &report);
		else
			print_report(error, &report);
		code = error ? LOADER_FAILED : LOADER_OK;
	}
	report_free(&report);
	loader_free(&options);
	if (fflush(stdout)) {
		perror("shunt-loader: cannot write");
		code = LOADER_FAILED;
	}
	return code;
}

int main(int argc, char **argv)
{
	char message[128];

	if (argc < 2)
		return loader_usage(false, "a verb is missing (see: shunt-loader --help)");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help();
	if (!strcmp(argv[1], "--version")) {
		printf("shunt-loader " SHUNT_VERSION "\n");
		return LOADER_OK;
	}
	for (size_t i = 0; i < N_VERBS; i++)
		if (!strcmp(argv[1], verbs[i].name))
			return run((enum loader_verb)i, argc - 1, argv + 1);
	snprintf(message, sizeof(message), "\"%.60s\" is no verb (see: shunt-loader --help)", argv[1]);
	return loader_usage(false, message);
}
