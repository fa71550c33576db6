/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps as a packet sees them: read anew by plain system calls, nothing taken from the engine. */
#ifndef TEST_ENGINE_VIEW_H
#define TEST_ENGINE_VIEW_H

#include "fixture.h"

#define VIEW_POOLS 16
#define VIEW_BACKENDS 256

struct view_table {
	uint32_t inner; /* map id; 0: none */
	struct shunt_table header;
	uint16_t *owner, *base; /* ids */
	bool *tracked, *learn;
	uint32_t *range, *t0; /* NULL: there are none */
};

struct view {
	struct maps maps;
	struct view_table tables[SHUNT_NR_TABLE_CLASSES][VIEW_POOLS];
	uint32_t snapshot_inner;
	uint8_t *snapshot;
	struct shunt_backend backends[VIEW_BACKENDS];
	uint64_t nexthops[VIEW_BACKENDS];
	struct shunt_iface ifaces[SHUNT_IFACES];
};

/* false if nothing is pinned. */
bool view_read(const struct fixture *f, struct view *out);
void view_free(struct view *view);

/* What no packet may ever meet: a service whose pool has no table, a slot whose owner is not there, ... */
void view_check(const struct view *view);

/* Owners of the table are exactly the backends of the model, with the ids and generations of the state file. */
void view_check_state(const struct fixture *f, const struct view *view);

/* Everything the same: inner maps by id, all entries byte for byte. */
bool view_equal(const struct view *a, const struct view *b);

const struct view_table *view_table(const struct view *view, uint32_t pool);

#endif
