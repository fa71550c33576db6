/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Packets through the program, and what they left in the maps. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <xxhash.h>

#include "harness.h"

#define FRAME_MAX 131072u

unsigned char *harness_bytes(const char *text, size_t *length)
{
	size_t n = text ? strlen(text) / 2 : 0;
	unsigned char *bytes = malloc(n + 1);

	for (size_t i = 0; bytes && i < n; i++) {
		char digits[3] = {text[2 * i], text[2 * i + 1], 0};

		bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
	}
	*length = n;
	return bytes;
}

json_t *harness_hex(const unsigned char *bytes, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	char *text = malloc(2 * length + 1);
	json_t *out;

	if (!text)
		return NULL;
	for (size_t i = 0; i < length; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	out = json_stringn(text, 2 * length);
	free(text);
	return out;
}

harness_shadow_fn *harness_shadow;

static json_t *run_frame(struct harness *h, enum program_role role, const struct harness_frame *frame, int *error)
{
	unsigned char *out = malloc(FRAME_MAX);
	struct xdp_md context = {.ingress_ifindex = frame->ifindex,
				 .data = frame->meta,
				 .data_end = frame->linear ? frame->linear : (uint32_t)frame->size};
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame->bytes, .data_size_in = (uint32_t)frame->size,
		    .data_out = out, .data_size_out = FRAME_MAX, .ctx_in = &context, .ctx_size_in = sizeof(context),
		    .repeat = 1);
	json_t *result = NULL;

	if (harness_shadow)
		harness_shadow(h->object[role], role, frame);
	*error = frame->bytes && out ? bpf_prog_test_run_opts(h->program[role], &options) : -ENOMEM;
	if (!*error)
		result = json_pack("{s:i, s:o}", "action", (int)options.retval, "frame",
				   harness_hex(out + frame->meta, options.data_size_out - frame->meta));
	free(out);
	return result;
}

json_t *harness_run(struct harness *h, json_t *request, int *error)
{
	enum program_role role = harness_role(request);
	struct harness_frame frame = {
		.ifindex = (uint32_t)json_integer_value(json_object_get(request, "ifindex")),
		.meta = (uint32_t)json_integer_value(json_object_get(request, "meta")),
		.linear = (uint32_t)json_integer_value(json_object_get(request, "linear")),
	};
	json_t *frames = json_object_get(request, "frames"), *results = json_array();

	for (size_t i = 0; i < json_array_size(frames); i++) {
		unsigned char *bytes = harness_bytes(json_string_value(json_array_get(frames, i)), &frame.size);
		json_t *result;

		frame.bytes = bytes;
		result = run_frame(h, role, &frame, error);
		free(bytes);
		if (!result) {
			json_decref(results);
			return NULL;
		}
		json_array_append_new(results, result);
	}
	return json_pack("{s:o}", "results", results);
}

/* ---- counters ---- */

static const char *const reason_names[] = {
#define SHUNT_COUNTER(id, name, class, sentence) [SHUNT_##id] = name,
#include <shunt/counters.def>
#undef SHUNT_COUNTER
};

static int add_reasons(json_t *out, int fd, int n_cpus)
{
	uint64_t reasons[SHUNT_NR_REASONS];
	int error = maps_reasons_read(fd, n_cpus, reasons);

	for (int i = 0; !error && i < SHUNT_NR_REASONS; i++) {
		if (reasons[i])
			json_object_set_new(out, reason_names[i], json_integer((json_int_t)reasons[i]));
	}
	return error;
}

static json_t *stats_json(const struct shunt_stats *stats)
{
	return json_pack("[I, I]", (json_int_t)stats->packets, (json_int_t)stats->bytes);
}

static int add_services(json_t *out, const struct engine *engine)
{
	const struct model *model = engine_model(engine);
	struct shunt_stats stats;

	for (size_t i = 0; model && i < model->n_services; i++) {
		int error = engine_service_stats(engine, model->services[i].name, &stats);

		if (error)
			return error;
		json_object_set_new(out, model->services[i].name, stats_json(&stats));
	}
	return 0;
}

static int add_backends(json_t *out, const struct engine *engine)
{
	const struct model *model = engine_model(engine);

	for (size_t i = 0; model && i < model->n_pools; i++) {
		const struct model_pool *pool = &model->pools[i];

		for (size_t j = 0; j < pool->n_backends; j++) {
			struct engine_backend_info info;
			char name[2 * MODEL_NAME_MAX + 2];
			int error = engine_backend_info(engine, pool->name, pool->backends[j].name, &info);

			if (error)
				return error;
			snprintf(name, sizeof(name), "%s/%s", pool->name, pool->backends[j].name);
			json_object_set_new(out, name,
					    json_pack("{s:I, s:I, s:o}", "id", (json_int_t)info.id, "slots",
						      (json_int_t)info.slots, "stats", stats_json(&info.stats)));
		}
	}
	return 0;
}

