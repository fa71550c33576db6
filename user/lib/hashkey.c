/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <endian.h>
#include <string.h>

#include "hashkey.h"

static uint64_t rotate(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static void rounds(uint64_t v[4], int n)
{
	while (n--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void absorb(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rounds(v, 2);
	v[0] ^= word;
}

uint64_t siphash24(const uint8_t key[16], const void *data, size_t length)
{
	const uint8_t *bytes = data;
	uint64_t k[2], v[4], word;
	size_t left = length;

	memcpy(k, key, sizeof(k));
	v[0] = le64toh(k[0]) ^ 0x736f6d6570736575ull;
	v[1] = le64toh(k[1]) ^ 0x646f72616e646f6dull;
	v[2] = le64toh(k[0]) ^ 0x6c7967656e657261ull;
	v[3] = le64toh(k[1]) ^ 0x7465646279746573ull;
	for (; left >= 8; left -= 8, bytes += 8) {
		memcpy(&word, bytes, 8);
		absorb(v, le64toh(word));
	}
	word = 0;
	memcpy(&word, bytes, left);
	absorb(v, le64toh(word) | (uint64_t)length << 56);
	v[2] ^= 0xff;
	rounds(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void hashkey_expand(const uint8_t key[16], struct shunt_hash_key *out)
{
	for (uint64_t i = 0; i <= SHUNT_HASH_WORDS; i++) {
		uint64_t counter = htole64(i);
		uint64_t value = siphash24(key, &counter, sizeof(counter));

		if (i < SHUNT_HASH_WORDS)
			out->word[i] = (uint32_t)value;
		else
			out->final = value;
	}
}
