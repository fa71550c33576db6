/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lists of the decapsulating role, in a trie of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "addr.h"
#include "decap.h"
#include "maps_internal.h"

static int new_list(void)
{
	const struct shunt_meta meta = {};
	const struct map_spec spec = maps_spec(SET_DECAP_SOURCES, &meta);
	int fd = maps_create_one(&spec);

	assert_true(fd >= 0);
	return fd;
}

static struct shunt_prefix prefix(const char *text)
{
	struct shunt_prefix out = {};

	assert_int_equal(prefix_parse(text, &out), 0);
	return out;
}

static void expect(int fd, const struct shunt_prefix *want, size_t n)
{
	struct shunt_prefix *have;
	size_t count;

	assert_int_equal(decap_list(fd, &have, &count), 0);
	assert_int_equal(count, n);
	for (size_t i = 0; i < n; i++)
		assert_memory_equal(&have[i], &want[i], sizeof(*want));
	free(have);
}

static void sets_and_replaces(void **state)
{
	const struct shunt_prefix a = prefix("10.0.0.0/8"), b = prefix("10.0.0.0/16"), c = prefix("fd00::/64");
	int fd = new_list();

	(void)state;
	expect(fd, NULL, 0);
	assert_int_equal(decap_set(fd, (struct shunt_prefix[]){c, a, b}, 3), 0);
	expect(fd, (struct shunt_prefix[]){a, b, c}, 3);
	assert_int_equal(decap_set(fd, (struct shunt_prefix[]){b, b}, 2), 0);
	expect(fd, (struct shunt_prefix[]){b}, 1);
	assert_int_equal(decap_set(fd, NULL, 0), 0);
	expect(fd, NULL, 0);
	close(fd);
}

static void a_full_list_is_replaced_whole(void **state)
{
	struct shunt_prefix *list = calloc(DECAP_PREFIXES_MAX + 1, sizeof(*list));
	int fd = new_list();

	(void)state;
	for (uint32_t i = 0; i <= DECAP_PREFIXES_MAX; i++) {
		list[i] = prefix("fd00::/128");
		list[i].address[14] = (__u8)(i >> 8);
		list[i].address[15] = (__u8)i;
	}
	assert_int_equal(decap_set(fd, list, DECAP_PREFIXES_MAX), 0);
	assert_int_equal(decap_set(fd, list, DECAP_PREFIXES_MAX + 1), -ENOSPC);
	expect(fd, list, DECAP_PREFIXES_MAX);
	for (uint32_t i = 0; i < DECAP_PREFIXES_MAX; i++)
		list[i].address[8] = 1;
	assert_int_equal(decap_set(fd, list, DECAP_PREFIXES_MAX), 0);
	expect(fd, list, DECAP_PREFIXES_MAX);
	free(list);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_and_replaces),
		cmocka_unit_test(a_full_list_is_replaced_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
