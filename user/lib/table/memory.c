/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <malloc.h>
#include <stdlib.h>

#include "internal.h"

static _Thread_local size_t in_use, peak;

static void *counted(void *memory)
{
	in_use += malloc_usable_size(memory);
	if (in_use > peak)
		peak = in_use;
	return memory;
}

void *table_alloc(size_t count, size_t size)
{
	return counted(reallocarray(NULL, count ? count : 1, size));
}

void *table_zalloc(size_t count, size_t size)
{
	return counted(calloc(count ? count : 1, size));
}

void table_free(void *memory)
{
	in_use -= malloc_usable_size(memory);
	free(memory);
}

size_t table_memory_peak(void)
{
	size_t most = peak;

	peak = in_use;
	return most;
}
