/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Capacities: options of loader and daemon, their limits, and what is in force. */
#include <errno.h>
#include <stddef.h>

#include "maps_internal.h"

/* option: the name as both programs have it, without "--". */
static const struct {
	const char *option;
	size_t want, meta;
	uint32_t minimum, maximum, fallback;
} capacities[] = {
#define CAPACITY(name, maximum, fallback)                                                                              \
	{                                                                                                              \
#name, offsetof(struct maps_capacities, name), offsetof(struct shunt_meta, name), 1, maximum, fallback \
	}
	CAPACITY(services, SHUNT_SERVICES_MAX, SHUNT_DEFAULT_SERVICES),
	CAPACITY(addresses, SHUNT_ADDRESSES_MAX, SHUNT_DEFAULT_ADDRESSES),
	CAPACITY(pools, SHUNT_POOLS_MAX, SHUNT_DEFAULT_POOLS),
	CAPACITY(backends, SHUNT_BACKENDS_MAX, SHUNT_DEFAULT_BACKENDS),
	CAPACITY(flows, SHUNT_FLOWS_MAX, SHUNT_DEFAULT_FLOWS),
#undef CAPACITY
};

#define N_CAPACITIES (sizeof(capacities) / sizeof(capacities[0]))

static uint32_t wanted(const struct maps_capacities *want, size_t i)
{
	return want ? *(const uint32_t *)((const char *)want + capacities[i].want) : 0;
}

static uint32_t *recorded(const struct shunt_meta *meta, size_t i)
{
	return (uint32_t *)((char *)meta + capacities[i].meta);
}

int maps_check_capacities(const struct maps_capacities *want, struct shunt_meta *out, struct report *report)
{
	int error = 0;

	for (size_t i = 0; i < N_CAPACITIES; i++) {
		uint32_t value = wanted(want, i);

		if (value && (value < capacities[i].minimum || value > capacities[i].maximum))
			error = report_error(report, -EINVAL, "--%s %u: must be between %u and %u",
					     capacities[i].option, value, capacities[i].minimum, capacities[i].maximum);
	}
	for (size_t i = 0; i < N_CAPACITIES && !error; i++)
		*recorded(out, i) = wanted(want, i) ? wanted(want, i) : capacities[i].fallback;
	return error;
}

int maps_match_capacities(const struct maps_capacities *want, const struct maps *maps, const char *instance,
			  struct report *report)
{
	int error = 0;

	for (size_t i = 0; i < N_CAPACITIES; i++) {
		uint32_t value = wanted(want, i), have = *recorded(&maps->meta, i);

		if (value && value != have)
			error = report_error(report, -ESTALE,
					     "--%s %u: the maps of instance '%s' were created for %u; to change that "
					     "under traffic, run `shunt-loader upgrade --instance %s --%s %u`",
					     capacities[i].option, value, instance, have, instance,
					     capacities[i].option, value);
	}
	return error;
}

void maps_merge_capacities(const struct maps_capacities *want, struct shunt_meta *meta)
{
	for (size_t i = 0; i < N_CAPACITIES; i++)
		if (wanted(want, i))
			*recorded(meta, i) = wanted(want, i);
}
