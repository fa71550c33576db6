/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "model.h"

static int by_place(struct model_place a, struct model_place b)
{
	if (a.line != b.line)
		return a.line < b.line ? -1 : 1;
	return (a.column > b.column) - (a.column < b.column);
}

/* Names are unique in a model that passed model_check(); before it, places make the order of duplicates firm. */
static int by_backend(const void *a, const void *b)
{
	const struct model_backend *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : by_place(x->place, y->place);
}

static int by_pool(const void *a, const void *b)
{
	const struct model_pool *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : by_place(x->place, y->place);
}

static int by_service(const void *a, const void *b)
{
	const struct model_service *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : by_place(x->place, y->place);
}

static int by_port(const void *a, const void *b)
{
	const struct model_ports *x = a, *y = b;

	return x->first != y->first ? x->first - y->first : x->last - y->last;
}

static void sort(void *array, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	if (count > 1)
		qsort(array, count, size, compare);
}

void model_sort(struct model *model)
{
	sort(model->pools, model->n_pools, sizeof(*model->pools), by_pool);
	for (size_t i = 0; i < model->n_pools; i++) {
		struct model_pool *pool = &model->pools[i];

		sort(pool->backends, pool->n_backends, sizeof(*pool->backends), by_backend);
	}
	sort(model->services, model->n_services, sizeof(*model->services), by_service);
	for (size_t i = 0; i < model->n_services; i++) {
		struct model_service *service = &model->services[i];

		sort(service->ports, service->n_ports, sizeof(*service->ports), by_port);
	}
}
