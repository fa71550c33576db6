/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl backend drain, undrain, maintenance, activate and del */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"

#define POLL_MS 500u

enum { OPTION_NOW = 256, OPTION_IGNORE_MISSING };

struct drain {
	struct ctl_words words;
	struct ctl_change_options change;
	bool now, ignore_missing;
};

static error_t parse_drain(int key, char *arg, struct argp_state *state)
{
	struct drain *drain = state->input;

	return key == ARGP_KEY_INIT ? ctl_change_init(state, &drain->change) : ctl_word(&drain->words, key, arg, state);
}

static error_t parse_del(int key, char *arg, struct argp_state *state)
{
	struct drain *drain = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		return ctl_change_init(state, &drain->change);
	case OPTION_NOW:
		drain->now = true;
		return 0;
	case OPTION_IGNORE_MISSING:
		drain->ignore_missing = true;
		return 0;
	default:
		return ctl_word(&drain->words, key, arg, state);
	}
}

static const char *const names[] = {"POOL/BACKEND", NULL};
static const struct argp_child change_children[] = {CTL_CHANGE, CTL_GLOBAL, {}};

/* Parameters that name the backend; NULL after the failure was printed. */
static json_t *named(const struct drain *drain, const char *verb, int *code)
{
	json_t *parameters = json_object();

	if (ctl_set_backend(parameters, drain->words.value[0]))
		return parameters;
	json_decref(parameters);
	*code = ctl_fail(CTL_USAGE, "Usage", "\"%s\" is not of the form POOL/BACKEND (see: %s --help)",
			 drain->words.value[0], verb);
	return NULL;
}

/* ---- waiting ---- */

/* What still names a backend. */
struct rest {
	bool gone; /* the backend itself */
	bool drains, leaves;
	json_int_t slots, bases, entries;
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static json_int_t integer(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

static int ask(const struct drain *drain, struct rest *rest)
{
	json_t *parameters = json_object(), *reply;
	const json_t *rows, *row;
	int code;

	ctl_set_backend(parameters, drain->words.value[0]);
	json_object_del(parameters, "name");
	code = ctl_rows("BackendList", parameters, "backends", &reply, &rows);
	if (code)
		return code;
	*rest = (struct rest){.gone = true};
	for (size_t i = 0; (row = json_array_get(rows, i)); i++) {
		const char *state = json_string_value(json_object_get(row, "state"));
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", json_string_value(json_object_get(row, "pool")),
			 json_string_value(json_object_get(row, "name")));
		if (strcmp(path, drain->words.value[0]) != 0)
			continue;
		*rest = (struct rest){
			.drains = json_is_integer(json_object_get(row, "draining_since")),
			.leaves = state && !strcmp(state, "leaving"),
			.slots = integer(row, "slots"),
			.bases = integer(row, "base_slots"),
			.entries = integer(row, "entries"),
		};
	}
	json_decref(reply);
	return CTL_OK;
}

static bool still_named(const struct rest *rest)
{
	return rest->slots || rest->bases || rest->entries;
}

/* What there is to wait for is not to come. */
static int taken_back(const struct drain *drain, const struct rest *rest, bool deleted)
{
	return ctl_fail(CTL_INVALID, "TakenBack",
			"%s %s: that was taken back meanwhile by undrain, activate or a document (see: shuntctl epoch "
			"list, shuntctl revision list)",
			drain->words.value[0],
			!deleted       ? "does not drain any more"
			: rest->drains ? "drains on, but is not deleted then"
				       : "is not deleted, and does not drain any more");
}

static int time_is_over(const struct drain *drain, const struct rest *rest)
{
	if (!still_named(rest))
		return ctl_fail(CTL_INVALID, "Timeout",
				"%s has drained, but is not deleted yet: \"shuntctl status\" says what keeps shuntd "
				"from it",
				drain->words.value[0]);
	return ctl_fail(CTL_INVALID, "Timeout",
			"%s still has connections, or may have: %" JSON_INTEGER_FORMAT
			" slots and %" JSON_INTEGER_FORMAT " recorded connections name it; it goes on to drain",
			drain->words.value[0], rest->slots + rest->bases, rest->entries);
}

/* Until nothing names the backend; deleted: until it is gone. */
static int wait_for(const struct drain *drain, bool deleted)
{
	const uint64_t end = ctl_options.timeout_ms ? now_ms() + ctl_options.timeout_ms : UINT64_MAX;
	struct rest rest, told = {.slots = -1};

	ctl_options.timeout_ms = 0; /* it was for the whole, not for each call */
	for (;;) {
		int code = ask(drain, &rest);

		if (code)
			return code;
		if (rest.gone || (!deleted && rest.drains && !still_named(&rest)))
			return CTL_OK;
		if (deleted ? !rest.leaves : !rest.drains)
			return taken_back(drain, &rest, deleted);
		if (!ctl_options.json &&
		    (rest.bases != told.bases || rest.entries != told.entries || rest.slots != told.slots)) {
			printf("%s: %" JSON_INTEGER_FORMAT " slots and %" JSON_INTEGER_FORMAT
			       " recorded connections still name it\n",
			       drain->words.value[0], rest.slots + rest.bases, rest.entries);
			fflush(stdout);
		}
		told = rest;
		if (now_ms() >= end)
			return time_is_over(drain, &rest);
		usleep(POLL_MS * 1000);
	}
}

/* ---- verbs ---- */

static int change(const char *method, const struct drain *drain, const char *verb, json_t **reply)
{
	int code = CTL_OK;
	json_t *parameters = named(drain, verb, &code);
	unsigned int timeout = ctl_options.timeout_ms;

	if (!parameters)
		return code;
	if (drain->now)
		json_object_set_new(parameters, "now", json_true());
	if (drain->ignore_missing)
		json_object_set_new(parameters, "ignore_missing", json_true());
	if (drain->change.wait)
		ctl_options.timeout_ms = 0;
	code = ctl_change_reply(method, parameters, &drain->change, reply);
	ctl_options.timeout_ms = timeout;
	return code;
}

static int finish(json_t *reply)
{
	if (ctl_options.json)
		return ctl_print_json(reply);
	json_decref(reply);
	return CTL_OK;
}

/* A verb that takes a backend out: --wait is for the end of its drain. */
static int take_out(const struct argp *argp, const char *method, int argc, char **argv)
{
	struct drain drain = {.words = {.names = names, .required = 1}};
	json_t *reply = NULL;
	int code = ctl_parse(argp, argc, argv, NULL, &drain);

	if (!code)
		code = change(method, &drain, argv[0], &reply);
	if (code)
		return code;
	if (drain.change.plan)
		return ctl_print_plan(reply, drain.change.exit_code);
	if (drain.change.wait)
		code = wait_for(&drain, false);
	if (code) {
		json_decref(reply);
		return code;
	}
	return finish(reply);
}

static int bring_back(const struct argp *argp, const char *method, int argc, char **argv)
{
	struct drain drain = {.words = {.names = names, .required = 1}};
	json_t *reply = NULL;
	int code = ctl_parse(argp, argc, argv, NULL, &drain);

	if (!code)
		code = change(method, &drain, argv[0], &reply);
	if (code)
		return code;
	return drain.change.plan ? ctl_print_plan(reply, drain.change.exit_code) : finish(reply);
}

int cmd_backend_drain(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_drain,
		.args_doc = "POOL/BACKEND",
		.doc = "Drains a backend: connections that it has go on, new ones go to the others. It stays so over "
		       "restarts and reloads, until it is undrained or deleted. After the pool's drain-timeout the "
		       "connections that are left go to the others, and break. With --wait the verb returns when no "
		       "slot "
		       "and no recorded connection names it any more, or after --timeout.",
		.children = change_children,
	};

