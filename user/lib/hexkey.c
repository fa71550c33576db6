/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "hexkey.h"

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int hexkey_parse(const char *text, size_t length, uint8_t out[static HEXKEY_BYTES])
{
	uint8_t key[HEXKEY_BYTES] = {};
	unsigned int digits = 0;
	int ret = 0;

	for (size_t i = 0; i < length && !ret; i++) {
		int value = digit(text[i]);

		if (text[i] && strchr(" \t\r\n", text[i]))
			continue;
		if (value < 0 || digits == 2 * HEXKEY_BYTES) {
			ret = -EINVAL;
		} else {
			key[digits / 2] = (uint8_t)(key[digits / 2] << 4 | value);
			digits++;
		}
	}
	if (digits != 2 * HEXKEY_BYTES)
		ret = -EINVAL;
	if (!ret)
		memcpy(out, key, sizeof(key));
	explicit_bzero(key, sizeof(key));
	return ret;
}
