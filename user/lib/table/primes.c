/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>

#include "internal.h"

bool table_is_prime(uint32_t n)
{
	if (n < 4)
		return n >= 2;
	if (n % 2 == 0)
		return false;
	for (uint64_t d = 3; d * d <= n; d += 2) {
		if (n % d == 0)
			return false;
	}
	return true;
}

void table_nearest_primes(uint32_t n, uint32_t *below, uint32_t *above)
{
	uint32_t down = n > TABLE_SLOTS_MAX ? TABLE_SLOTS_MAX : n ? n - 1 : 0;
	uint32_t up = n < TABLE_SLOTS_MIN ? TABLE_SLOTS_MIN : n + 1;

	while (down >= TABLE_SLOTS_MIN && !table_is_prime(down))
		down--;
	while (up <= TABLE_SLOTS_MAX && up > n && !table_is_prime(up))
		up++;
	*below = down >= TABLE_SLOTS_MIN ? down : 0;
	*above = up <= TABLE_SLOTS_MAX && up > n ? up : 0;
}

int table_check_size(uint32_t slots, struct report *report)
{
	uint32_t below, above;

	if (slots >= TABLE_SLOTS_MIN && slots <= TABLE_SLOTS_MAX && table_is_prime(slots))
		return 0;
	table_nearest_primes(slots, &below, &above);
	if (below && above)
		return report_error(report, -EINVAL, "table size %u is not prime: the nearest are %u and %u", slots,
				    below, above);
	return report_error(report, -EINVAL, "table size %u is not within %u to %u: the nearest prime is %u", slots,
			    TABLE_SLOTS_MIN, TABLE_SLOTS_MAX, below ? below : above);
}
