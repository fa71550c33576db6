/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is wrong with an instance, beyond what its daemon says. */
#ifndef SHUNT_CTL_HEALTH_H
#define SHUNT_CTL_HEALTH_H

#include <jansson.h>

/*
 * The interfaces that the instance's load balancer is on, as objects {interface, mode}; mode is null where it cannot be
 * told.  JSON null where this user may not look.
 */
json_t *health_interfaces(const char *instance);

/* One sentence for each thing that is wrong.  status: the daemon's, with `problems` of its own. */
json_t *health_problems(const json_t *status, const json_t *backends, const json_t *counters, const json_t *interfaces);

#endif
