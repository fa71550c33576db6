/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the maps have room for, and the command that makes more. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"

/* The next power of two, within what a program can be loaded for. */
static uint32_t suggestion(size_t wanted, uint32_t maximum)
{
	uint32_t value = 1;

	while (value < wanted && value < maximum)
		value *= 2;
	return value < maximum ? value : maximum;
}

static int check(const struct engine *engine, const char *what, const char *option, size_t wanted, uint32_t capacity,
		 uint32_t maximum, struct report *report)
{
	const struct maps *maps = &engine->pinned.maps;

	if (wanted <= capacity)
		return 0;
	if (wanted > maximum)
		return report_error(report, -ENOSPC,
				    "%zu %s are more than shunt can hold (%u): split them over instances", wanted, what,
				    maximum);
	return report_error(report, -ENOSPC,
			    "%zu %s exceed the capacity of %u: grow it with `shunt-loader upgrade --%s %u%s%s`", wanted,
			    what, capacity, option, suggestion(wanted, maximum), maps_instance_option(maps->instance),
			    maps_instance_name(maps->instance));
}

static int compare_addresses(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(union shunt_address));
}

static int count_addresses(const struct model *model, size_t *out)
{
	union shunt_address *list = calloc(model->n_services + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < model->n_services; i++)
		list[i] = model->services[i].address;
	qsort(list, model->n_services, sizeof(*list), compare_addresses);
	for (size_t i = 0; i < model->n_services; i++)
		n += !i || compare_addresses(&list[i], &list[i - 1]);
	free(list);
	*out = n;
	return 0;
}

int engine_check_capacities(const struct engine *engine, const struct model *model, struct report *report)
{
	const struct shunt_meta *meta = &engine->pinned.maps.meta;
	size_t backends = 0, entries = 0, addresses;
	int ret;

	for (size_t i = 0; i < model->n_pools; i++)
		backends += model->pools[i].n_backends;
	for (size_t i = 0; i < model->n_services; i++)
		entries += model_service_entries(&model->services[i]);
	ret = count_addresses(model, &addresses);
	if (ret)
		return ret;
	/* All of them are said, not only the first. */
	if (check(engine, "pools", "pools", model->n_pools, meta->pools, SHUNT_POOLS_MAX, report))
		ret = -ENOSPC;
	if (check(engine, "backends", "backends", backends, meta->backends, SHUNT_BACKENDS_MAX, report))
		ret = -ENOSPC;
	if (check(engine, "service entries (one for each port of each service)", "services", entries, meta->services,
		  SHUNT_SERVICES_MAX, report))
		ret = -ENOSPC;
	if (check(engine, "service addresses", "addresses", addresses, meta->addresses, SHUNT_ADDRESSES_MAX, report))
		ret = -ENOSPC;
	return ret;
}

/* Both what leaves and what comes needs a number while the change is under way. */
int engine_no_number(const struct engine *engine, const char *what, const char *option, uint32_t capacity,
		     struct report *report)
{
	return report_error(report, -ENOSPC,
			    "replacing so many %s at once needs more than the %u there are, because the old ones keep "
			    "theirs until the new ones are in force: make the change in two steps, or grow the "
			    "capacity with `shunt-loader upgrade --%s N%s%s`",
			    what, capacity, option, maps_instance_option(engine->pinned.maps.instance),
			    maps_instance_name(engine->pinned.maps.instance));
}

void engine_warn_waiting(const struct engine *engine, size_t n_waiting, struct report *report)
{
	if (n_waiting)
		report_add(report, REPORT_WARNING, 0, 0,
			   "%zu backends keep their former outer source, because no id of %u is free for the new one: "
			   "grow the capacity with `shunt-loader upgrade --backends N%s%s`",
			   n_waiting, engine->pinned.maps.meta.backends,
			   maps_instance_option(engine->pinned.maps.instance),
			   maps_instance_name(engine->pinned.maps.instance));
}
