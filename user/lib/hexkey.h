/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The hash key as text: 32 hexadecimal digits. */
#ifndef SHUNT_HEXKEY_H
#define SHUNT_HEXKEY_H

#include <stddef.h>
#include <stdint.h>

#define HEXKEY_BYTES 16

/* White space anywhere is ignored.  0; -EINVAL and `out` untouched. */
int hexkey_parse(const char *text, size_t length, uint8_t out[static HEXKEY_BYTES]);

#endif
