/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Apply, Confirm, Undo, RevisionRollback: whole documents; and how any change is made for a request. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "document.h"
#include "methods.h"

/* ---- any change ---- */

enum control_error call_error_of(int error)
{
	switch (error) {
	case -EINVAL:
	case -E2BIG:
	case -EBUSY:
		return CONTROL_INVALID;
	case -ENOSPC:
		return CONTROL_FULL;
	case -ECANCELED:
		return CONTROL_POLICY;
	case -EALREADY:
		return CONTROL_PENDING;
	default:
		return CONTROL_FAILED;
	}
}

struct origin call_origin(const struct call *call, const char *what)
{
	const char *reason = call_text(call, "reason");
	struct origin origin = origin_peer(call->peer->uid, call->peer->pid, "%s%s%s%s%s", call->method,
					   what ? " " : "", what ? what : "", reason ? ": " : "", reason ? reason : "");

	origin.forced = call_flag(call, "force");
	return origin;
}

/* Takes the parts out of the result. */
static json_t *describe(const struct call *call, const struct change *change, struct change_result *result)
{
	const char *verdict = result->refused ? "refused" : change->forced ? "forced" : "allowed";
	json_t *entries = control_entries(&call->report), *pools = result->pools, *changes = result->changes;
	bool changed = json_array_size(changes) || json_array_size(pools);

	result->pools = result->changes = NULL;
	return json_pack("{s:b, s:s, s:I, s:o, s:o, s:o}", "changed", changed, "verdict", verdict, "revision",
			 (json_int_t)engine_revision(call->daemon->engine), "changes", changes ? changes : json_array(),
			 "pools", pools ? pools : json_array(), "entries", entries ? entries : json_array());
}

json_t *call_change(struct call *call, struct model *model, struct change *change, const char *what)
{
	struct change_result result;
	json_t *reply = NULL;
	int ret;

	change->origin = call_origin(call, what);
	change->forced = change->origin.forced;
	change->dry_run = call_flag(call, "plan");
	ret = change_make(call->daemon, model, change, &result, &call->report);
	if (!ret || (ret == -ECANCELED && change->dry_run))
		reply = describe(call, change, &result);
	else
		call->error = call_error_of(ret);
	change_result_free(&result);
	return reply;
}

json_t *call_drain(struct call *call, enum engine_drain how)
{
	const char *pool = call_text(call, "pool"), *name = call_text(call, "name");
	char what[2 * MODEL_NAME_MAX + 2];
	struct change_result result;
	struct change change = {};
	json_t *reply = NULL;
	int ret;

	snprintf(what, sizeof(what), "%.63s/%.63s", pool, name);
	change.origin = call_origin(call, what);
	change.forced = change.origin.forced;
	change.dry_run = call_flag(call, "plan");
	ret = change_drain(call->daemon, pool, name, how, &change, &result, &call->report);
	if (change.dry_run && (!ret || ret == -ECANCELED))
		reply = describe(call, &change, &result);
	else if (!ret)
		reply = json_object();
	else if (ret == -ENOENT)
		call_fail(call, CONTROL_NOT_FOUND, "there is no backend %.63s/%.63s", pool, name);
	else
		call->error = call_error_of(ret);
	change_result_free(&result);
	return reply;
}

/* ---- documents ---- */

static int read_document(struct call *call, struct model **out)
{
	const char *text = call_text(call, "document"), *source = call_text(call, "source");
	int ret = document_judge(text, strlen(text), source ? source : "the document", out, &call->report);

	if (ret)
		return ret;
	ret = document_keep_key(*out, engine_model(call->daemon->engine), call->daemon->options->hash_key_file,
				&call->report);
	if (ret)
		model_free(*out);
	return ret;
}

json_t *method_apply(struct call *call)
{
	const char *text = call_text(call, "document"), *source = call_text(call, "source");
	struct change change = {
		.tag = apply_tag(call->daemon, text, strlen(text)),
		.document = true,
		.files = true,
		.settle_ms = APPLY_SETTLE_MS,
		.confirm = (uint32_t)call_number(call, "confirm_within", 0),
	};
	struct model *model;
	int ret = read_document(call, &model);

	if (!ret)
		return call_change(call, model, &change, source);
	if (source)
		return call_fail(call, call_error_of(ret), "%.300s is refused, nothing has changed", source);
	call->error = call_error_of(ret);
	return NULL;
}

json_t *method_confirm(struct call *call)
{
	uint64_t revision = engine_revision(call->daemon->engine);

	if (!engine_pending(call->daemon->engine)->revision)
		return call_fail(call, CONTROL_NOT_FOUND, "no change waits to be confirmed");
	if (change_confirm(call->daemon, &call->report)) {
		call->error = CONTROL_FAILED;
		return NULL;
	}
	return json_pack("{s:I}", "revision", (json_int_t)revision);
}

json_t *method_undo(struct call *call)
{
	uint64_t back = engine_pending(call->daemon->engine)->revision;
	const char *reason = call_text(call, "reason");
	struct origin origin = call_origin(call, NULL);
	int ret;

	if (!back)
		return call_fail(call, CONTROL_NOT_FOUND,
				 "no change waits to be confirmed: to go back to an older document, use \"shuntctl "
				 "revision rollback\"");
	snprintf(origin.why, sizeof(origin.why), "Undo: back to revision %" PRIu64 "%s%s", back, reason ? ": " : "",
		 reason ? reason : "");
	ret = change_undo(call->daemon, &origin, &call->report);
	if (ret) {
		call->error = call_error_of(ret);
		return NULL;
	}
	return json_pack("{s:I}", "revision", (json_int_t)engine_revision(call->daemon->engine));
}

/* For its caller; the one in force is a document like others. */
static int revision_model(struct call *call, uint64_t revision, struct model **out)
{
	struct daemon *daemon = call->daemon;
	int ret;

	if (!revision || revision != engine_revision(daemon->engine))
		return change_load_revision(daemon, revision, out, &call->report);
	ret = model_copy(engine_model(daemon->engine), out);
	return ret ? report_error(&call->report, ret, "out of memory") : 0;
}

json_t *method_revision_rollback(struct call *call)
{
	uint64_t revision = (uint64_t)call_number(call, "revision", 0);
	struct change change = {.settle_ms = APPLY_SETTLE_MS, .files = true};
	struct model *model;
	char what[32];
	int ret = revision_model(call, revision, &model);

	if (ret == -ENOENT)
		return call_fail(call, CONTROL_NOT_FOUND,
				 "revision %" PRIu64 " is not kept: see \"shuntctl revision list\"", revision);
	if (!ret) {
		ret = change_check(call->daemon, model, &call->report);
		if (ret)
			model_free(model);
	}
	if (ret) {
		call->error = call_error_of(ret);
		return NULL;
	}
	snprintf(what, sizeof(what), "to %" PRIu64, revision);
	return call_change(call, model, &change, what);
}
