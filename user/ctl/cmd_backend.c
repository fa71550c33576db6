/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl backend */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static char *path(const json_t *row)
{
	const char *pool = json_string_value(json_object_get(row, "pool"));
	const char *name = json_string_value(json_object_get(row, "name"));
	char *text;

	if (!pool || !name)
		return strdup("-");
	return asprintf(&text, "%s/%s", pool, name) < 0 ? NULL : text;
}

static const struct ctl_column list_columns[] = {
	{"BACKEND", NULL, CTL_TEXT, path},	 {"ADDRESS", "address", CTL_TEXT, NULL},
	{"STATE", "state", CTL_TEXT, NULL},	 {"HEALTH", "health", CTL_TEXT, NULL},
	{"WEIGHT", "weight", CTL_NUMBER, NULL},	 {"SLOTS", "slots", CTL_NUMBER, NULL},
	{"SHARE", "share", CTL_PERCENT, NULL},	 {"PACKETS", "packets", CTL_NUMBER, NULL},
	{"NEXT HOP", "nexthop", CTL_TEXT, NULL}, {"INTERFACE", "interface", CTL_TEXT, NULL},
	{"MTU", "mtu", CTL_NUMBER, NULL},	 {"MSS", "mss", CTL_NUMBER, NULL},
	{"WHY", "why", CTL_LONG, NULL},
};

static const struct ctl_column show_columns[] = {
	{"backend", NULL, CTL_TEXT, path},
	{"address", "address", CTL_TEXT, NULL},
	{"state", "state", CTL_TEXT, NULL},
	{"health", "health", CTL_TEXT, NULL},
	{"its last check", "health_why", CTL_LONG, NULL},
	{"why", "why", CTL_LONG, NULL},
	{"weight", "weight", CTL_NUMBER, NULL},
	{"of which count", "weight_percent", CTL_PERCENT, NULL},
	{"slots", "slots", CTL_NUMBER, NULL},
	{"quota", "quota", CTL_NUMBER, NULL},
	{"draining since", "draining_since", CTL_TIME, NULL},
	{"base of slots", "base_slots", CTL_NUMBER, NULL},
	{"entries", "entries", CTL_NUMBER, NULL},
	{"share", "share", CTL_PERCENT, NULL},
	{"reachable", "reachable", CTL_TEXT, NULL},
	{"next hop", "nexthop", CTL_TEXT, NULL},
	{"interface", "interface", CTL_TEXT, NULL},
	{"path MTU", "mtu", CTL_NUMBER, NULL},
	{"lowered by errors", "mtu_lowered", CTL_TEXT, NULL},
	{"errors of the path", "path_errors", CTL_NUMBER, NULL},
	{"MSS of IPv4", "mss", CTL_NUMBER, NULL},
	{"MSS of IPv6", "mss6", CTL_NUMBER, NULL},
	{"id", "id", CTL_NUMBER, NULL},
	{"generation", "generation", CTL_NUMBER, NULL},
	{"packets", "packets", CTL_NUMBER, NULL},
	{"bytes", "bytes", CTL_NUMBER, NULL},
};

static const struct ctl_object backends = {
	.kind = "backend",
	.method = "BackendList",
	.rows = "backends",
	.word = "POOL/BACKEND",
	.list_doc = "Lists the backends of all pools.",
	.show_doc = "Shows a backend: its share, and the way to it.",
	.list = list_columns,
	.n_list = LENGTH(list_columns),
	.show = show_columns,
	.n_show = LENGTH(show_columns),
	.name = ctl_set_backend,
};

static int list(int argc, char **argv)
{
	return ctl_object_list(&backends, argc, argv);
}

static int show(int argc, char **argv)
{
	return ctl_object_show(&backends, argc, argv);
}

/* ---- add and set ---- */

enum { OPTION_WEIGHT = 256 };

struct edit {
	struct ctl_words words; /* POOL/BACKEND, and to add it, its address */
	struct ctl_change_options change;
	bool has_weight;
	json_int_t weight;
};

