/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "model.h"
#include "table/table.h"

static int warn_shares(const struct model_pool *pool, struct report *report)
{
	struct table_member *members = calloc(pool->n_backends + 1, sizeof(*members));
	uint32_t *quota = calloc(pool->n_backends + 1, sizeof(*quota));
	struct report said = {};
	int ret = -ENOMEM;

	for (size_t i = 0; members && i < pool->n_backends; i++) {
		const struct model_backend *backend = &pool->backends[i];

		members[i] = (struct table_member){.name = backend->name, .weight = backend->weight};
	}
	if (members && quota)
		ret = table_quotas(members, pool->n_backends, pool->slots, quota, &said);
	for (size_t i = 0; i < said.count; i++)
		report_add(report, said.entries[i].level, pool->slots_place.line, pool->slots_place.column,
			   "pool \"%s\": %s", pool->name, said.entries[i].text);
	report_free(&said);
	free(members);
	free(quota);
	return ret;
}

int model_warn(const struct model *model, struct report *report)
{
	int ret = 0;

	for (size_t i = 0; i < model->n_pools && !ret; i++) {
		if (table_algorithm(model->pools[i].algorithm)->exact)
			ret = warn_shares(&model->pools[i], report);
	}
	return ret;
}
