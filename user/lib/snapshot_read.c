/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "snapshot.h"

/* Ids are 1 .. addresses, each once: so the entry of id n is address n - 1. */
static int read_addresses(const struct shunt_snapshot *header, const struct shunt_address_entry *entry, size_t n,
			  struct snapshot_address *out)
{
	uint32_t found = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t id = entry[i].id;

		if (!id)
			continue;
		if (id > header->addresses || !addr_is_unspecified(&out[id - 1].address))
			return -EUCLEAN;
		out[id - 1] = (struct snapshot_address){
			.address = entry[i].address,
			.flags = entry[i].flags & ~SNAPSHOT_DERIVED,
			.pool = entry[i].pool,
			.table_class = entry[i].table_class,
			.counter = entry[i].counter,
		};
		found++;
	}
	return found == header->addresses ? 0 : -EUCLEAN;
}

static int read_services(const struct shunt_snapshot *header, const struct shunt_service_entry *entry, size_t n,
			 struct snapshot_service *out)
{
	uint32_t found = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t id = entry[i].key >> 32;

		if (!entry[i].key)
			continue;
		if (!id || id > header->addresses || found == header->services)
			return -EUCLEAN;
		out[found++] = (struct snapshot_service){
			.address = (uint32_t)id - 1,
			.port = ntohs((uint16_t)(entry[i].key >> 8)),
			.protocol = (uint8_t)entry[i].key,
			.table_class = entry[i].table_class,
			.hash_mode = entry[i].hash_mode,
			.pool = entry[i].pool,
			.counter = entry[i].counter,
		};
	}
	return found == header->services ? 0 : -EUCLEAN;
}

static int compare_services(const void *a, const void *b)
{
	const struct snapshot_service *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	return (int)x->protocol - (int)y->protocol;
}

int snapshot_read(const void *value, const struct snapshot_capacity *capacity, struct snapshot_content *out)
{
	const struct shunt_snapshot *header = value;
	size_t n_address = (size_t)SHUNT_ADDRESS_BUCKETS(capacity->addresses) * SHUNT_ADDRESS_WAYS;
	size_t n_service = (size_t)SHUNT_SERVICE_BUCKETS(capacity->services) * SHUNT_SERVICE_WAYS;
	const struct shunt_address_entry *address = (const void *)(header + 1);
	const struct shunt_service_entry *service = (const void *)(address + n_address);
	struct snapshot_content content = {
		.revision = header->revision,
		.settings = header->settings,
		.error_interval = header->error_interval,
		.error_burst = header->error_burst,
		.key = header->key,
	};
	int ret;

	if (header->abi != SHUNT_ABI || header->addresses > n_address || header->services > n_service)
		return -EUCLEAN;
	content.n_addresses = header->addresses;
	content.n_services = header->services;
	content.addresses = calloc(content.n_addresses + 1, sizeof(*content.addresses));
	content.services = calloc(content.n_services + 1, sizeof(*content.services));
	ret = content.addresses && content.services ? 0 : -ENOMEM;
	if (!ret)
		ret = read_addresses(header, address, n_address, content.addresses);
	if (!ret)
		ret = read_services(header, service, n_service, content.services);
	if (ret) {
		snapshot_free(&content);
		return ret;
	}
	qsort(content.services, content.n_services, sizeof(*content.services), compare_services);
	*out = content;
	return 0;
}

void snapshot_free(struct snapshot_content *content)
{
	free(content->addresses);
	free(content->services);
	content->addresses = NULL;
	content->services = NULL;
	content->n_addresses = content->n_services = 0;
}
