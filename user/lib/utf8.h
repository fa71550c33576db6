/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text that may be shown: well-formed UTF-8 (RFC 3629) without control characters. */
#ifndef SHUNT_UTF8_H
#define SHUNT_UTF8_H

#include <stddef.h>

/*
 * Bytes of the character at the start of `text`; 0 if it is malformed, or a control character (C0, DEL, C1) that is
 * not among `allowed`.
 */
size_t utf8_character(const char *text, size_t length, const char *allowed);

/* Offset of the first byte that begins no such character, or `length`. */
size_t utf8_bad(const char *text, size_t length, const char *allowed);

#endif
