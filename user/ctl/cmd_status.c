/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl status: one screen for whoever was woken up. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl.h"
#include "health.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define OPTION_CHECK 256
#define PROBLEMS_ON_SCREEN 8

struct status {
	struct ctl_words words;
	bool check;
};

static json_int_t integer(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));

	return value && *value ? value : "-";
}

/* ---- what is asked ---- */

/* The daemon's answers; rows are borrowed from the replies. */
struct answers {
	json_t *status, *pools, *backends, *counters;
	const json_t *pool_rows, *backend_rows, *counter_rows;
	const json_t *problems; /* member of `status`: the daemon's and those of health.h */
};

static void forget(struct answers *answers)
{
	json_decref(answers->status);
	json_decref(answers->pools);
	json_decref(answers->backends);
	json_decref(answers->counters);
}

static int ask(struct answers *answers)
{
	/* Pools count their backends: of thousands only those with a problem are fetched. */
	json_t *without_way = json_pack("{s:b}", "without_way", 1);
	int code = ctl_call("Status", NULL, &answers->status);

	if (!code)
		code = ctl_rows("PoolList", NULL, "pools", &answers->pools, &answers->pool_rows);
	if (!code)
		code = ctl_rows("BackendList", json_incref(without_way), "backends", &answers->backends,
				&answers->backend_rows);
	if (!code)
		code = ctl_rows("Counters", NULL, "counters", &answers->counters, &answers->counter_rows);
	json_decref(without_way);
	if (code)
		return code;
	health_judge(answers->status, answers->backend_rows, answers->counter_rows);
	answers->problems = json_object_get(answers->status, "problems");
	return CTL_OK;
}

/* ---- the head of the screen ---- */

static void print_problems(const json_t *problems, const char *indent, size_t max)
{
	size_t n = json_array_size(problems);

	for (size_t i = 0; i < n && i < max; i++)
		printf("%s%s\n", indent, json_string_value(json_array_get(problems, i)) ?: "?");
	if (n > max)
		printf("%sand %zu more (status --check lists all)\n", indent, n - max);
}

static void print_interfaces(const json_t *interfaces)
{
	const json_t *row;
	size_t i;

	printf("%-10s ", "interfaces");
	json_array_foreach (interfaces, i, row)
		printf("%s%s (%s)", i ? ", " : "", text(row, "interface"), text(row, "mode"));
	printf("%s\n", json_array_size(interfaces) ? "" : json_is_array(interfaces) ? "none" : "only root can tell");
}

static void print_uptime(json_int_t seconds)
{
	if (seconds >= 86400)
		printf("%" JSON_INTEGER_FORMAT "d ", seconds / 86400);
	printf("%02d:%02d:%02d", (int)(seconds / 3600 % 24), (int)(seconds / 60 % 60), (int)(seconds % 60));
}

static void print_use(const json_t *status, const char *name)
{
	printf("%-10s %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT "\n", name,
	       integer(json_object_get(status, "used"), name), integer(json_object_get(status, "capacities"), name));
}

static void print_pending(const json_t *pending)
{
	json_int_t left = integer(pending, "deadline") - (json_int_t)time(NULL);

	if (json_is_object(pending))
		printf("%-10s back to revision %" JSON_INTEGER_FORMAT " in %" JSON_INTEGER_FORMAT
		       " s, unless it is confirmed\n",
		       "unconfirmed", integer(pending, "back_to"), left > 0 ? left : 0);
}

static void print_announce(const json_t *announce)
{
	if (json_is_object(announce))
		printf("%-10s %" JSON_INTEGER_FORMAT " of %" JSON_INTEGER_FORMAT " addresses", "announced",
		       integer(announce, "announced"), integer(announce, "addresses"));
	if (json_is_integer(json_object_get(announce, "table")))
		printf(", in table %" JSON_INTEGER_FORMAT, integer(announce, "table"));
	if (json_is_string(json_object_get(announce, "hook")))
		printf(", by hook %s", text(announce, "hook"));
	if (json_is_object(announce))
		putchar('\n');
}

static void print_drain(const json_t *drain)
{
	static const struct ctl_column since = {"", "since", CTL_TIME, NULL};
	char *cell = json_is_object(drain) ? ctl_cell(drain, &since) : NULL;

	if (cell)
		printf("%-10s since %s by %s: %s\n", "DRAINED", cell, text(drain, "user"), text(drain, "why"));
	free(cell);
}

static void print_flows(const json_t *table)
{
	double buckets = (double)integer(table, "buckets");

	printf("%-10s %" JSON_INTEGER_FORMAT " recorded, %.1f%% of the flow table in use (%.1f MiB)\n", "flows",
	       integer(table, "entries"), buckets > 0 ? 100.0 * (double)integer(table, "used_buckets") / buckets : 0.0,
	       (double)integer(table, "bytes") / (1 << 20));
}