static const struct argp_option edit_options[] = {
	{"weight", OPTION_WEIGHT, "N", 0, "its share among the pool's weights, 0 to 65535; 0 gets nothing", 0},
	{},
};

static error_t parse_edit(int key, char *arg, struct argp_state *state)
{
	struct edit *edit = state->input;

	switch (key) {
	case OPTION_WEIGHT:
		edit->has_weight = true;
		return ctl_number(arg, &edit->weight)
			       ? ctl_usage(state, "--weight %s: give a whole number from 0 to 65535", arg)
			       : 0;
	case ARGP_KEY_INIT:
		return ctl_change_init(state, &edit->change);
	default:
		return ctl_word(&edit->words, key, arg, state);
	}
}

static int change(const char *method, const struct edit *edit, const char *verb)
{
	json_t *parameters = json_object();

	if (!ctl_set_backend(parameters, edit->words.value[0])) {
		json_decref(parameters);
		return ctl_fail(CTL_USAGE, "Usage", "\"%s\" is not of the form POOL/BACKEND (see: %s --help)",
				edit->words.value[0], verb);
	}
	ctl_set_text(parameters, "address", edit->words.value[1]);
	if (edit->has_weight)
		json_object_set_new(parameters, "weight", json_integer(edit->weight));
	return ctl_change(method, parameters, &edit->change);
}

static const struct argp_child children[] = {CTL_CHANGE, CTL_GLOBAL, {}};

static int add(int argc, char **argv)
{
	static const char *const names[] = {"POOL/BACKEND", "ADDRESS", NULL};
	static const struct argp argp = {
		.options = edit_options,
		.parser = parse_edit,
		.args_doc = "POOL/BACKEND ADDRESS",
		.doc = "Adds a backend to a pool: \"web/web1 10.1.0.11 --weight 3\". It gets slots as soon as the way "
		       "to it "
		       "is known.",
		.children = children,
	};
	struct edit edit = {.words = {.names = names, .required = 2}};
	int code = ctl_parse(&argp, argc, argv, NULL, &edit);

	return code ? code : change("BackendAdd", &edit, argv[0]);
}

static int set(int argc, char **argv)
{
	static const char *const names[] = {"POOL/BACKEND", NULL};
	static const struct argp argp = {
		.options = edit_options,
		.parser = parse_edit,
		.args_doc = "POOL/BACKEND",
		.doc = "Changes a backend: \"web/web1 --weight 3\".",
		.children = children,
	};
	struct edit edit = {.words = {.names = names, .required = 1}};
	int code = ctl_parse(&argp, argc, argv, NULL, &edit);

	if (!code && !edit.has_weight)
		return ctl_fail(CTL_USAGE, "Usage", "nothing to set: give --weight N (see: %s --help)", argv[0]);
	return code ? code : change("BackendSet", &edit, argv[0]);
}

int cmd_backend(int argc, char **argv)
{
	static const struct ctl_verb verbs[] = {
		{"list", list, "", "all backends, shares, next hops"},
		{"show", show, "POOL/BACKEND", "one backend"},
		{"add", add, "POOL/BACKEND ADDRESS [--weight N] [--wait]", "add a backend to a pool"},
		{"set", set, "POOL/BACKEND --weight N [--wait]", "change a backend"},
		{"drain", cmd_backend_drain, "POOL/BACKEND [--wait]", "no new connections for it"},
		{"undrain", cmd_backend_undrain, "POOL/BACKEND [--wait]", "new connections again"},
		{"maintenance", cmd_backend_maintenance, "POOL/BACKEND [--wait]", "out, until it is activated"},
		{"activate", cmd_backend_activate, "POOL/BACKEND [--wait]", "ends maintenance and drains"},
		{"del", cmd_backend_del, "POOL/BACKEND [--now] [--ignore-missing] [--wait]",
		 "drain a backend, then delete it"},
	};

	return ctl_dispatch(verbs, LENGTH(verbs), "Backends: the servers of a pool, named POOL/BACKEND.", argc, argv);
}
