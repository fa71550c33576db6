/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"

#define CHUNK_BYTES 65536u

struct arena_chunk {
	struct arena_chunk *next;
	size_t size, used;
	alignas(max_align_t) char bytes[];
};

static struct arena_chunk *add_chunk(struct arena *arena, size_t size)
{
	size_t bytes = size > CHUNK_BYTES ? size : CHUNK_BYTES;
	struct arena_chunk *chunk = calloc(1, sizeof(*chunk) + bytes);

	if (!chunk)
		return NULL;
	chunk->size = bytes;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_chunk *chunk = arena->chunks;
	void *result;

	if (size > PTRDIFF_MAX)
		return NULL;
	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (!chunk || size > chunk->size - chunk->used)
		chunk = add_chunk(arena, size);
	if (!chunk)
		return NULL;
	result = chunk->bytes + chunk->used;
	chunk->used += size;
	return result;
}

void arena_free(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *chunk = arena->chunks;

		arena->chunks = chunk->next;
		explicit_bzero(chunk->bytes, chunk->used);
		free(chunk);
	}
}
