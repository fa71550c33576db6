/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command line: one argp for each verb, with children for what several have. */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "loader.h"

enum {
	OPTION_INSTANCE = 'i',
	OPTION_JSON = 'j',
	OPTION_ROLE = 256,
	OPTION_MODE,
	OPTION_SOURCE,
	OPTION_DESTINATION,
	OPTION_GUE_PORT,
	OPTION_SERVICES,
	OPTION_ADDRESSES,
	OPTION_POOLS,
	OPTION_BACKENDS,
	OPTION_FLOWS,
};

static const struct argp_option common_options[] = {
	{"instance", OPTION_INSTANCE, "NAME", 0, "the instance (\"" SHUNT_INSTANCE_DEFAULT "\"; status: all)", 0},
	{},
};
static const struct argp_option capacity_options[] = {
	{NULL, 0, NULL, 0, "Capacities, fixed when the maps are created; only upgrade changes them:", 1},
	{"services", OPTION_SERVICES, "N", 0, "service entries, one for each port of each service", 0},
	{"addresses", OPTION_ADDRESSES, "N", 0, "distinct service addresses", 0},
	{"pools", OPTION_POOLS, "N", 0, "pools", 0},
	{"backends", OPTION_BACKENDS, "N", 0, "backends of all pools", 0},
	{"flows", OPTION_FLOWS, "N", 0, "flows in transition", 0},
	{},
};
static const struct argp_option attach_options[] = {
	{"role", OPTION_ROLE, "lb|decap", 0, "balance (lb, the default), or unwrap on a backend (decap)", 0},
	{"mode", OPTION_MODE, "native|generic|auto", 0,
	 "in the driver (native, the default), in the stack (generic), or native with generic as a fallback (auto)", 0},
	{"allow-source", OPTION_SOURCE, "PREFIX", 0,
	 "decap: accept tunnel packets from there (repeatable; \"none\" denies all, which is how it begins)", 0},
	{"allow-destination", OPTION_DESTINATION, "PREFIX", 0,
	 "decap: unwrap packets to there (repeatable; \"none\" denies all, which is how it begins)", 0},
	{"gue-port", OPTION_GUE_PORT, "PORT", 0,
	 "decap: UDP port of GUE packets (6080); every packet to it is taken for one; 0 unwraps no UDP", 0},
	{},
};
static const struct argp_option status_options[] = {
	{"json", OPTION_JSON, NULL, 0, "JSON, errors too", 0},
	{},
};

/* Refuse the command line; argp_error() would not speak JSON. */
static error_t refuse(const struct argp_state *state, const char *option, const char *arg, const char *rule)
{
	const struct loader_options *options = state->input;
	char message[256];

	snprintf(message, sizeof(message), "%s%s%.80s: %s", option, *arg ? " " : "", arg, rule);
	exit(loader_usage(options->json, message));
}

static error_t set_capacity(struct argp_state *state, const char *option, const char *arg, uint32_t *out)
{
	struct loader_options *options = state->input;
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end || errno || !value)
		return refuse(state, option, arg, "give a whole number above 0");
	*out = value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
	options->capacity_given = true;
	return 0;
}

static error_t add_prefix(struct argp_state *state, const char *option, const char *arg, struct loader_list *list)
{
	struct shunt_prefix prefix, *grown;

	list->given = true;
	if (!strcmp(arg, "none"))
		return 0;
	if (prefix_parse(arg, &prefix))
		return refuse(
			state, option, arg,
			"no prefix; give an address or address/bits (192.0.2.0/24, 2001:db8::/32) with no bit set "
			"beyond its length, or \"none\"");
	grown = reallocarray(list->prefixes, list->count + 1, sizeof(*grown));
	if (!grown)
		return ENOMEM;
	list->prefixes = grown;
	grown[list->count++] = prefix;
	return 0;
}

static error_t set_gue_port(struct argp_state *state, const char *arg)
{
	struct loader_options *options = state->input;
	unsigned long value;
	char *end;

	value = strtoul(arg, &end, 10);
	if (*arg < '0' || *arg > '9' || *end || value > UINT16_MAX)
		return refuse(state, "--gue-port", arg, "give a UDP port, or 0 for none");
	options->gue_port = (uint32_t)value;
	options->gue_port_given = true;
	return 0;
}

static error_t set_role(struct argp_state *state, const char *arg)
{
	struct loader_options *options = state->input;

	for (enum program_role role = PROGRAM_LB; role <= PROGRAM_DECAP; role++) {
		if (strcmp(arg, attach_role_name(role)) != 0)
			continue;
		options->role = role;
		return 0;
	}
	return refuse(state, "--role", arg, "give lb or decap");
}

static error_t set_mode(struct argp_state *state, const char *arg)
{
	struct loader_options *options = state->input;

	for (enum attach_mode mode = ATTACH_NATIVE; mode <= ATTACH_AUTO; mode++) {
		if (mode == ATTACH_OFFLOAD || strcmp(arg, attach_mode_name(mode)) != 0)
			continue;
		options->mode = mode;
		return 0;
	}
	return refuse(state, "--mode", arg, "give native, generic or auto");
}

