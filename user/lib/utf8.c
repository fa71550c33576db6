/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdint.h>
#include <string.h>

#include "utf8.h"

/* Bytes of a sequence, by its first; 0: none begins so.  *least is the smallest code point that needs as many. */
static size_t sequence_length(unsigned char first, uint32_t *least)
{
	if (first < 0x80) {
		*least = 0;
		return 1;
	}
	if ((first & 0xe0) == 0xc0) {
		*least = 0x80;
		return 2;
	}
	if ((first & 0xf0) == 0xe0) {
		*least = 0x800;
		return 3;
	}
	*least = 0x10000;
	return (first & 0xf8) == 0xf0 ? 4 : 0;
}

size_t utf8_character(const char *text, size_t length, const char *allowed)
{
	unsigned char first = (unsigned char)*text;
	uint32_t least, code;
	size_t bytes = sequence_length(first, &least);

	if (!bytes || bytes > length)
		return 0;
	if (bytes == 1)
		return (first >= 0x20 && first != 0x7f) || (first && strchr(allowed, first)) ? 1 : 0;
	code = first & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++) {
		if (((unsigned char)text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | ((unsigned char)text[i] & 0x3f);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) || (code >= 0x80 && code < 0xa0))
		return 0;
	return bytes;
}

size_t utf8_bad(const char *text, size_t length, const char *allowed)
{
	size_t at = 0;

	while (at < length) {
		size_t bytes = utf8_character(text + at, length - at, allowed);

		if (!bytes)
			break;
		at += bytes;
	}
	return at;
}
