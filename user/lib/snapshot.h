/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The service snapshot: from lists to the value that the packet path probes (layout in shunt/types.h), and back.
 * Pure, and deterministic: the same content in any order gives the same bytes.
 */
#ifndef SHUNT_SNAPSHOT_H
#define SHUNT_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>
#include <shunt/types.h>

#include "report.h"

struct snapshot_address {
	union shunt_address address;
	uint32_t flags; /* SHUNT_ADDRESS_*; the builder itself sets those of SNAPSHOT_DERIVED, by the services */
	/* With SHUNT_ADDRESS_BY_SOURCE: as in the services. */
	uint16_t pool;
	uint8_t table_class;
	uint32_t counter;
};
#define SNAPSHOT_DERIVED (SHUNT_ADDRESS_ANY_TCP | SHUNT_ADDRESS_ANY_UDP)

struct snapshot_service {
	uint32_t address; /* index into addresses[] */
	uint16_t port;	  /* host order; 0: any */
	uint8_t protocol;
	uint8_t table_class; /* enum shunt_table_class */
	uint8_t hash_mode;   /* enum shunt_hash_mode */
	uint16_t pool;
	uint32_t counter; /* index into service_stats */
};

struct snapshot_content {
	uint64_t revision;
	uint32_t settings, error_interval, error_burst; /* as in struct shunt_snapshot */
	struct shunt_hash_key key;
	struct snapshot_address *addresses;
	size_t n_addresses;
	struct snapshot_service *services;
	size_t n_services;
};

/* As in struct shunt_meta: they fix the numbers of buckets, and so the size of a value. */
struct snapshot_capacity {
	uint32_t addresses, services;
};

size_t snapshot_size(const struct snapshot_capacity *capacity);

/*
 * Write a value of snapshot_size() bytes, 8-byte aligned.  0; -ENOSPC (more than the capacity, or no seed places all:
 * reported with the command that grows it), -EINVAL (an address or an address, port and protocol twice, or an index
 * out of range: reported), -ENOMEM.  The value is unspecified on failure.
 */
int snapshot_build(const struct snapshot_content *content, const struct snapshot_capacity *capacity, void *value,
		   struct report *report);

/*
 * Read a value back: addresses sorted, services sorted by address, port and protocol.  *out is owned by the caller
 * (snapshot_free()).  -EUCLEAN and *out untouched where the value is not one that snapshot_build() writes; -ENOMEM.
 */
int snapshot_read(const void *value, const struct snapshot_capacity *capacity, struct snapshot_content *out);

/* Frees the lists, not the struct. */
void snapshot_free(struct snapshot_content *content);

#endif