json_t *harness_counters(struct harness *h, json_t *request, int *error)
{
	const struct maps *maps = engine_maps(h->engine);
	json_t *reasons = json_object(), *services = json_object(), *backends = json_object();

	(void)request;
	*error = add_reasons(reasons, maps->reasons, maps->n_cpus);
	if (!*error && h->decap.instance[0])
		*error = add_reasons(reasons, h->decap.decap_reasons, h->decap.n_cpus);
	if (!*error)
		*error = add_services(services, h->engine);
	if (!*error)
		*error = add_backends(backends, h->engine);
	if (!*error)
		return json_pack("{s:o, s:o, s:o}", "reasons", reasons, "services", services, "backends", backends);
	json_decref(reasons);
	json_decref(services);
	json_decref(backends);
	return NULL;
}

/* ---- single elements, for states that the engine never leaves behind ---- */

static int map_fd(const struct harness *h, json_t *request)
{
	const char *name = json_string_value(json_object_get(request, "map"));
	int fd = -1;

	for (int role = 0; name && fd < 0 && role < HARNESS_ROLES; role++)
		fd = h->object[role] ? bpf_object__find_map_fd_by_name(h->object[role], name) : -1;
	return fd;
}

json_t *harness_poke(struct harness *h, json_t *request, int *error)
{
	size_t key_length, value_length;
	unsigned char *key = harness_bytes(json_string_value(json_object_get(request, "key")), &key_length);
	unsigned char *value = harness_bytes(json_string_value(json_object_get(request, "value")), &value_length);

	if (value_length)
		*error = bpf_map_update_elem(map_fd(h, request), key, value, BPF_ANY);
	else
		*error = bpf_map_delete_elem(map_fd(h, request), key);
	free(key);
	free(value);
	return *error ? NULL : json_object();
}

json_t *harness_peek(struct harness *h, json_t *request, int *error)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);
	int fd = map_fd(h, request);
	unsigned char *key, *value = NULL;
	json_t *reply = NULL;
	size_t length;

	key = harness_bytes(json_string_value(json_object_get(request, "key")), &length);
	*error = bpf_obj_get_info_by_fd(fd, &info, &size);
	if (!*error) {
		value = malloc(info.value_size);
		*error = value ? bpf_map_lookup_elem(fd, key, value) : -ENOMEM;
	}
	if (!*error)
		reply = json_pack("{s:o}", "value", harness_hex(value, info.value_size));
	free(key);
	free(value);
	return reply;
}

/* ---- all of it ---- */

/* Keys in the map's own order, which does not change while nothing is inserted. */
static int digest_map(int fd, int n_cpus, uint64_t *digest)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);
	unsigned char key[2][64];
	int error = bpf_obj_get_info_by_fd(fd, &info, &size), turn = 0;
	bool per_cpu = info.type == BPF_MAP_TYPE_PERCPU_ARRAY;
	size_t length = per_cpu ? (size_t)(info.value_size + 7) / 8 * 8 * (size_t)n_cpus : info.value_size;
	unsigned char *value = calloc(1, length + 1);
	XXH64_state_t *state = XXH64_createState();

	XXH64_reset(state, 0);
	error = error || info.key_size > sizeof(key[0]) ? -EINVAL : bpf_map_get_next_key(fd, NULL, key[0]);
	while (!error) {
		XXH64_update(state, key[turn], info.key_size);
		/* An outer map's element without an inner map cannot be read. */
		if (!bpf_map_lookup_elem(fd, key[turn], value))
			XXH64_update(state, value, length);
		error = bpf_map_get_next_key(fd, key[turn], key[!turn]);
		turn = !turn;
	}
	*digest = XXH64_digest(state);
	XXH64_freeState(state);
	free(value);
	return error == -ENOENT ? 0 : error;
}

json_t *harness_digest(struct harness *h, json_t *request, int *error)
{
	json_t *out = json_object();
	struct bpf_map *map;

	(void)request;
	*error = 0;
	bpf_object__for_each_map(map, h->object[PROGRAM_LB])
	{
		uint64_t digest;
		char text[17];

		/* Of the program's own: nobody else sees them. */
		if (bpf_map__is_internal(map) || !strncmp(bpf_map__name(map), "scratch_", strlen("scratch_")))
			continue;
		*error = digest_map(bpf_map__fd(map), engine_maps(h->engine)->n_cpus, &digest);
		if (*error)
			break;
		snprintf(text, sizeof(text), "%016llx", (unsigned long long)digest);
		json_object_set_new(out, bpf_map__name(map), json_string(text));
	}
	if (!*error)
		return out;
	json_decref(out);
	return NULL;
}
