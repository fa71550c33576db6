/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Taking backends away without breaking connections, and giving them back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "methods.h"

static json_t *drain(struct call *call, enum engine_drain how)
{
	const char *pool = call_text(call, "pool"), *name = call_text(call, "name");
	char what[MODEL_NAME_MAX * 2 + 2];
	int ret;

	snprintf(what, sizeof(what), "%.63s/%.63s", pool, name);
	call->daemon->origin = call_origin(call, what);
	ret = engine_drain(call->daemon->engine, pool, name, how, &call->report);
	if (ret == -ENOENT)
		return call_fail(call, CONTROL_NOT_FOUND, "there is no backend %.63s/%.63s", pool, name);
	if (ret) {
		call->error = ret == -ENOSPC ? CONTROL_FULL : CONTROL_FAILED;
		return NULL;
	}
	record_flush(call->daemon);
	ticks_kick(call->daemon);
	log_info("backend %s/%s %s", pool, name,
		 how == ENGINE_UNDRAIN ? "drains no more"
		 : how == ENGINE_DRAIN ? "drains"
				       : "drains, and is deleted then");
	return json_object();
}

json_t *method_backend_drain(struct call *call)
{
	return drain(call, ENGINE_DRAIN);
}

json_t *method_backend_undrain(struct call *call)
{
	return drain(call, ENGINE_UNDRAIN);
}

bool drain_needed(const struct call *call)
{
	const struct engine *engine = call->daemon->engine;
	const char *pool_name = call_text(call, "pool"), *name = call_text(call, "name");
	const struct model *model = engine_model(engine);
	const struct model_pool *pool = model ? model_pool(model, pool_name) : NULL;
	struct engine_backend_info info;

	if (!pool || pool->connections == MODEL_STATELESS || engine_backend_info(engine, pool_name, name, &info))
		return false;
	return info.reachable && (info.slots || info.bases || info.entries);
}

json_t *drain_and_delete(struct call *call)
{
	json_t *reply = drain(call, ENGINE_LEAVE);

	if (reply)
		json_object_set_new(reply, "draining", json_true());
	return reply;
}