static error_t parse_capacity(int key, char *arg, struct argp_state *state)
{
	struct loader_options *options = state->input;
	struct maps_capacities *want = &options->capacities;

	switch (key) {
	case OPTION_SERVICES:
		return set_capacity(state, "--services", arg, &want->services);
	case OPTION_ADDRESSES:
		return set_capacity(state, "--addresses", arg, &want->addresses);
	case OPTION_POOLS:
		return set_capacity(state, "--pools", arg, &want->pools);
	case OPTION_BACKENDS:
		return set_capacity(state, "--backends", arg, &want->backends);
	case OPTION_FLOWS:
		return set_capacity(state, "--flows", arg, &want->flows);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
	struct loader_options *options = state->input;

	if (key != OPTION_INSTANCE)
		return ARGP_ERR_UNKNOWN;
	options->instance = arg;
	return 0;
}

static const struct argp common_argp = {common_options, parse_common, NULL, NULL, NULL, NULL, NULL};
static const struct argp capacity_argp = {capacity_options, parse_capacity, NULL, NULL, NULL, NULL, NULL};
static const struct argp_child common_child[] = {{&common_argp, 0, NULL, 0}, {}};
static const struct argp_child capacity_children[] = {{&capacity_argp, 0, NULL, 1}, {&common_argp, 0, NULL, 0}, {}};

static error_t give_input_to_children(struct argp_state *state)
{
	for (size_t i = 0; state->root_argp->children[i].argp; i++)
		state->child_inputs[i] = state->input;
	return 0;
}

/* Interfaces are what is left. */
static error_t take_names(int key, struct argp_state *state)
{
	struct loader_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		return give_input_to_children(state);
	case ARGP_KEY_ARGS:
		options->names = (const char *const *)state->argv + state->next;
		options->n_names = (size_t)(state->argc - state->next);
		return 0;
	case ARGP_KEY_NO_ARGS:
		return refuse(state, "interfaces", "", "name at least one");
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_attach(int key, char *arg, struct argp_state *state)
{
	struct loader_options *options = state->input;

	switch (key) {
	case OPTION_ROLE:
		return set_role(state, arg);
	case OPTION_MODE:
		return set_mode(state, arg);
	case OPTION_SOURCE:
		return add_prefix(state, "--allow-source", arg, &options->sources);
	case OPTION_DESTINATION:
		return add_prefix(state, "--allow-destination", arg, &options->destinations);
	case OPTION_GUE_PORT:
		return set_gue_port(state, arg);
	case ARGP_KEY_SUCCESS:
		if (options->role == PROGRAM_LB && (options->sources.given || options->destinations.given))
			return refuse(state, "--allow-source, --allow-destination", "", "only for --role decap");
		if (options->role == PROGRAM_LB && options->gue_port_given)
			return refuse(state, "--gue-port", "", "only for --role decap");
		if (options->role == PROGRAM_DECAP && options->capacity_given)
			return refuse(state, "capacities", "", "only for --role lb");
		return 0;
	default:
		return take_names(key, state);
	}
}

static error_t parse_detach(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	return take_names(key, state);
}

static error_t parse_bare(int key, char *arg, struct argp_state *state)
{
	struct loader_options *options = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		return give_input_to_children(state);
	case OPTION_JSON:
		options->json = true;
		return 0;
	case ARGP_KEY_ARG:
		return refuse(state, "argument", arg, "this verb takes none");
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argps[] = {
	[VERB_ATTACH] =
		{attach_options, parse_attach, "IFACE...",
		 "Attach to interfaces, all of them or none.  Those that have our program already get the installed "
		 "one in place.",
		 capacity_children, NULL, NULL},
	[VERB_DETACH] = {NULL, parse_detach, "IFACE...",
			 "Take our program from interfaces and check that it is gone.  Maps stay pinned.", common_child,
			 NULL, NULL},
	[VERB_STATUS] = {status_options, parse_bare, "", "Show instances, interfaces, capacities, memory.",
			 common_child, NULL, NULL},
	[VERB_UPGRADE] =
		{NULL, parse_bare, "",
		 "Put the installed programs in place on all interfaces of the instance, without losing a packet; "
		 "with capacities, onto new maps of that size that hold what the old ones held.",
		 capacity_children, NULL, NULL},
};

int loader_parse(enum loader_verb verb, int argc, char **argv, struct loader_options *options)
{
	char name[32];
	error_t error;

	argp_err_exit_status = LOADER_USAGE;
	setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
	snprintf(name, sizeof(name), "shunt-loader %.12s", argv[0]);
	argv[0] = name;
	/* Known before parsing, so that every error can be JSON. */
	for (int i = 1; i < argc && verb == VERB_STATUS; i++)
		if (!strcmp(argv[i], "-j") || !strcmp(argv[i], "--json"))
			options->json = true;
	error = argp_parse(&argps[verb], argc, argv, options->json ? ARGP_SILENT & ~ARGP_NO_HELP : 0, NULL, options);
	if (error)
		return loader_usage(options->json, error == ENOMEM
							   ? "out of memory"
							   : "unknown option (see: shunt-loader status --help)");
	return 0;
}

void loader_free(struct loader_options *options)
{
	free(options->sources.prefixes);
	free(options->destinations.prefixes);
}
