/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads requests from standard input, one JSON object a line, and answers each with one:
 *
 *   {"op": "open", "instance": NAME, "capacities": {"services": N, ...}}
 *   {"op": "load", "role": "lb"|"decap"|"explain", "frags": BOOL, "gue_port": N}
 *   {"op": "allow", "sources": [PREFIX, ...], "inner": [PREFIX, ...]}
 *   {"op": "apply", "document": TEXT, "locals": [ADDRESS, ...]}
 *   {"op": "nexthop", "address": A, "ifindex": N, "mac": M, "source_mac": M, "mtu": N, "source": A,
 *    "gateway": BOOL}
 *   {"op": "publish"}
 *   {"op": "run", "role": R, "ifindex": N, "frames": [HEX, ...], "meta": BYTES, "linear": BYTES}
 *   {"op": "counters"}
 *   {"op": "poke", "map": NAME, "key": HEX, "value": HEX}    {"op": "peek", "map": NAME, "key": HEX}
 *   {"op": "digest"}: of the content of every map of the instance
 *   {"op": "patch", "map": NAME, "index": N | "pool": NAME, "bytes": [[OFFSET, HEX], ...]}   an inner map, published
 *   {"op": "value", "map": NAME, "index": N | "pool": NAME}
 *   {"op": "pool_stats", "pool": INDEX}
 *   {"op": "race", "cpus": [N, ...], "frames": [HEX, ...]}   each frame on all CPUs at the same moment
 *   {"op": "flood", "count": N, "seed": N, "frames": [HEX, ...]}   from N random sources
 *   {"op": "stream", "swaps": N, "frames": [HEX, ...], "opening": [HEX, ...]}   in the background, until "stream_end";
 *                                                           "phase" before and after each of the swaps
 *
 * A failure is {"error": ERRNO NAME, "report": TEXT}.  Run it in a network namespace of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "addr.h"
#include "decap.h"
#include "document.h"
#include "harness.h"

static json_t *harness_open(struct harness *h, json_t *request, int *error)
{
	struct engine_options options = {};
	json_t *capacities = json_object();

	*error = json_unpack(request, "{s:s, s?O}", "instance", &options.instance, "capacities", &capacities) ? -EINVAL
		 : json_unpack(capacities, "{s?i, s?i, s?i, s?i, s?i}", "services", &options.capacities.services,
			       "addresses", &options.capacities.addresses, "pools", &options.capacities.pools,
			       "backends", &options.capacities.backends, "flows", &options.capacities.flows)
			 ? -EINVAL
			 : engine_open(&options, &h->engine, &h->report);
	json_decref(capacities);
	return *error ? NULL : json_object();
}

enum program_role harness_role(json_t *request)
{
	const char *role = json_string_value(json_object_get(request, "role"));

	if (role && strcmp(role, "explain") == 0)
		return PROGRAM_EXPLAIN;
	return role && strcmp(role, "decap") == 0 ? PROGRAM_DECAP : PROGRAM_LB;
}

static json_t *harness_load(struct harness *h, json_t *request, int *error)
{
	enum program_role role = harness_role(request);
	struct program_options options = {
		.frags = json_is_true(json_object_get(request, "frags")),
		.gue_port = (uint16_t)json_integer_value(json_object_get(request, "gue_port")),
	};

	if (role == PROGRAM_DECAP && !h->decap.instance[0])
		*error = maps_open_decap(engine_maps(h->engine)->instance, &h->decap, &h->report);
	else
		*error = 0;
	if (*error)
		return NULL;
	bpf_object__close(h->object[role]);
	h->object[role] = NULL;
	*error = program_load(role, NULL, &options, role == PROGRAM_DECAP ? &h->decap : engine_maps(h->engine),
			      &h->object[role], &h->program[role], &h->report);
	return *error ? NULL : json_object();
}

static int allow(int fd, json_t *list)
{
	struct shunt_prefix prefixes[DECAP_PREFIXES_MAX];
	size_t n = json_array_size(list);
	int error = n > DECAP_PREFIXES_MAX ? -ENOSPC : 0;

	for (size_t i = 0; !error && i < n; i++)
		error = prefix_parse(json_string_value(json_array_get(list, i)), &prefixes[i]);
	return error ? error : decap_set(fd, prefixes, n);
}

static json_t *harness_allow(struct harness *h, json_t *request, int *error)
{
	*error = allow(h->decap.decap_sources, json_object_get(request, "sources"));
	if (!*error)
		*error = allow(h->decap.decap_inner, json_object_get(request, "inner"));
	return *error ? NULL : json_object();
}

