/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl flow: what is recorded of connections, read from the maps; and its list. */
#include <stdio.h>
#include <string.h>

#include "ctl.h"
#include "flow.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define LIMIT_DEFAULT 1000
#define LIMIT_MAX 1000000
#define ANY (-1)
#define STALE ((int)LENGTH(flowtable_states)) /* a filter beside enum shunt_flow_status */

/* ---- names ---- */

static json_t *name_or_number(const json_t *row, json_int_t number)
{
	const char *pool = json_string_value(json_object_get(row, "pool"));
	const char *name = json_string_value(json_object_get(row, "name"));

	if (!name)
		return json_sprintf("%" JSON_INTEGER_FORMAT, number);
	return pool ? json_sprintf("%s/%s", pool, name) : json_string(name);
}

json_t *flow_backend(const struct flow_names *names, uint32_t id)
{
	return id == SHUNT_BACKEND_NONE ? json_null() : name_or_number(ctl_row_with(names->backends, "id", id), id);
}

json_t *flow_pool(const struct flow_names *names, uint32_t index)
{
	return name_or_number(ctl_row_with(names->pools, "index", index), index);
}

json_t *flow_row(const struct flow_names *names, const struct flowtable_entry *entry)
{
	uint64_t word = entry->word;
	const char *state = entry->stale ? "stale" : flowtable_states[SHUNT_FLOW_STATUS(word)];

	return json_pack("{s:o, s:I, s:I, s:I, s:s, s:I, s:s, s:I, s:o, s:o, s:o}", "pool",
			 flow_pool(names, entry->pool), "slot", (json_int_t)entry->slot, "bucket",
			 (json_int_t)entry->bucket, "place", (json_int_t)entry->place, "protocol",
			 SHUNT_FLOW_IS_UDP(word) ? "udp" : "tcp", "fingerprint", (json_int_t)SHUNT_FLOW_FP(word),
			 "state", state, "idle_ms", (json_int_t)entry->idle_ms, "backend",
			 flow_backend(names, SHUNT_FLOW_BACKEND(word)), "owner", flow_backend(names, entry->owner),
			 "base", flow_backend(names, entry->base));
}

char *flow_seconds(const json_t *milliseconds)
{
	char *text;

	if (!json_is_integer(milliseconds))
		return strdup("-");
	return asprintf(&text, "%.1f s", (double)json_integer_value(milliseconds) / 1000) < 0 ? NULL : text;
}

char *flow_idle(const json_t *row)
{
	return flow_seconds(json_object_get(row, "idle_ms"));
}

/* ---- list ---- */

struct list {
	struct ctl_words words;
	const char *pool, *backend;
	int state; /* enum shunt_flow_status, STALE or ANY */
	json_int_t limit;
	json_int_t pool_index, backend_id; /* or ANY */
	struct flow_names names;
	json_t *rows;
	json_int_t matched;
};

static int parse_state(const char *arg, const struct argp_state *state, int *out)
{
	for (int i = 0; i < STALE; i++) {
		if (strcmp(arg, flowtable_states[i]) != 0)
			continue;
		*out = i;
		return 0;
	}
	if (strcmp(arg, "stale") != 0)
		return ctl_usage(state, "--state %s: give half-open, adopted, live, closing or stale", arg);
	*out = STALE;
	return 0;
}

static error_t parse_list(int key, char *arg, struct argp_state *state)
{
	struct list *list = state->input;

	switch (key) {
	case 'p':
		list->pool = arg;
		return 0;
	case 'b':
		list->backend = arg;
		return 0;
	case 's':
		return parse_state(arg, state, &list->state);
	case 'n':
		return ctl_number_option(state, "--limit", arg, 1, LIMIT_MAX, &list->limit);
	default:
		return ctl_word(&list->words, key, arg, state);
	}
}

/* The number of what is named; without a daemon the name is the number. */
static int resolve(const char *kind, const char *name, const json_t *rows, const char *key, json_int_t *out)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row) {
		json_t *own = name_or_number(row, 0);
		bool found = !strcmp(json_string_value(own), name);

		json_decref(own);
		if (!found)
			continue;
		*out = json_integer_value(json_object_get(row, key));
		return CTL_OK;
	}
	if (rows)
		return ctl_fail(CTL_INVALID, "NotFound", "there is no %s %s", kind, name);
	if (ctl_number(name, out))
		return ctl_fail(
			CTL_INVALID, "NotRunning",
			"no shuntd answers, so that the %s \"%s\" is not known: start it, or give the %s's number",
			kind, name, kind);
	return CTL_OK;
}

