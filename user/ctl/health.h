/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is wrong with an instance, beyond what its daemon says. */
#ifndef SHUNT_CTL_HEALTH_H
#define SHUNT_CTL_HEALTH_H

#include <jansson.h>

/*
 * Sets members of the daemon's status: `problems`, its own and one sentence for each other thing that is wrong;
 * `healthy`, whether there are none; `interfaces` that the instance's load balancer is on, as objects {interface, mode}
 * (mode is null where it cannot be told), or null where this user may not look.
 */
void health_judge(json_t *status, const json_t *backends, const json_t *counters);

#endif
