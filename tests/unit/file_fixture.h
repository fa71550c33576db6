/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whole files, for tests that damage them.  Include after cmocka.h. */
#ifndef SHUNT_FILE_FIXTURE_H
#define SHUNT_FILE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

/* At most 1 MiB; the caller frees it. */
static inline char *read_all(const char *path, size_t *length)
{
	FILE *file = fopen(path, "r");
	char *text = malloc(1 << 20);

	assert_true(file && text);
	*length = fread(text, 1, 1 << 20, file);
	fclose(file);
	return text;
}

static inline void write_all(const char *path, const char *text, size_t length)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

#endif
