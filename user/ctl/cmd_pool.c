/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl pool, but for its table */
#include <stdint.h>
#include <string.h>

#include "object.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const struct ctl_column list_columns[] = {
	{"POOL", "name", CTL_TEXT, NULL},	    {"ALGORITHM", "algorithm", CTL_TEXT, NULL},
	{"SLOTS", "slots", CTL_NUMBER, NULL},	    {"BACKENDS", "backends", CTL_NUMBER, NULL},
	{"SERVICES", "services", CTL_NUMBER, NULL}, {"PUBLISHED", "published", CTL_TEXT, NULL},
	{"EPOCH", "epoch", CTL_NUMBER, NULL},	    {"DIGEST", "digest", CTL_TEXT, NULL},
	{"SINCE", "activated", CTL_TIME, NULL},	    {"IN TRANSITION", "tracked", CTL_NUMBER, NULL},
};

static const struct ctl_column show_columns[] = {
	{"pool", "name", CTL_TEXT, NULL},
	{"algorithm", "algorithm", CTL_TEXT, NULL},
	{"slots", "slots", CTL_NUMBER, NULL},
	{"encapsulation", "encapsulation", CTL_TEXT, NULL},
	{"UDP port", "port", CTL_NUMBER, NULL},
	{"UDP6 checksum", "udp6_checksum", CTL_TEXT, NULL},
	{"IPv4 source", "source4", CTL_TEXT, NULL},
	{"IPv6 source", "source6", CTL_TEXT, NULL},
	{"backends", "backends", CTL_NUMBER, NULL},
	{"services", "services", CTL_NUMBER, NULL},
	{"published", "published", CTL_TEXT, NULL},
	{"epoch", "epoch", CTL_NUMBER, NULL},
	{"phase", "phase", CTL_NUMBER, NULL},
	{"digest", "digest", CTL_TEXT, NULL},
	{"since", "activated", CTL_TIME, NULL},
	{"connections", "connections", CTL_TEXT, NULL},
	{"settle", "settle", CTL_TEXT, NULL},
	{"learn", "learn", CTL_TEXT, NULL},
	{"drain timeout", "drain_timeout", CTL_TEXT, NULL},
	{"slow start", "slow_start", CTL_TEXT, NULL},
	{"slots in transition", "tracked", CTL_NUMBER, NULL},
	{"not settled", "unsettled", CTL_NUMBER, NULL},
	{"without room", "without_room", CTL_NUMBER, NULL},
	{"next settle in", "settles_in", CTL_TEXT, NULL},
	{"settling waits", "settling_waits", CTL_TEXT, NULL},
	{"entries half", "entries_half", CTL_NUMBER, NULL},
	{"entries adopted", "entries_adopted", CTL_NUMBER, NULL},
	{"entries live", "entries_live", CTL_NUMBER, NULL},
	{"entries closing", "entries_closing", CTL_NUMBER, NULL},
	{"base hits a second", "base_rate", CTL_NUMBER, NULL},
	{"base hits in all", "base_packets", CTL_NUMBER, NULL},
	{"buckets of the flow table", "range_buckets", CTL_NUMBER, NULL},
	{"bytes of the flow table", "range_bytes", CTL_NUMBER, NULL},
	{"insertions", "inserted", CTL_NUMBER, NULL},
	{"refused", "refused", CTL_NUMBER, NULL},
	{"replaced", "replaced", CTL_NUMBER, NULL},
};

static const struct ctl_object pools = {
	.kind = "pool",
	.method = "PoolList",
	.rows = "pools",
	.word = "NAME",
	.list_doc = "Lists the pools, with the epoch and digest of the table in force.",
	.show_doc = "Shows a pool.",
	.del_doc = "Deletes a pool that no service uses, and its backends.",
	.del_method = "PoolDel",
	.list = list_columns,
	.n_list = LENGTH(list_columns),
	.show = show_columns,
	.n_show = LENGTH(show_columns),
	.name = ctl_object_name,
};

static int list(int argc, char **argv)
{
	return ctl_object_list(&pools, argc, argv);
}

static int show(int argc, char **argv)
{
	return ctl_object_show(&pools, argc, argv);
}

static int del(int argc, char **argv)
{
	return ctl_object_del(&pools, argc, argv);
}

/* ---- add ---- */

enum {
	OPTION_ALGORITHM = 256,
	OPTION_SLOTS,
	OPTION_BALANCE,
	OPTION_VNODES,
	OPTION_ENCAPSULATION,
	OPTION_PORT,
	OPTION_CHECKSUM,
	OPTION_SOURCE,
};

struct add {
	struct ctl_words words;
	const char *algorithm, *encapsulation, *checksum, *source4, *source6;
	struct ctl_change_options change;
	bool has_slots, has_vnodes;
	json_int_t slots, vnodes, port; /* port: 0 if not given */
	double balance;			/* 0: not given */
};

