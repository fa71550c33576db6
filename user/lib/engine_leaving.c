/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Backends that were deleted while they had connections: they leave once they have drained. */
#include <errno.h>

#include "engine_internal.h"

bool engine_drained(const struct pinned *pinned, const struct state_backend *ids)
{
	uint32_t id = ids->id;

	return id >= pinned->maps.meta.backends || (!pinned->slots[id] && !pinned->bases[id] && !pinned->entries[id]);
}

/* A copy of the model without the *n that are to leave and have drained; *out is NULL if there are none. */
static int without_drained(const struct engine *engine, struct model **out, size_t *n)
{
	const struct model *model = engine->state.model;
	struct model *copy = NULL;
	int ret = 0;

	for (size_t i = 0; i < model->n_pools && !ret; i++) {
		const struct model_pool *pool = &model->pools[i];

		for (size_t j = 0; j < pool->n_backends && !ret; j++) {
			const struct state_backend *ids = &engine->state.pools[i].backends[j];

			if (!ids->leaving || !engine_drained(&engine->pinned, ids))
				continue;
			ret = copy ? 0 : model_copy(model, &copy);
			if (!ret)
				model_del_backend(model_pool(copy, pool->name), pool->backends[j].name);
			(*n)++;
		}
	}
	if (ret)
		model_free(copy);
	else
		*out = copy;
	return ret;
}

int engine_delete_drained(struct engine *engine, const struct origin *origin, size_t *deleted, struct report *report)
{
	const struct engine_change change = {.origin = *origin, .by_itself = true};
	struct model *model = NULL;
	size_t n = 0;
	int ret = engine->state.model ? without_drained(engine, &model, &n) : 0;

	*deleted = 0;
	if (ret || !model)
		return ret;
	ret = engine_apply(engine, model, &change, report);
	if (ret)
		model_free(model);
	else
		*deleted = n;
	return ret;
}

bool engine_has_leaving(const struct engine *engine)
{
	const struct model *model = engine->state.model;

	for (size_t i = 0; model && i < model->n_pools; i++)
		for (size_t j = 0; j < model->pools[i].n_backends; j++)
			if (engine->state.pools[i].backends[j].leaving)
				return true;
	return false;
}
