/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From the document's 128-bit key to the words of the flow hash. */
#ifndef SHUNT_HASHKEY_H
#define SHUNT_HASHKEY_H

#include <stddef.h>
#include <stdint.h>
#include <shunt/types.h>

/*
 * word[i] and final: the low 32 (64) bits of SipHash-2-4 (Aumasson, Bernstein, 2012), under `key`, of the 8-byte
 * little-endian number i (final: SHUNT_HASH_WORDS).  See docs/adr/0001-flow-hash.md.
 */
void hashkey_expand(const uint8_t key[16], struct shunt_hash_key *out);

uint64_t siphash24(const uint8_t key[16], const void *data, size_t length);

#endif
