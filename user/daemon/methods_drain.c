/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Taking backends away without breaking connections, and giving them back. */
#include "log.h"
#include "methods.h"

static json_t *drain(struct call *call, enum engine_drain how)
{
	static const char *const words[] = {
		[ENGINE_DRAIN] = "drains",
		[ENGINE_UNDRAIN] = "drains no more",
		[ENGINE_LEAVE] = "drains, and is deleted then",
		[ENGINE_MAINTAIN] = "is in maintenance",
		[ENGINE_ACTIVATE] = "is activated",
	};
	json_t *reply = call_drain(call, how);

	if (reply && !call_flag(call, "plan"))
		log_info("backend %s/%s %s", call_text(call, "pool"), call_text(call, "name"), words[how]);
	return reply;
}

json_t *method_backend_drain(struct call *call)
{
	return drain(call, ENGINE_DRAIN);
}

json_t *method_backend_undrain(struct call *call)
{
	return drain(call, ENGINE_UNDRAIN);
}

json_t *method_backend_maintenance(struct call *call)
{
	return drain(call, ENGINE_MAINTAIN);
}

json_t *method_backend_activate(struct call *call)
{
	return drain(call, ENGINE_ACTIVATE);
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