static const struct argp_option add_options[] = {
	{"algorithm", OPTION_ALGORITHM, "NAME", 0, "how its table is built (maglev)", 0},
	{"slots", OPTION_SLOTS, "N", 0, "size of its table, a prime (65537)", 0},
	{"balance", OPTION_BALANCE, "B", 0, "rendezvous, ring: no share above B (1.05) times its quota", 0},
	{"vnodes", OPTION_VNODES, "V", 0, "ring: virtual nodes for each unit of weight (200)", 0},
	{"encapsulation", OPTION_ENCAPSULATION, "TYPE", 0,
	 "how packets are sent to backends: ipip (the default), gue, l2", 0},
	{"port", OPTION_PORT, "PORT", 0, "gue: UDP port on the backends (6080)", 0},
	{"udp6-checksum", OPTION_CHECKSUM, "WORD", 0, "gue to IPv6 addresses: computed (the default) or zero", 0},
	{"source", OPTION_SOURCE, "SOURCE", 0,
	 "outer source, an address or a prefix to choose from; once for each family", 0},
	{},
};

static error_t set_source(struct add *add, const char *address, const struct argp_state *state)
{
	bool v6 = strchr(address, ':');
	const char **source = v6 ? &add->source6 : &add->source4;

	if (*source)
		return ctl_usage(state, "--source %s: there is an %s source already, %s", address, v6 ? "IPv6" : "IPv4",
				 *source);
	*source = address;
	return 0;
}

static error_t parse_add(int key, char *arg, struct argp_state *state)
{
	struct add *add = state->input;

	switch (key) {
	case OPTION_ALGORITHM:
		add->algorithm = arg;
		return 0;
	case OPTION_SLOTS:
		add->has_slots = true;
		return ctl_number(arg, &add->slots) ? ctl_usage(state, "--slots %s: give a whole number", arg) : 0;
	case OPTION_BALANCE:
		return ctl_decimal(state, "balance", arg, 1, 100, &add->balance);
	case OPTION_VNODES:
		add->has_vnodes = true;
		return ctl_number(arg, &add->vnodes) ? ctl_usage(state, "--vnodes %s: give a whole number", arg) : 0;
	case OPTION_ENCAPSULATION:
		add->encapsulation = arg;
		return 0;
	case OPTION_PORT:
		if (ctl_number(arg, &add->port) || add->port < 1 || add->port > UINT16_MAX)
			return ctl_usage(state, "--port %s: give a UDP port from 1 to 65535", arg);
		return 0;
	case OPTION_CHECKSUM:
		add->checksum = arg;
		return 0;
	case OPTION_SOURCE:
		return set_source(add, arg, state);
	case ARGP_KEY_INIT:
		return ctl_change_init(state, &add->change);
	default:
		return ctl_word(&add->words, key, arg, state);
	}
}

static int add(int argc, char **argv)
{
	static const char *const names[] = {"NAME", NULL};
	static const struct argp_child children[] = {CTL_CHANGE, CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = add_options,
		.parser = parse_add,
		.args_doc = "NAME",
		.doc = "Adds a pool without backends.",
		.children = children,
	};
	struct add args = {.words = {.names = names, .required = 1}};
	json_t *parameters;
	int code = ctl_parse(&argp, argc, argv, NULL, &args);

	if (code)
		return code;
	parameters = json_object();
	ctl_set_text(parameters, "name", args.words.value[0]);
	ctl_set_text(parameters, "algorithm", args.algorithm);
	ctl_set_text(parameters, "encapsulation", args.encapsulation);
	ctl_set_text(parameters, "udp6_checksum", args.checksum);
	if (args.port)
		json_object_set_new(parameters, "port", json_integer(args.port));
	ctl_set_text(parameters, "source4", args.source4);
	ctl_set_text(parameters, "source6", args.source6);
	if (args.has_slots)
		json_object_set_new(parameters, "slots", json_integer(args.slots));
	if (args.balance > 0)
		json_object_set_new(parameters, "balance_percent",
				    json_integer((json_int_t)(args.balance * 100 + 0.5)));
	if (args.has_vnodes)
		json_object_set_new(parameters, "vnodes", json_integer(args.vnodes));
	return ctl_change("PoolAdd", parameters, &args.change);
}

int cmd_pool(int argc, char **argv)
{
	static const struct ctl_verb verbs[] = {
		{"list", list, "", "all pools, their epochs and digests"},
		{"show", show, "NAME", "one pool"},
		{"table", cmd_pool_table, "NAME [--slots]", "who has how many slots, or which"},
		{"add", add, "NAME [--slots N] ...", "add a pool"},
		{"del", del, "NAME [--ignore-missing] [--wait]", "delete a pool that no service uses"},
	};

	return ctl_dispatch(verbs, LENGTH(verbs), "Pools: sets of backends behind services.", argc, argv);
}
