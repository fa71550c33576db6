/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From JSON to the state: docs/state-format.md, field by field. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "document.h"
#include "state_internal.h"

/* ---- decode ---- */

static int bad(char why[static 128], const char *what, const char *name)
{
	snprintf(why, 128, "%s%s%.63s%s", what, name ? " '" : "", name ? name : "", name ? "'" : "");
	return -EINVAL;
}

static bool get_number(const json_t *object, const char *key, uint64_t max, uint64_t *out)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > max)
		return false;
	*out = (uint64_t)json_integer_value(value);
	return true;
}

static bool get_number32(const json_t *object, const char *key, uint32_t max, uint32_t *out)
{
	uint64_t value;

	if (!get_number(object, key, max, &value))
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool get_hex(const json_t *object, const char *key, uint64_t *out)
{
	const char *text = json_string_value(json_object_get(object, key));
	uint64_t value;
	char again[17];

	if (!text || sscanf(text, "%" SCNx64, &value) != 1)
		return false;
	snprintf(again, sizeof(again), "%016" PRIx64, value);
	if (strcmp(again, text) != 0)
		return false;
	*out = value;
	return true;
}

static bool has_name(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, "name"));

	return text && !strcmp(text, name);
}

static bool get_flag(const json_t *object, const char *key, bool *out)
{
	const json_t *value = json_object_get(object, key);

	*out = json_is_true(value);
	return !value || json_is_boolean(value);
}

static bool get_drain(const json_t *object, struct state_backend *out)
{
	if (!get_flag(object, STATE_LEAVING, &out->leaving) || !get_flag(object, STATE_MAINTENANCE, &out->maintenance))
		return false;
	if (json_object_get(object, STATE_RAMP) && !get_number(object, STATE_RAMP, INT64_MAX, &out->ramp))
		return false;
	return !json_object_get(object, STATE_DRAINING) ||
	       get_number(object, STATE_DRAINING, INT64_MAX, &out->draining);
}

static int decode_pool(const json_t *object, const struct model_pool *model, struct state_pool *out,
		       char why[static 128])
{
	const json_t *backends = json_object_get(object, "backends");

	if (!has_name(object, model->name) || !get_number32(object, "index", SHUNT_POOLS_MAX, &out->index) ||
	    !get_number(object, "epoch", INT64_MAX, &out->epoch) ||
	    !get_number32(object, "phase", UINT32_MAX, &out->phase) || !get_hex(object, "digest", &out->digest) ||
	    json_array_size(backends) != model->n_backends)
		return bad(why, "no numbers for pool", model->name);
	for (size_t i = 0; i < model->n_backends; i++) {
		const json_t *backend = json_array_get(backends, i);

		if (!has_name(backend, model->backends[i].name) ||
		    !get_number32(backend, "id", SHUNT_BACKENDS_MAX - 1, &out->backends[i].id) ||
		    !get_number32(backend, "generation", 15, &out->backends[i].generation) ||
		    !get_drain(backend, &out->backends[i]))
			return bad(why, "no numbers for backend", model->backends[i].name);
	}
	return 0;
}

/* Format 2. */
static int decode_change(const json_t *object, struct state *out, char why[static 128])
{
	const json_t *pending = json_object_get(object, "pending");
	struct state_pending *to = &out->pending;

	if (origin_from_json(json_object_get(object, "change"), &out->origin))
		return bad(why, "no change", NULL);
	if (!get_number(pending, "revision", INT64_MAX, &to->revision) ||
	    !get_number(pending, "deadline", INT64_MAX, &to->deadline) ||
	    !get_number32(pending, "window", UINT32_MAX, &to->window))
		return bad(why, "no pending", NULL);
	return 0;
}

static int decode_numbers(const json_t *object, struct state *out, char why[static 128])
{
	const json_t *pools = json_object_get(object, "pools"), *services = json_object_get(object, "services");
	const struct model *model = out->model;
	int ret = 0;

	if (!get_number(object, "revision", INT64_MAX, &out->revision) ||
	    !get_hex(object, "document-tag", &out->document_tag) ||
	    !get_number(object, "epoch-floor", INT64_MAX, &out->epoch_floor))
		return bad(why, "no revision, document-tag or epoch-floor", NULL);
	if (json_array_size(pools) != model->n_pools || json_array_size(services) != model->n_services)
		return bad(why, "pools or services are not those of the model", NULL);
	for (size_t i = 0; i < model->n_pools && !ret; i++)
		ret = decode_pool(json_array_get(pools, i), &model->pools[i], &out->pools[i], why);
	for (size_t i = 0; i < model->n_services && !ret; i++) {
		const json_t *service = json_array_get(services, i);

		if (!has_name(service, model->services[i].name) ||
		    !get_number32(service, "counter", SHUNT_SERVICES_MAX - 1, &out->counters[i]))
			ret = bad(why, "no counter for service", model->services[i].name);
	}
	return ret;
}

static int decode_model(const json_t *object, struct model **out, char why[static 128])
{
	const char *key_file = json_string_value(json_object_get(object, STATE_KEY_FILE));
	/* in lines, because YAML on a single line takes six times the memory to read */
	char *text = json_dumps(json_object_get(object, "model"), JSON_INDENT(1));
	struct report report = {};
	struct model *model;
	int ret;

	if (!text)
		return bad(why, "no model", NULL);
	ret = document_parse(text, strlen(text), &model, &report);
	if (ret == -EINVAL)
		bad(why, "a model that is no document: ", report.count ? report.entries[0].text : "");
	explicit_bzero(text, strlen(text));
	free(text);
	report_free(&report);
	if (ret)
		return ret;
	if (key_file && !model->key_file) {
		model->key_file = strdup(key_file);
		ret = model->key_file ? 0 : -ENOMEM;
	}
	if (ret)
		model_free(model);
	else
		*out = model;
	return ret;
}

int state_decode(int format, const char *text, size_t length, struct state *out, char why[static 128])
{
	json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
	struct model *model = NULL;
	struct state state = {};
	int ret;

	if (!json_is_object(object)) {
		json_decref(object);
		return bad(why, "it is no JSON object", NULL);
	}
	ret = decode_model(object, &model, why);
	if (!ret)
		ret = state_init(&state, model);
	if (!ret)
		ret = decode_numbers(object, &state, why);
	if (!ret && format > 1)
		ret = decode_change(object, &state, why);
	json_decref(object);
	if (ret) {
		state_free(&state);
		model_free(model);
		return ret;
	}
	*out = state;
	return 0;
}
