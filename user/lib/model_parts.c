/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Backends and services compared, and backends written, without JSON objects: there are many of them.  Whoever gives
 * them a member finds here, by the sizes, what else must know it.
 */
#include <string.h>

#include "addr.h"
#include "model_parts.h"

_Static_assert(sizeof(struct model_backend) == 56, "model_same_backend() and write_backend() know all members");
_Static_assert(sizeof(struct model_service) == 120, "model_same_service() knows all members");

bool model_same_backend(const struct model_backend *a, const struct model_backend *b)
{
	return a->weight == b->weight && addr_equal(&a->address, &b->address) && !strcmp(a->name, b->name);
}

static bool same_ports(const struct model_service *a, const struct model_service *b)
{
	if (a->any_port != b->any_port || a->n_ports != b->n_ports)
		return false;
	return !a->n_ports || !memcmp(a->ports, b->ports, a->n_ports * sizeof(*a->ports));
}

bool model_same_service(const struct model_service *a, const struct model_service *b)
{
	return addr_equal(&a->address, &b->address) && a->protocol == b->protocol && same_ports(a, b) &&
	       a->hash == b->hash && a->unknown_port == b->unknown_port && a->echo == b->echo &&
	       !strcmp(a->pool, b->pool) && !strcmp(a->name, b->name);
}

static void write_backend(const struct model_backend *backend, struct text *out)
{
	char address[ADDR_TEXT_MAX];

	text_adds(out, "{\"name\":\"");
	text_adds(out, backend->name);
	text_adds(out, "\",\"address\":\"");
	text_adds(out, addr_format(&backend->address, address));
	text_adds(out, "\",\"weight\":");
	text_number(out, backend->weight);
	text_adds(out, "}");
}

static void write_pool(const struct model_pool *pool, struct text *out)
{
	text_open(out, model_pool_json(pool));
	text_adds(out, ",\"backends\":[");
	for (size_t i = 0; i < pool->n_backends; i++) {
		if (i)
			text_adds(out, ",");
		write_backend(&pool->backends[i], out);
	}
	text_adds(out, "]}");
}

void model_write(const struct model *model, struct text *out)
{
	json_t *head = model_head_json(model, MODEL_WITH_KEY);

	if (model->has_key && model->key_file)
		json_object_del(head, "hash-key-file");
	text_open(out, head);
	text_adds(out, ",\"pools\":[");
	for (size_t i = 0; i < model->n_pools; i++) {
		if (i)
			text_adds(out, ",");
		write_pool(&model->pools[i], out);
	}
	text_adds(out, "],\"services\":[");
	for (size_t i = 0; i < model->n_services; i++) {
		if (i)
			text_adds(out, ",");
		text_json(out, model_service_json(&model->services[i]));
	}
	text_adds(out, "]}");
}
