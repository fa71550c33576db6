/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is in force as a document and as digests, and what was before. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "epoch_diff.h"
#include "hashkey.h"
#include "methods.h"
#include "model_diff.h"
#include "state.h"

static json_t *hex(uint64_t value)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, value);
	return json_string(text);
}

/* ---- in force ---- */

static const struct model *model_or_fail(struct call *call)
{
	const struct model *model = engine_model(call->daemon->engine);

	if (!model)
		call_fail(call, CONTROL_NOT_FOUND, "nothing is applied yet");
	return model;
}

json_t *method_export(struct call *call)
{
	const struct model *model = model_or_fail(call);

	return model ? json_pack("{s:I, s:o}", "revision", (json_int_t)engine_revision(call->daemon->engine),
				 "document", model_json(model, MODEL_KEEP_KEY))
		     : NULL;
}

/* Two hosts with the same key have the same; it tells nothing of the key. */
static uint64_t key_fingerprint(const struct model *model)
{
	static const char text[] = "fingerprint of the hash key";

	return siphash24(model->key, text, sizeof(text));
}

/* Of the services as the document has them: which pool, which hash. */
static uint64_t services_digest(const struct model *model)
{
	json_t *document = model_json(model, MODEL_WITHOUT_KEY);
	char *text = document ? json_dumps(json_object_get(document, "services"), JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	uint64_t digest = text ? XXH64(text, strlen(text), 0) : 0;

	free(text);
	json_decref(document);
	return digest;
}

static json_t *digest_row(const struct engine *engine, const struct model_pool *pool)
{
	struct engine_pool_info info = {};

	engine_pool_info(engine, pool->name, &info);
	return json_pack("{s:s, s:s, s:b, s:I, s:I, s:o}", "pool", pool->name, "algorithm", pool->algorithm, "history",
			 table_algorithm(pool->algorithm)->history, "slots", (json_int_t)pool->slots, "epoch",
			 (json_int_t)info.epoch, "digest", info.published ? hex(info.digest) : json_null());
}

json_t *method_digests(struct call *call)
{
	const struct model *model = model_or_fail(call);
	json_t *rows = model ? json_array() : NULL;

	for (size_t i = 0; rows && i < model->n_pools; i++)
		json_array_append_new(rows, digest_row(call->daemon->engine, &model->pools[i]));
	return rows ? json_pack("{s:s, s:o, s:o, s:o}", "instance", call->daemon->options->instance, "key",
				hex(key_fingerprint(model)), "services", hex(services_digest(model)), "pools", rows)
		    : NULL;
}

/* ---- epochs ---- */

/* Without the members, which are many. */
static void append_epochs(const struct call *call, json_t *rows, const char *pool)
{
	json_t *list = history_list(call->daemon->history, pool), *entry;
	size_t i;

	json_array_foreach (list, i, entry)
		json_object_del(entry, "members");
	json_array_extend(rows, list);
	json_decref(list);
}

json_t *method_epoch_list(struct call *call)
{
	const struct model *model = engine_model(call->daemon->engine);
	const char *pool = call_text(call, "pool");
	json_t *rows = json_array();

	for (size_t i = 0; !pool && model && i < model->n_pools; i++)
		append_epochs(call, rows, model->pools[i].name);
	if (pool)
		append_epochs(call, rows, pool);
	if (pool && !json_array_size(rows)) {
		json_decref(rows);
		return call_fail(call, CONTROL_NOT_FOUND, "no epoch of a pool %.63s is known", pool);
	}
	return json_pack("{s:o}", "epochs", rows);
}

static json_t *find_epoch(struct call *call, const char *parameter)
{
	const char *pool = call_text(call, "pool");
	json_int_t number = call_number(call, parameter, 0);
	json_t *entry = history_find(call->daemon->history, pool, (uint64_t)number);

	return entry ? entry
		     : call_fail(call, CONTROL_NOT_FOUND,
				 "epoch %" JSON_INTEGER_FORMAT
				 " of pool %.63s is not remembered: see \"shuntctl epoch list\"",
				 number, pool);
}

json_t *method_epoch_show(struct call *call)
{
	return find_epoch(call, "epoch");
}

json_t *method_epoch_diff(struct call *call)
{
	json_t *from = find_epoch(call, "from"), *to = from ? find_epoch(call, "to") : NULL, *diff = NULL;

	if (to) {
		diff = epoch_diff(from, to);
		if (!diff)
			call_fail(call, CONTROL_FAILED, "out of memory");
	}
	json_decref(from);
	json_decref(to);
	return diff;
}

/* ---- revisions ---- */

json_t *method_revision_list(struct call *call)
{
	const struct daemon *daemon = call->daemon;
	uint64_t now = engine_revision(daemon->engine), pending = engine_pending(daemon->engine)->revision;
	json_t *list = history_list(daemon->history, NULL), *entry;
	size_t i;

	json_array_foreach (list, i, entry) {
		uint64_t revision = (uint64_t)json_integer_value(json_object_get(entry, "revision"));
		const char *state = revision == now ? (pending ? "unconfirmed" : "in force")
				    : state_has_revision(daemon->options->state_dir, revision) ? "kept"
											       : "forgotten";

		json_object_set_new(entry, "state", json_string(state));
	}
	return json_pack("{s:o}", "revisions", list);
}

/* The document of a revision, for its caller to free unless it is the one in force; NULL after call_fail(). */
static const struct model *model_of(struct call *call, uint64_t revision, struct model **loaded)
{
	int ret;

	*loaded = NULL;
	if (revision == engine_revision(call->daemon->engine))
		return model_or_fail(call);
	ret = change_load_revision(call->daemon, revision, loaded, &call->report);
	if (ret == -ENOENT)
		call_fail(call, CONTROL_NOT_FOUND, "revision %" PRIu64 " is not kept: see \"shuntctl revision list\"",
			  revision);
	else if (ret)
		call->error = CONTROL_FAILED;
	return *loaded;
}

json_t *method_revision_show(struct call *call)
{
	uint64_t revision = (uint64_t)call_number(call, "revision", 0);
	struct model *loaded;
	const struct model *model = model_of(call, revision, &loaded);
	json_t *entry;

	if (!model)
		return NULL;
	entry = history_find(call->daemon->history, NULL, revision);
	if (!entry)
		entry = json_pack("{s:I}", "revision", (json_int_t)revision);
	json_object_set_new(entry, "document", model_json(model, MODEL_KEEP_KEY));
	model_free(loaded);
	return entry;
}

json_t *method_revision_diff(struct call *call)
{
	uint64_t from = (uint64_t)call_number(call, "from", 0), to = (uint64_t)call_number(call, "to", 0);
	struct model *loaded_a, *loaded_b = NULL;
	const struct model *a = model_of(call, from, &loaded_a), *b = a ? model_of(call, to, &loaded_b) : NULL;
	json_t *reply = b ? json_pack("{s:I, s:I, s:o}", "from", (json_int_t)from, "to", (json_int_t)to, "changes",
				      model_diff(a, b))
			  : NULL;

	model_free(loaded_a);
	model_free(loaded_b);
	return reply;
}
