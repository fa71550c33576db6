/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "published.h"

uint32_t published_capacity(enum shunt_table_class class)
{
	static const uint32_t slots[SHUNT_NR_TABLE_CLASSES] = {SHUNT_SLOTS_S, SHUNT_SLOTS_M, SHUNT_SLOTS_L};

	return slots[class];
}

enum maps_inner published_ranges(enum shunt_table_class class)
{
	return (enum maps_inner)(MAPS_RANGES_S + class);
}

/* of[i] for each slot, and the ids in the order of their first slots; false: there are too many. */
static bool number_owners(const uint16_t *owner, uint32_t capacity, uint16_t *number, uint16_t *id, uint8_t *of)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < capacity; i++) {
		if (!number[owner[i]]) {
			if (n == SHUNT_TABLE_IDS)
				return false;
			id[n++] = owner[i];
			number[owner[i]] = (uint16_t)n;
		}
		of[i] = (uint8_t)(number[owner[i]] - 1);
	}
	return true;
}

int published_densify(void *value, enum shunt_table_class class)
{
	uint32_t capacity = published_capacity(class);
	size_t id = SHUNT_TABLE_ID(capacity), room = SHUNT_TABLE_SIZE(capacity) - id;
	struct shunt_table *header = value;
	uint16_t *number;
	char *dense;
	int ret = 0;

	if (class == SHUNT_TABLE_S || header->flags & SHUNT_TABLE_IN_TRANSITION)
		return 0;
	number = calloc(0x10000, sizeof(*number));
	dense = calloc(1, room);
	if (!number || !dense) {
		ret = -ENOMEM;
	} else if (number_owners(value + SHUNT_TABLE_OWNER(capacity), capacity, number, (uint16_t *)dense,
				 (uint8_t *)dense + SHUNT_TABLE_OF(capacity) - id)) {
		memcpy(value + id, dense, room);
		header->ranges = SHUNT_TABLE_DENSE;
	}
	free(dense);
	free(number);
	return ret;
}

static void take_slots(const void *value, enum shunt_table_class class, struct transit *out)
{
	const struct shunt_table *header = value;
	const char *bytes = value;
	uint32_t capacity = published_capacity(class);
	size_t base = header->ranges == SHUNT_TABLE_DENSE ? SHUNT_TABLE_OWNER(capacity) : SHUNT_TABLE_BASE(capacity);

	memcpy(out->owner, bytes + SHUNT_TABLE_OWNER(capacity), out->slots * sizeof(*out->owner));
	memcpy(out->base, bytes + base, out->slots * sizeof(*out->base));
}

static int read_ranges(const struct maps *maps, enum shunt_table_class class, uint32_t index, struct transit *out)
{
	char *value = malloc(maps_inner_size(maps, published_ranges(class)));
	int ret = value ? maps_inner_read(maps, published_ranges(class), index, value) : -ENOMEM;

	if (!ret) {
		memcpy(out->range, value, out->slots * sizeof(*out->range));
		transit_unpack_t0(out, value + SHUNT_RANGES_T0(published_capacity(class)));
	}
	free(value);
	/* Without ranges every insertion is refused. */
	return ret == -ENOENT ? 0 : ret;
}

int published_read(const struct maps *maps, enum shunt_table_class class, uint32_t index, struct published *out)
{
	struct shunt_table *value = malloc(maps_inner_size(maps, (enum maps_inner) class));
	int ret = value ? maps_inner_read(maps, (enum maps_inner) class, index, value) : -ENOMEM;
	struct published published = {};

	if (!ret && value->slots > published_capacity(class))
		ret = -EUCLEAN;
	if (!ret)
		ret = transit_init(&published.transit, value->slots);
	if (!ret) {
		published.header = *value;
		if (value->ranges == SHUNT_TABLE_DENSE)
			published.header.ranges = 0;
		take_slots(value, class, &published.transit);
		published.transit.own = value->own;
		if (value->flags & SHUNT_TABLE_IN_TRANSITION)
			ret = read_ranges(maps, class, value->ranges, &published.transit);
		if (ret)
			transit_free(&published.transit);
	}
	free(value);
	if (!ret)
		*out = published;
	return ret;
}
