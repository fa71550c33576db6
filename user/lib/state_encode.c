/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state as JSON: docs/state-format.md, field by field.  Written with every change, so without many objects. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "model_parts.h"
#include "state_internal.h"
#include "text.h"

_Static_assert(sizeof(struct state_backend) == 56, "encode_backend() knows all members that are in the file");

/* jansson's *_new functions take the value even where they fail, and fail on NULL. */
static json_t *or_nothing(json_t *object, int failed)
{
	if (!failed)
		return object;
	json_decref(object);
	return NULL;
}

static json_t *hex(uint64_t value)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, value);
	return json_string(text);
}

/* Of a model that passed model_check(): names need no escapes.  What drains or starts slowly says so, the others say
 * nothing. */
static void encode_backend(const char *name, const struct state_backend *backend, struct text *out)
{
	text_adds(out, "{\"name\":\"");
	text_adds(out, name);
	text_adds(out, "\",\"id\":");
	text_number(out, backend->id);
	text_adds(out, ",\"generation\":");
	text_number(out, backend->generation);
	if (backend->draining) {
		text_adds(out, ",\"" STATE_DRAINING "\":");
		text_number(out, backend->draining);
	}
	if (backend->ramp) {
		text_adds(out, ",\"" STATE_RAMP "\":");
		text_number(out, backend->ramp);
	}
	if (backend->maintenance)
		text_adds(out, ",\"" STATE_MAINTENANCE "\":true");
	text_adds(out, backend->leaving ? ",\"" STATE_LEAVING "\":true}" : "}");
}

static void encode_pool(const struct model_pool *model, const struct state_pool *pool, struct text *out)
{
	char digest[sizeof("\",\"backends\":[") + 16];

	text_adds(out, "{\"name\":\"");
	text_adds(out, model->name);
	text_adds(out, "\",\"index\":");
	text_number(out, pool->index);
	text_adds(out, ",\"epoch\":");
	text_number(out, pool->epoch);
	text_adds(out, ",\"phase\":");
	text_number(out, pool->phase);
	text_adds(out, ",\"digest\":\"");
	snprintf(digest, sizeof(digest), "%016" PRIx64 "\",\"backends\":[", pool->digest);
	text_adds(out, digest);
	for (size_t i = 0; i < model->n_backends; i++) {
		if (i)
			text_adds(out, ",");
		encode_backend(model->backends[i].name, &pool->backends[i], out);
	}
	text_adds(out, "]}");
}

static void encode_service(const char *name, uint32_t counter, struct text *out)
{
	text_adds(out, "{\"name\":\"");
	text_adds(out, name);
	text_adds(out, "\",\"counter\":");
	text_number(out, counter);
	text_adds(out, "}");
}

static void encode_arrays(const struct state *state, struct text *out)
{
	text_adds(out, ",\"pools\":[");
	for (size_t i = 0; i < state->model->n_pools; i++) {
		if (i)
			text_adds(out, ",");
		encode_pool(&state->model->pools[i], &state->pools[i], out);
	}
	text_adds(out, "],\"services\":[");
	for (size_t i = 0; i < state->model->n_services; i++) {
		if (i)
			text_adds(out, ",");
		encode_service(state->model->services[i].name, state->counters[i], out);
	}
	text_adds(out, "]");
}

static int encode_change(const struct state *state, json_t *object)
{
	json_t *change = json_object(), *pending = json_object();
	int failed = origin_set_json(change, &state->origin);

	failed |= json_object_set_new(pending, "revision", json_integer((json_int_t)state->pending.revision));
	failed |= json_object_set_new(pending, "deadline", json_integer((json_int_t)state->pending.deadline));
	failed |= json_object_set_new(pending, "window", json_integer(state->pending.window));
	failed |= json_object_set_new(object, "change", change);
	failed |= json_object_set_new(object, "pending", pending);
	return failed;
}

static json_t *head(const struct state *state)
{
	const struct model *model = state->model;
	json_t *object = json_object();
	int failed = json_object_set_new(object, "revision", json_integer((json_int_t)state->revision));

	failed |= json_object_set_new(object, "document-tag", hex(state->document_tag));
	failed |= encode_change(state, object);
	failed |= json_object_set_new(object, "epoch-floor", json_integer((json_int_t)state->epoch_floor));
	if (model->has_key && model->key_file)
		failed |= json_object_set_new(object, STATE_KEY_FILE, json_string(model->key_file));
	return or_nothing(object, failed);
}

int state_encode(const struct state *state, struct text *out)
{
	text_open(out, head(state));
	text_adds(out, ",\"model\":");
	model_write(state->model, out);
	encode_arrays(state, out);
	text_adds(out, "}\n");
	return out->failed ? -ENOMEM : 0;
}
