/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory that is given back all at once, wiped. */
#ifndef SHUNT_ARENA_H
#define SHUNT_ARENA_H

#include <stddef.h>

struct arena {
	struct arena_chunk *chunks;
};

/* `size` bytes of zeros, aligned for any type; NULL if out of memory. */
void *arena_alloc(struct arena *arena, size_t size);
void arena_free(struct arena *arena);

#endif
