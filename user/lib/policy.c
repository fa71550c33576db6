/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>

#include "policy.h"

static size_t judge_pool(const struct model_policy *policy, const struct engine_pool_change *pool,
			 struct report *report)
{
	size_t broken = 0;

	if (pool->removed || !pool->backends_before)
		return 0;
	if (policy->has_max_moved && (uint64_t)pool->moved * 100 > (uint64_t)policy->max_moved_percent * pool->slots) {
		report_add(report, REPORT_ERROR, 0, 0,
			   "policy: %u of the %u slots of pool %s move (%.1f%%), and max-moved is %u%%: change it in "
			   "smaller steps, or use --force",
			   pool->moved, pool->slots, pool->pool, 100.0 * pool->moved / pool->slots,
			   policy->max_moved_percent);
		broken++;
	}
	if (!policy->allow_empty && !pool->backends_after) {
		report_add(
			report, REPORT_ERROR, 0, 0,
			"policy: pool %s becomes empty, and allow-empty is false: leave it a backend, or use --force",
			pool->pool);
		broken++;
	}
	return broken;
}

int policy_judge(const struct model_policy *policy, const struct engine_pool_change *pools, size_t n,
		 struct report *report)
{
	size_t leaving = 0, broken = 0;

	if (!policy->given)
		return 0;
	for (size_t i = 0; i < n; i++) {
		leaving += pools[i].leaving;
		broken += judge_pool(policy, &pools[i], report);
	}
	if (policy->has_max_leaving && leaving > policy->max_leaving) {
		report_add(
			report, REPORT_ERROR, 0, 0,
			"policy: %zu backends leave at once, and max-leaving is %u: take out fewer at a time, or use "
			"--force",
			leaving, policy->max_leaving);
		broken++;
	}
	return broken ? -ECANCELED : 0;
}
