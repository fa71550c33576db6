/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether a change may be made without being forced. */
#ifndef SHUNT_POLICY_H
#define SHUNT_POLICY_H

#include "engine.h"

/*
 * Judge what a change does to tables.  0; -ECANCELED with one error in the report for each rule that is broken, which
 * names the pool, the figures and the limit.  What is new has no rule.  A pool that is removed counts among those that
 * leave.
 */
int policy_judge(const struct model_policy *policy, const struct engine_pool_change *pools, size_t n,
		 struct report *report);

#endif
