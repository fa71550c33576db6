/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "hashkey.h"

static void count_up(uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)i;
}

/* SipHash: a fast short-input PRF, appendix A. */
static void test_siphash_of_the_paper(void **state)
{
	uint8_t key[16], message[15];

	(void)state;
	count_up(key, sizeof(key));
	count_up(message, sizeof(message));
	assert_int_equal(siphash24(key, message, sizeof(message)), 0xa129ca6149be45e5ull);
}

/* The first of the authors' 64 published vectors: key 00..0f, message 00, 01, ... of each length. */
static void test_siphash_of_each_length(void **state)
{
	static const uint64_t wanted[] = {
		0x726fdb47dd0e0e31ull, 0x74f839c593dc67fdull, 0x0d6c8009d9a94f5aull, 0x85676696d7fb7e2dull,
		0xcf2794e0277187b7ull, 0x18765564cd99a68dull, 0xcbc9466e58fee3ceull, 0xab0200f58b01d137ull,
		0x93f5f5799a932462ull, 0x9e0082df0ba9e4b0ull,
	};
	uint8_t key[16], message[16];

	(void)state;
	count_up(key, sizeof(key));
	count_up(message, sizeof(message));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		assert_int_equal(siphash24(key, message, i), wanted[i]);
}

static void test_each_word_is_siphash_of_its_number(void **state)
{
	uint8_t key[16], number[8] = {};
	struct shunt_hash_key expanded;

	(void)state;
	count_up(key, sizeof(key));
	hashkey_expand(key, &expanded);
	for (uint8_t i = 0; i < SHUNT_HASH_WORDS; i++) {
		number[0] = i;
		assert_int_equal(expanded.word[i], (uint32_t)siphash24(key, number, sizeof(number)));
	}
	number[0] = SHUNT_HASH_WORDS;
	assert_int_equal(expanded.final, siphash24(key, number, sizeof(number)));
}

static void test_each_bit_of_the_key_counts(void **state)
{
	struct shunt_hash_key first, other;

	(void)state;
	for (int bit = 0; bit < 128; bit++) {
		uint8_t key[16] = {};

		hashkey_expand(key, &first);
		key[bit / 8] = (uint8_t)(1 << bit % 8);
		hashkey_expand(key, &other);
		for (int i = 0; i < SHUNT_HASH_WORDS; i++)
			assert_int_not_equal(first.word[i], other.word[i]);
		assert_int_not_equal(first.final, other.final);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_siphash_of_the_paper),
		cmocka_unit_test(test_siphash_of_each_length),
		cmocka_unit_test(test_each_word_is_siphash_of_its_number),
		cmocka_unit_test(test_each_bit_of_the_key_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