static void print_head(const struct answers *answers)
{
	const json_t *status = answers->status;
	size_t n = json_array_size(answers->problems);

	printf("%-10s %s: ", "instance", text(status, "instance"));
	if (n)
		printf("%zu PROBLEM%s\n", n, n > 1 ? "S" : "");
	else
		printf("healthy\n");
	printf("%-10s shuntd %s, pid %" JSON_INTEGER_FORMAT ", ABI %" JSON_INTEGER_FORMAT ", up ", "daemon",
	       text(status, "daemon_version"), integer(status, "pid"), integer(status, "abi"));
	print_uptime(integer(status, "uptime"));
	printf("\n%-10s %s, revision %" JSON_INTEGER_FORMAT ", state in %s\n", "document", text(status, "document"),
	       integer(status, "revision"), text(status, "state_dir"));
	print_pending(json_object_get(status, "pending"));
	print_interfaces(json_object_get(status, "interfaces"));
	print_drain(json_object_get(status, "self_drain"));
	print_announce(json_object_get(status, "announce"));
	print_use(status, "services");
	print_use(status, "addresses");
	print_use(status, "pools");
	print_use(status, "backends");
	print_flows(json_object_get(status, "flow_table"));
	printf("%-10s %.1f MiB for maps, %.1f MiB for counters\n", "memory",
	       (double)integer(status, "memory_bytes") / (1 << 20),
	       (double)integer(status, "memory_per_cpu_bytes") / (1 << 20));
	if (n) {
		printf("\nPROBLEMS\n");
		print_problems(answers->problems, "  ", PROBLEMS_ON_SCREEN);
	}
}

/* ---- pools, with how many of their backends can be reached ---- */

static const struct ctl_column pool_columns[] = {
	{"POOL", "name", CTL_TEXT, NULL},
	{"SERVICES", "services", CTL_NUMBER, NULL},
	{"BACKENDS", "backends", CTL_NUMBER, NULL},
	{"WITH SLOTS", "with_slots", CTL_NUMBER, NULL},
	{"REACHABLE", "reachable", CTL_NUMBER, NULL},
	{"EPOCH", "epoch", CTL_NUMBER, NULL},
	{"DIGEST", "digest", CTL_TEXT, NULL},
	{"SINCE", "activated", CTL_TIME, NULL},
};

static int print_pools(const json_t *pools)
{
	if (!json_array_size(pools))
		return CTL_OK;
	putchar('\n');
	return ctl_print_table(pools, pool_columns, LENGTH(pool_columns));
}

/* ---- where packets went ---- */

static const struct ctl_column counter_columns[] = {
	{"COUNTER", "name", CTL_TEXT, NULL},
	{"PACKETS", "packets", CTL_NUMBER, NULL},
	{"MEANING", "description", CTL_LONG, NULL},
};

static int print_counters(const json_t *counters)
{
	json_t *shown = json_array(), *counter;
	size_t i;
	int code = CTL_OK;

	json_array_foreach (counters, i, counter)
		if (integer(counter, "packets") && strcmp(text(counter, "class"), "pass") != 0)
			json_array_append(shown, counter);
	if (json_array_size(shown)) {
		putchar('\n');
		code = ctl_print_table(shown, counter_columns, LENGTH(counter_columns));
	}
	json_decref(shown);
	return code;
}

static int screen(const struct answers *answers)
{
	int code;

	print_head(answers);
	code = print_pools(answers->pool_rows);
	return code ? code : print_counters(answers->counter_rows);
}

static void check(const json_t *problems)
{
	if (json_array_size(problems))
		print_problems(problems, "", SIZE_MAX);
	else
		printf("healthy\n");
}

static int show(const struct answers *answers, bool only_check)
{
	int code = CTL_OK;

	if (ctl_options.json)
		ctl_print_json(json_incref(answers->status));
	else if (only_check)
		check(answers->problems);
	else
		code = screen(answers);
	return !code && only_check && json_array_size(answers->problems) ? CTL_INVALID : code;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct status *status = state->input;

	if (key != OPTION_CHECK)
		return ctl_word(&status->words, key, arg, state);
	status->check = true;
	return 0;
}

int cmd_status(int argc, char **argv)
{
	static const char *const names[] = {NULL};
	static const struct argp_option options[] = {
		{"check", OPTION_CHECK, NULL, 0, "only say what is wrong, and exit 1 if anything is", 0},
		{},
	};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Shows on one screen how the load balancer is: the daemon, problems, pools, and why packets "
		       "were "
		       "forwarded or dropped.",
		.children = children,
	};
	struct status args = {.words = {.names = names}};
	struct answers answers = {};
	int code = ctl_parse(&argp, argc, argv, NULL, &args);

	if (code)
		return code;
	code = ask(&answers);
	if (!code)
		code = show(&answers, args.check);
	forget(&answers);
	return code;
}
