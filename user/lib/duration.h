/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Durations as people write them: "30s", "2h10m", "250ms". */
#ifndef SHUNT_DURATION_H
#define SHUNT_DURATION_H

#include <stdint.h>

#define DURATION_TEXT_MAX 40

/* Parts of d, h, m, s and ms, each at most once, the largest first.  0, or -EINVAL with *milliseconds untouched. */
int duration_parse(const char *text, uint64_t *milliseconds);

/* The shortest text that duration_parse() reads back as the same. */
const char *duration_format(uint64_t milliseconds, char out[static DURATION_TEXT_MAX]);

#endif
