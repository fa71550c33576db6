/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntd: the daemon. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon.h"
#include "log.h"
#include "version.h"

#define EXIT_USAGE 2
#define ADMIN_GROUP "shunt"
#define STATE_ROOT "/var/lib/shunt"
#define HOOKS_DIR "/etc/shunt/hooks"

const char *argp_program_version = "shuntd " SHUNT_VERSION;

enum {
	OPT_INSTANCE = 256,
	OPT_STATE_DIR,
	OPT_LOG_LEVEL,
	OPT_HASH_KEY_FILE,
	OPT_ADMIN_GROUP,
	OPT_OTHERS,
	OPT_HOOKS_DIR,
	OPT_SERVICES,
	OPT_ADDRESSES,
	OPT_POOLS,
	OPT_BACKENDS,
	OPT_FLOWS
};

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "the document: applied at start if it changed since it was last applied", 0},
	{"instance", OPT_INSTANCE, "NAME", 0, "of several on one host (default: " SHUNT_INSTANCE_DEFAULT ")", 0},
	{"state-dir", OPT_STATE_DIR, "DIR", 0, "where what is applied is kept (default: " STATE_ROOT "/<instance>)", 0},
	{"hash-key-file", OPT_HASH_KEY_FILE, "FILE", 0,
	 "the key of a first document that says \"hash-key: keep\", as exported ones do", 0},
	{"admin-group", OPT_ADMIN_GROUP, "NAME", 0,
	 "whose members may change things, as root may (default: " ADMIN_GROUP ")", 0},
	{"others", OPT_OTHERS, "WHAT", 0, "what everybody else may do: read (the default) or nothing", 0},
	{"log-level", OPT_LOG_LEVEL, "LEVEL", 0, "error, warning, info or debug (default: info)", 0},
	{"hooks-dir", OPT_HOOKS_DIR, "DIR", 0, "programs that health checks may run (default: " HOOKS_DIR ")", 0},
	{NULL, 0, NULL, 0, "Capacities, fixed when the instance's maps are created:", 1},
	{"services", OPT_SERVICES, "N", 0, "service entries, one for each port of each service", 1},
	{"addresses", OPT_ADDRESSES, "N", 0, "service addresses", 1},
	{"pools", OPT_POOLS, "N", 0, NULL, 1},
	{"backends", OPT_BACKENDS, "N", 0, NULL, 1},
	{"flows", OPT_FLOWS, "N", 0, NULL, 1},
	{},
};

static uint32_t number(const char *text, struct argp_state *state, const char *option)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !value || value > UINT32_MAX)
		argp_error(state, "--%s: \"%s\" is not a number above 0", option, text);
	return (uint32_t)value;
}

static void set_log_level(const char *word, struct argp_state *state)
{
	enum log_level level = LOG_INFO;

	if (log_level_parse(word, &level))
		argp_error(state, "--log-level: \"%s\" is none of error, warning, info, debug", word);
	log_set_level(level);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct daemon_options *out = state->input;

	switch (key) {
	case 'c':
		out->file = arg;
		break;
	case OPT_INSTANCE:
		out->instance = arg;
		break;
	case OPT_STATE_DIR:
		if (strlen(arg) >= sizeof(out->state_dir))
			argp_error(state, "--state-dir: the path is too long");
		snprintf(out->state_dir, sizeof(out->state_dir), "%s", arg);
		break;
	case OPT_HASH_KEY_FILE:
		if (arg[0] != '/')
			argp_error(state, "--hash-key-file: give the whole path, beginning with \"/\"");
		out->hash_key_file = arg;
		break;
	case OPT_ADMIN_GROUP:
		out->admin_group = arg;
		break;
	case OPT_OTHERS:
		if (strcmp(arg, "read") != 0 && strcmp(arg, "nothing") != 0)
			argp_error(state, "--others: \"%s\" is neither read nor nothing", arg);
		out->only_admins = !strcmp(arg, "nothing");
		break;
	case OPT_LOG_LEVEL:
		set_log_level(arg, state);
		break;
	case OPT_SERVICES:
		out->capacities.services = number(arg, state, "services");
		break;
	case OPT_ADDRESSES:
		out->capacities.addresses = number(arg, state, "addresses");
		break;
	case OPT_POOLS:
		out->capacities.pools = number(arg, state, "pools");
		break;
	case OPT_BACKENDS:
		out->capacities.backends = number(arg, state, "backends");
		break;
	case OPT_FLOWS:
		out->capacities.flows = number(arg, state, "flows");
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\" is no option: the document is named by -c", arg);
		break;
	case OPT_HOOKS_DIR:
		out->hooks_dir = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "The daemon of shunt, a layer-4 load balancer: from a document to the tables that the packet "
		       "path "
		       "reads.  Packets are forwarded without it too.\v"
		       "Exit status: 0 ended by a signal, 1 invalid or refused, 2 usage.",
	};
	static struct daemon_options chosen = {
		.instance = SHUNT_INSTANCE_DEFAULT, .admin_group = ADMIN_GROUP, .hooks_dir = HOOKS_DIR};

	argp_err_exit_status = EXIT_USAGE;
	setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
	if (argp_parse(&argp, argc, argv, 0, NULL, &chosen))
		return EXIT_USAGE;
	if (!*chosen.state_dir)
		snprintf(chosen.state_dir, sizeof(chosen.state_dir), STATE_ROOT "/%s", chosen.instance);
	return daemon_run(&chosen);
}