	return take_out(&argp, "BackendDrain", argc, argv);
}

int cmd_backend_undrain(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_drain,
		.args_doc = "POOL/BACKEND",
		.doc = "Ends a drain: the backend gets new connections again. Takes back a deletion that waits for the "
		       "drain, too.",
		.children = change_children,
	};

	return bring_back(&argp, "BackendUndrain", argc, argv);
}

int cmd_backend_maintenance(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_drain,
		.args_doc = "POOL/BACKEND",
		.doc = "Takes a backend out for maintenance: it drains, without an end to that (drain-timeout does not "
		       "count), and stays out whatever its checks say, over restarts and documents, until it is "
		       "activated. It does not count among the backends of the pool that are down. With --wait the "
		       "verb returns when no slot and no recorded connection names it any more, or after --timeout.",
		.children = change_children,
	};

	return take_out(&argp, "BackendMaintenance", argc, argv);
}

int cmd_backend_activate(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_drain,
		.args_doc = "POOL/BACKEND",
		.doc = "Ends maintenance, or a drain: the backend gets new connections again, slowly where the pool "
		       "has a slow-start, and not before its checks pass.",
		.children = change_children,
	};

	return bring_back(&argp, "BackendActivate", argc, argv);
}

int cmd_backend_del(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"now", OPTION_NOW, NULL, 0, "at once: its connections go to the others, and break", 0},
		{"ignore-missing", OPTION_IGNORE_MISSING, NULL, 0, "no error if there is none", 0},
		{},
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_del,
		.args_doc = "POOL/BACKEND",
		.doc = "Deletes a backend. One that may have connections is drained first, and deleted when no slot "
		       "and no recorded connection names it any more; with --wait, the verb returns then, or after "
		       "--timeout.",
		.children = change_children,
	};
	struct drain drain = {.words = {.names = names, .required = 1}};
	json_t *reply = NULL;
	int code = ctl_parse(&argp, argc, argv, NULL, &drain);

	if (!code)
		code = change("BackendDel", &drain, argv[0], &reply);
	if (code)
		return code;
	if (drain.change.plan)
		return ctl_print_plan(reply, drain.change.exit_code);
	if (drain.change.wait && json_is_true(json_object_get(reply, "draining")))
		code = wait_for(&drain, true);
	if (code) {
		json_decref(reply);
		return code;
	}
	return finish(reply);
}
