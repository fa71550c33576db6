/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl status: one screen for whoever was woken up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define OPTION_CHECK 256

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

static bool is_healthy(const json_t *status)
{
	return json_is_true(json_object_get(status, "healthy")) &&
	       !json_array_size(json_object_get(status, "problems"));
}

static void print_problems(const json_t *status, const char *indent)
{
	const json_t *problems = json_object_get(status, "problems"), *problem;
	size_t i;

	json_array_foreach(problems, i, problem) if (json_is_string(problem))
		printf("%s%s\n", indent, json_string_value(problem));
	if (!json_array_size(problems))
		printf("%sshuntd says that it is not healthy, and not why: see its log\n", indent);
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

static void print_head(const json_t *status)
{
	size_t n = json_array_size(json_object_get(status, "problems"));

	if (is_healthy(status))
		printf("%-10s %s: healthy\n", "instance", text(status, "instance"));
	else
		printf("%-10s %s: %zu PROBLEM%s\n", "instance", text(status, "instance"), n ? n : 1, n > 1 ? "S" : "");
	printf("%-10s shuntd %s, pid %" JSON_INTEGER_FORMAT ", ABI %" JSON_INTEGER_FORMAT ", up ", "daemon",
	       text(status, "daemon_version"), integer(status, "pid"), integer(status, "abi"));
	print_uptime(integer(status, "uptime"));
	printf("\n%-10s %s, revision %" JSON_INTEGER_FORMAT ", state in %s\n", "document", text(status, "document"),
	       integer(status, "revision"), text(status, "state_dir"));
	print_use(status, "services");
	print_use(status, "addresses");
	print_use(status, "pools");
	print_use(status, "backends");
	printf("%-10s %.1f MiB for maps, %.1f MiB for counters\n", "memory",
	       (double)integer(status, "memory_bytes") / (1 << 20),
	       (double)integer(status, "memory_per_cpu_bytes") / (1 << 20));
	if (!is_healthy(status)) {
		printf("\nPROBLEMS\n");
		print_problems(status, "  ");
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

static void count_up(json_t *pool, const char *key, bool one)
{
	json_object_set_new(pool, key, json_integer(integer(pool, key) + one));
}

static int print_pools(const json_t *pools, const json_t *backends)
{
	json_t *index = json_object(), *pool;
	const json_t *backend;
	size_t i;

	json_array_foreach(pools, i, pool)
	{
		json_object_set(index, text(pool, "name"), pool);
		count_up(pool, "with_slots", false);
		count_up(pool, "reachable", false);
	}
	json_array_foreach(backends, i, backend)
	{
		pool = json_object_get(index, text(backend, "pool"));
		if (!pool)
			continue;
		count_up(pool, "with_slots", integer(backend, "slots") > 0);
		count_up(pool, "reachable", json_is_true(json_object_get(backend, "reachable")));
	}
	json_decref(index);
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

	json_array_foreach(counters, i,
			   counter) if (integer(counter, "packets") && strcmp(text(counter, "class"), "pass"))
		json_array_append(shown, counter);
	if (json_array_size(shown)) {
		putchar('\n');
		code = ctl_print_table(shown, counter_columns, LENGTH(counter_columns));
	}
	json_decref(shown);
	return code;
}

static int screen(const json_t *status)
{
	json_t *pools = NULL, *backends = NULL, *counters = NULL;
	const json_t *pool_rows, *backend_rows, *counter_rows;
	int code = ctl_rows("PoolList", NULL, "pools", &pools, &pool_rows);

	if (!code)
		code = ctl_rows("BackendList", NULL, "backends", &backends, &backend_rows);
	if (!code)
		code = ctl_rows("Counters", NULL, "counters", &counters, &counter_rows);
	if (!code) {
		print_head(status);
		code = print_pools(pool_rows, backend_rows);
	}
	if (!code)
		code = print_counters(counter_rows);
	json_decref(pools);
	json_decref(backends);
	json_decref(counters);
	return code;
}

static int check(const json_t *status)
{
	if (is_healthy(status))
		printf("healthy\n");
	else
		print_problems(status, "");
	return CTL_OK;
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
	json_t *status;
	int code = ctl_parse(&argp, argc, argv, NULL, &args);

	if (!code)
		code = ctl_call("Status", NULL, &status);
	if (code)
		return code;
	if (ctl_options.json)
		ctl_print_json(json_incref(status));
	else
		code = args.check ? check(status) : screen(status);
	if (!code && args.check && !is_healthy(status))
		code = CTL_INVALID;
	json_decref(status);
	return code;
}
