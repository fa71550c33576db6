/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The service snapshot, planned: from the model's services and the numbers given to them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "engine_internal.h"
#include "hashkey.h"

static int compare(const void *a, const void *b)
{
	const struct snapshot_address *x = a, *y = b;

	return addr_compare(&x->address, &y->address);
}

static uint32_t flags_of(const struct model_service *service)
{
	static const uint32_t unknown[MODEL_NR_UNKNOWN_PORTS] = {
		[MODEL_UNKNOWN_REFUSE] = SHUNT_ADDRESS_UNKNOWN_REFUSE,
		[MODEL_UNKNOWN_PASS] = SHUNT_ADDRESS_UNKNOWN_PASS,
	};
	static const uint32_t echo[MODEL_NR_ECHOS] = {
		[MODEL_ECHO_FORWARD] = SHUNT_ADDRESS_ECHO_FORWARD,
		[MODEL_ECHO_DROP] = SHUNT_ADDRESS_ECHO_DROP,
	};

	uint32_t flags = unknown[service->unknown_port] | echo[service->echo];

	/* A later fragment to an address of this host may be for the host. */
	if (service->hash == SHUNT_HASH_SOURCE && service->unknown_port != MODEL_UNKNOWN_PASS)
		flags |= SHUNT_ADDRESS_FRAGMENTS_SOURCE;
	return flags;
}

/* One more service of the address: fragments can go by source only where all services agree on where that leads. */
static void join(struct snapshot_address *address, const struct snapshot_address *other)
{
	if (address->pool != other->pool || !(other->flags & SHUNT_ADDRESS_FRAGMENTS_SOURCE))
		address->flags &= ~SHUNT_ADDRESS_FRAGMENTS_SOURCE;
	if (other->counter < address->counter)
		address->counter = other->counter;
}

static int fill_addresses(const struct plan *plan, struct snapshot_content *content)
{
	const struct model *model = plan->next.model;
	struct snapshot_address *list = calloc(model->n_services + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < model->n_services; i++) {
		const struct model_service *service = &model->services[i];
		const struct plan_pool *pool = &plan->pools[model_pool(model, service->pool) - model->pools];

		list[i] = (struct snapshot_address){
			.address = service->address,
			.flags = flags_of(service),
			.pool = (uint16_t)pool->ids->index,
			.table_class = (uint8_t)pool->class,
			.counter = plan->next.counters[i],
		};
	}
	qsort(list, model->n_services, sizeof(*list), compare);
	for (size_t i = 0; i < model->n_services; i++) {
		if (!i || compare(&list[i], &list[content->n_addresses - 1]))
			list[content->n_addresses++] = list[i];
		else
			join(&list[content->n_addresses - 1], &list[i]);
	}
	content->addresses = list;
	return 0;
}

static void fill_settings(const struct model_settings *settings, struct snapshot_content *content)
{
	if (settings->ttl_exceeded == MODEL_TTL_ANSWER)
		content->settings |= SHUNT_SETTING_TTL_ANSWER;
	if (settings->too_big_without_df == MODEL_TOO_BIG_SEND)
		content->settings |= SHUNT_SETTING_TOO_BIG_SEND;
	if (!settings->error_rate)
		return;
	content->error_interval = 1000000000u / settings->error_rate;
	/* A tenth of a second's at once. */
	content->error_burst = settings->error_rate < 20 ? 2 : settings->error_rate / 10;
}

static void fill_service(const struct plan *plan, const struct model_service *service, uint32_t counter,
			 struct snapshot_content *content)
{
	const struct model *model = plan->next.model;
	const struct plan_pool *pool = &plan->pools[model_pool(model, service->pool) - model->pools];
	const struct snapshot_address key = {.address = service->address};
	const struct snapshot_address *address =
		bsearch(&key, content->addresses, content->n_addresses, sizeof(key), compare);
	struct snapshot_service entry = {
		.address = (uint32_t)(address - content->addresses),
		.protocol = service->protocol,
		.table_class = (uint8_t)pool->class,
		.hash_mode = (uint8_t)service->hash,
		.pool = (uint16_t)pool->ids->index,
		.counter = counter,
	};

	if (service->any_port)
		content->services[content->n_services++] = entry;
	for (size_t i = 0; i < service->n_ports; i++) {
		for (uint32_t port = service->ports[i].first; port <= service->ports[i].last; port++) {
			entry.port = (uint16_t)port;
			content->services[content->n_services++] = entry;
		}
	}
}

static int fill(const struct plan *plan, struct snapshot_content *content, struct report *report)
{
	const struct model *model = plan->next.model;
	size_t entries = 0;
	int ret;

	fill_settings(&model->settings, content);
	for (size_t i = 0; i < model->n_services; i++) {
		entries += model_service_entries(&model->services[i]);
		if (!model_pool(model, model->services[i].pool))
			return report_error(report, -EINVAL, "service %s points at pool %s, which does not exist",
					    model->services[i].name, model->services[i].pool);
	}
	ret = fill_addresses(plan, content);
	if (!ret) {
		content->services = calloc(entries + 1, sizeof(*content->services));
		ret = content->services ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < model->n_services && !ret; i++)
		fill_service(plan, &model->services[i], plan->next.counters[i], content);
	return ret;
}

int engine_plan_snapshot(const struct engine *engine, struct plan *plan, struct report *report)
{
	const struct shunt_meta *meta = &engine->pinned.maps.meta;
	const struct snapshot_capacity capacity = {meta->addresses, meta->services};
	const struct shunt_snapshot *in_force = engine->pinned.snapshot;
	struct snapshot_content content = {.revision = in_force ? in_force->revision : 0};
	size_t size = snapshot_size(&capacity);
	struct shunt_snapshot *value = malloc(size);
	int ret = value ? fill(plan, &content, report) : -ENOMEM;

	hashkey_expand(plan->next.model->key, &content.key);
	if (!ret)
		ret = snapshot_build(&content, &capacity, value, report);
	/* A revision that changes nothing here is no reason to publish. */
	if (!ret && (!in_force || memcmp(value, in_force, size) != 0)) {
		value->revision = plan->next.revision;
		plan->snapshot = value;
		value = NULL;
	}
	explicit_bzero(&content.key, sizeof(content.key));
	snapshot_free(&content);
	free(value);
	return ret;
}
