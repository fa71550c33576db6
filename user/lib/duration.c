/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "duration.h"

#define DIGITS_MAX 9 /* of a part: no overflow */

static const struct {
	const char *name;
	uint64_t milliseconds;
} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};

#define N_UNITS (sizeof(units) / sizeof(units[0]))

/* The unit of which the text begins with the whole name; N_UNITS: none. */
static size_t unit_at(const char *text, size_t from)
{
	size_t length = strspn(text, "dhms");

	/* "ms" is one unit, and "m" ends where digits follow. */
	for (size_t i = from; i < N_UNITS; i++)
		if (strlen(units[i].name) == length && !strncmp(text, units[i].name, length))
			return i;
	return N_UNITS;
}

int duration_parse(const char *text, uint64_t *milliseconds)
{
	uint64_t total = 0;
	size_t from = 0;

	if (!*text)
		return -EINVAL;
	while (*text) {
		size_t digits = strspn(text, "0123456789"), unit;
		uint64_t value = 0;

		if (!digits || digits > DIGITS_MAX)
			return -EINVAL;
		for (size_t i = 0; i < digits; i++)
			value = value * 10 + (uint64_t)(text[i] - '0');
		unit = unit_at(text + digits, from);
		if (unit == N_UNITS)
			return -EINVAL;
		total += value * units[unit].milliseconds;
		text += digits + strlen(units[unit].name);
		from = unit + 1;
	}
	*milliseconds = total;
	return 0;
}

const char *duration_format(uint64_t milliseconds, char out[static DURATION_TEXT_MAX])
{
	size_t length = 0;

	*out = '\0';
	for (size_t i = 0; i < N_UNITS; i++) {
		uint64_t n = milliseconds / units[i].milliseconds;

		milliseconds %= units[i].milliseconds;
		if (n)
			length += (size_t)snprintf(out + length, DURATION_TEXT_MAX - length, "%" PRIu64 "%s", n,
						   units[i].name);
	}
	if (!length)
		snprintf(out, DURATION_TEXT_MAX, "0s");
	return out;
}