/* The addresses that the document shall find on the host. */
static struct model_local *locals_of(json_t *request, size_t *count)
{
	json_t *list = json_object_get(request, "locals");
	struct model_local *locals = calloc(json_array_size(list) + 1, sizeof(*locals));

	*count = 0;
	for (size_t i = 0; locals && i < json_array_size(list); i++) {
		strcpy(locals[i].interface, "eth0");
		*count += addr_parse(json_string_value(json_array_get(list, i)), &locals[i].address) == 0;
	}
	return locals;
}

static json_t *harness_apply(struct harness *h, json_t *request, int *error)
{
	const char *document = json_string_value(json_object_get(request, "document"));
	struct model *model = NULL;
	size_t n_locals;
	struct model_local *locals = locals_of(request, &n_locals);

	*error = document && locals ? document_parse(document, strlen(document), &model, &h->report) : -EINVAL;
	if (!*error)
		*error = model_check(model, locals, n_locals, &h->report);
	if (!*error)
		*error = engine_apply(h->engine, model, NULL, &h->report);
	if (*error)
		model_free(model);
	free(locals);
	return *error ? NULL : json_object();
}

static int parse_mac(const char *text, uint8_t out[6])
{
	char end;

	return sscanf(text, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%c", &out[0], &out[1], &out[2], &out[3], &out[4],
		      &out[5], &end) == 6
		       ? 0
		       : -EINVAL;
}

static json_t *harness_nexthop(struct harness *h, json_t *request, int *error)
{
	struct engine_nexthop nexthop = {.known = true};
	const char *address, *mac, *source_mac, *source;
	union shunt_address backend;

	*error = -EINVAL;
	nexthop.gateway = json_is_true(json_object_get(request, "gateway"));
	if (json_unpack(request, "{s:s, s:i, s:s, s:s, s:i, s:s}", "address", &address, "ifindex", &nexthop.ifindex,
			"mac", &mac, "source_mac", &source_mac, "mtu", &nexthop.mtu, "source", &source) ||
	    addr_parse(address, &backend) || addr_parse(source, &nexthop.source) || parse_mac(mac, nexthop.mac) ||
	    parse_mac(source_mac, nexthop.source_mac))
		return NULL;
	*error = engine_set_nexthop(h->engine, &backend, &nexthop);
	return *error ? NULL : json_object();
}

static json_t *harness_publish(struct harness *h, json_t *request, int *error)
{
	(void)request;
	*error = engine_publish(h->engine, &h->report);
	return *error ? NULL : json_object();
}

static const struct {
	const char *op;
	harness_fn *fn;
} operations[] = {
	{"allow", harness_allow},   {"open", harness_open},	    {"load", harness_load},
	{"apply", harness_apply},   {"nexthop", harness_nexthop},   {"publish", harness_publish},
	{"run", harness_run},	    {"counters", harness_counters}, {"poke", harness_poke},
	{"peek", harness_peek},	    {"patch", harness_patch},	    {"pool_stats", harness_pool_stats},
	{"race", harness_race},	    {"flood", harness_flood},	    {"value", harness_value},
	{"stream", harness_stream}, {"phase", harness_phase},	    {"stream_end", harness_stream_end},
	{"digest", harness_digest},
};

static json_t *answer(struct harness *h, json_t *request)
{
	const char *op = json_string_value(json_object_get(request, "op"));
	json_t *reply = NULL;
	char *text;
	int error = -ENOSYS;

	for (size_t i = 0; op && i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (strcmp(op, operations[i].op) == 0 && (h->engine || operations[i].fn == harness_open))
			reply = operations[i].fn(h, request, &error);
	}
	if (!reply) {
		text = report_text(&h->report);
		reply = json_pack("{s:s, s:s}", "error", strerrorname_np(-error), "report", text ? text : "");
		free(text);
	}
	report_free(&h->report);
	memset(&h->report, 0, sizeof(h->report));
	return reply;
}

int main(void)
{
	struct harness h = {.program = {-1, -1, -1}};
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		json_t *request = json_loads(line, 0, NULL), *reply = answer(&h, request);

		json_dumpf(reply, stdout, JSON_COMPACT);
		putchar('\n');
		fflush(stdout);
		json_decref(reply);
		json_decref(request);
	}
	free(line);
	for (int role = 0; role < HARNESS_ROLES; role++)
		bpf_object__close(h.object[role]);
	if (h.decap.instance[0])
		maps_close(&h.decap);
	engine_close(h.engine);
	return 0;
}