static void take(const struct flowtable_entry *entry, void *arg)
{
	struct list *list = arg;
	int state = entry->stale ? STALE : (int)SHUNT_FLOW_STATUS(entry->word);

	if ((list->pool_index != ANY && list->pool_index != entry->pool) ||
	    (list->backend_id != ANY && list->backend_id != SHUNT_FLOW_BACKEND(entry->word)) ||
	    (list->state != ANY && list->state != state))
		return;
	if (list->matched++ < list->limit)
		json_array_append_new(list->rows, flow_row(&list->names, entry));
}

static int print_list(struct list *list)
{
	static const struct ctl_column columns[] = {
		{"POOL", "pool", CTL_TEXT, NULL},	  {"SLOT", "slot", CTL_NUMBER, NULL},
		{"PROTOCOL", "protocol", CTL_TEXT, NULL}, {"STATE", "state", CTL_TEXT, NULL},
		{"IDLE", NULL, CTL_NUMBER, flow_idle},	  {"BACKEND", "backend", CTL_TEXT, NULL},
		{"OWNER", "owner", CTL_TEXT, NULL},	  {"BASE", "base", CTL_TEXT, NULL},
		{"BUCKET", "bucket", CTL_NUMBER, NULL},	  {"PLACE", "place", CTL_NUMBER, NULL},
	};
	json_int_t shown = (json_int_t)json_array_size(list->rows);
	int code;

	if (ctl_options.json)
		return ctl_print_json(json_pack("{s:O, s:I}", "flows", list->rows, "matched", list->matched));
	code = ctl_print_table(list->rows, columns, LENGTH(columns));
	if (!code && shown < list->matched)
		printf("\n%" JSON_INTEGER_FORMAT " more are not shown: see --limit.\n", list->matched - shown);
	return code;
}

static int read_list(struct list *list, struct report *report)
{
	struct flowtable table;
	struct maps maps;
	int err, code = ctl_open_maps(&maps, report);

	if (code)
		return code;
	if (list->pool)
		code = resolve("pool", list->pool, list->names.pools, "index", &list->pool_index);
	if (!code && list->backend)
		code = resolve("backend", list->backend, list->names.backends, "id", &list->backend_id);
	if (!code) {
		err = flowtable_open(&maps, &table);
		if (!err) {
			err = flowtable_each(&table, take, list);
			flowtable_close(&table);
		}
		code = err ? ctl_fail(CTL_INVALID, "Failed", "cannot read the flow table: %s", strerror(-err))
			   : print_list(list);
	}
	maps_close(&maps);
	return code;
}

static int flow_list(int argc, char **argv)
{
	static const char *const none[] = {NULL};
	static const struct argp_option options[] = {
		{"pool", 'p', "POOL", 0, "of this pool alone", 0},
		{"backend", 'b', "BACKEND", 0, "of this POOL/BACKEND alone", 0},
		{"state", 's', "STATE", 0, "half-open, adopted, live, closing or stale alone", 0},
		{"limit", 'n', "N", 0, "show so many at most (1000)", 0},
		{},
	};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse_list,
		.doc = "Lists the connections that are recorded, which are those of slots in transition. What is "
		       "recorded is a fingerprint, no address: `flow show` says whether a connection is among them. "
		       "Needs root, but no daemon.",
		.children = children,
	};
	struct list list = {
		.words = {.names = none}, .state = ANY, .limit = LIMIT_DEFAULT, .pool_index = ANY, .backend_id = ANY};
	struct report report = {};
	int code = ctl_parse(&argp, argc, argv, NULL, &list);

	if (code)
		return code;
	list.names.pools = ctl_rows_if_running("PoolList", "pools");
	list.names.backends = ctl_rows_if_running("BackendList", "backends");
	list.rows = json_array();
	code = read_list(&list, &report);
	json_decref(list.rows);
	json_decref(list.names.pools);
	json_decref(list.names.backends);
	report_free(&report);
	return code;
}

int cmd_flow(int argc, char **argv)
{
	static const struct ctl_verb verbs[] = {
		{"list", flow_list, "[--pool POOL] [--backend POOL/BACKEND] ...", "what is recorded"},
		{"show", flow_show, "tcp|udp SOURCE DESTINATION", "whether a connection is recorded"},
	};

	return ctl_dispatch(verbs, LENGTH(verbs), "Connections of slots in transition, as the flow table has them.",
			    argc, argv);
}
