/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl service */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* "192.0.2.10:80,443", "[2001:db8::10]:any": as `service add` takes it. */
static char *endpoint(const json_t *row)
{
	const char *address = json_string_value(json_object_get(row, "address"));
	const char *ports = json_string_value(json_object_get(row, "ports"));
	char *text;

	if (!address || !ports)
		return strdup("-");
	if (asprintf(&text, strchr(address, ':') ? "[%s]:%s" : "%s:%s", address, ports) < 0)
		return NULL;
	return text;
}

/* "yes", "no: why"; NULL, which shows as "-", where the document announces nothing. */
static char *announced(const json_t *row)
{
	const json_t *value = json_object_get(row, "announced");
	const char *why = json_string_value(json_object_get(row, "announced_why"));
	char *text;

	if (!json_is_boolean(value))
		return strdup("-");
	if (json_is_true(value))
		return strdup("yes");
	return asprintf(&text, "no: %s", why ? why : "?") < 0 ? NULL : text;
}

static const struct ctl_column list_columns[] = {
	{"SERVICE", "name", CTL_TEXT, NULL},	  {"PROTOCOL", "protocol", CTL_TEXT, NULL},
	{"ADDRESS", NULL, CTL_TEXT, endpoint},	  {"POOL", "pool", CTL_TEXT, NULL},
	{"PACKETS", "packets", CTL_NUMBER, NULL}, {"BYTES", "bytes", CTL_NUMBER, NULL},
};

static const struct ctl_column show_columns[] = {
	{"service", "name", CTL_TEXT, NULL},	  {"protocol", "protocol", CTL_TEXT, NULL},
	{"address", NULL, CTL_TEXT, endpoint},	  {"pool", "pool", CTL_TEXT, NULL},
	{"hash", "hash", CTL_TEXT, NULL},	  {"unknown port", "unknown_port", CTL_TEXT, NULL},
	{"echo", "echo", CTL_TEXT, NULL},	  {"announced", NULL, CTL_TEXT, announced},
	{"packets", "packets", CTL_NUMBER, NULL}, {"bytes", "bytes", CTL_NUMBER, NULL},
};

static const struct ctl_object services = {
	.kind = "service",
	.method = "ServiceList",
	.rows = "services",
	.word = "NAME",
	.list_doc = "Lists the services, with the packets and bytes that came for each.",
	.show_doc = "Shows a service.",
	.del_doc =
		"Deletes a service. Packets for its ports are then dropped, or left to the host where no service has "
		"its address any more.",
	.del_method = "ServiceDel",
	.list = list_columns,
	.n_list = LENGTH(list_columns),
	.show = show_columns,
	.n_show = LENGTH(show_columns),
	.name = ctl_object_name,
};

static int list(int argc, char **argv)
{
	return ctl_object_list(&services, argc, argv);
}

static int show(int argc, char **argv)
{
	return ctl_object_show(&services, argc, argv);
}

static int del(int argc, char **argv)
{
	return ctl_object_del(&services, argc, argv);
}

/* ---- add ---- */

enum { OPTION_POOL = 256, OPTION_HASH, OPTION_UNKNOWN_PORT, OPTION_ECHO };

struct add {
	struct ctl_words words; /* name, protocol, endpoint */
	const char *pool, *hash, *unknown_port, *echo;
	struct ctl_change_options change;
};

static const struct argp_option add_options[] = {
	{"pool", OPTION_POOL, "POOL", 0, "the pool that serves it (required)", 0},
	{"hash", OPTION_HASH, "MODE", 0, "5-tuple (the default), source, or source-port", 0},
	{"unknown-port", OPTION_UNKNOWN_PORT, "VERDICT", 0,
	 "for ports of the address that no service has: drop (the default), refuse, or pass, where the address is "
	 "local",
	 0},
	{"echo", OPTION_ECHO, "VERDICT", 0, "for pings to the address: answer (the default), forward, or drop", 0},
	{},
};

static error_t parse_add(int key, char *arg, struct argp_state *state)
{
	struct add *add = state->input;

	switch (key) {
	case OPTION_POOL:
		add->pool = arg;
		return 0;
	case OPTION_HASH:
		add->hash = arg;
		return 0;
	case OPTION_UNKNOWN_PORT:
		add->unknown_port = arg;
		return 0;
	case OPTION_ECHO:
		add->echo = arg;
		return 0;
	case ARGP_KEY_INIT:
		return ctl_change_init(state, &add->change);
	case ARGP_KEY_SUCCESS:
		return add->pool ? 0 : ctl_usage(state, "--pool POOL is missing");
	default:
		return ctl_word(&add->words, key, arg, state);
	}
}

/* "ADDRESS:PORTS" or "[ADDRESS]:PORTS" in its two parts, *address malloc'd; what they say is the daemon's to judge. */
static bool split_endpoint(const char *text, char **address, const char **ports)
{
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;
	bool brackets = length > 2 && text[0] == '[' && colon[-1] == ']';

	if (!length || !colon[1] || (!brackets && strcspn(text, ":[]") < length))
		return false;
	*address = brackets ? strndup(text + 1, length - 2) : strndup(text, length);
	*ports = colon + 1;
	return *address;
}

static int add(int argc, char **argv)
{
	static const char *const names[] = {"NAME", "PROTOCOL", "ADDRESS:PORTS", NULL};
	static const struct argp_child children[] = {CTL_CHANGE, CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = add_options,
		.parser = parse_add,
		.args_doc = "NAME tcp|udp ADDRESS:PORTS",
		.doc = "Adds a service: \"www tcp 192.0.2.10:80,443,8000-8099\", \"www6 tcp [2001:db8::10]:443\", or "
		       "\"dns udp 192.0.2.53:any\" for every port.",
		.children = children,
	};
	struct add args = {.words = {.names = names, .required = 3}};
	const char *ports;
	json_t *parameters;
	char *address;
	int code = ctl_parse(&argp, argc, argv, NULL, &args);

	if (code)
		return code;
	if (!split_endpoint(args.words.value[2], &address, &ports))
		return ctl_fail(CTL_USAGE, "Usage",
				"\"%s\": write ADDRESS:PORTS, an IPv6 address in brackets: 192.0.2.10:80,443, "
				"[2001:db8::10]:any",
				args.words.value[2]);
	parameters = json_object();
	ctl_set_text(parameters, "name", args.words.value[0]);
	ctl_set_text(parameters, "protocol", args.words.value[1]);
	ctl_set_text(parameters, "address", address);
	ctl_set_text(parameters, "ports", ports);
	ctl_set_text(parameters, "pool", args.pool);
	ctl_set_text(parameters, "hash", args.hash);
	ctl_set_text(parameters, "unknown_port", args.unknown_port);
	ctl_set_text(parameters, "echo", args.echo);
	free(address);
	return ctl_change("ServiceAdd", parameters, &args.change);
}

int cmd_service(int argc, char **argv)
{
	static const struct ctl_verb verbs[] = {
		{"list", list, "", "all services and their counters"},
		{"show", show, "NAME", "one service"},
		{"add", add, "NAME tcp|udp ADDRESS:PORTS --pool POOL ...", "add a service"},
		{"del", del, "NAME [--ignore-missing] [--wait]", "delete a service"},
	};

	return ctl_dispatch(verbs, LENGTH(verbs), "Services: what clients connect to.", argc, argv);
}
