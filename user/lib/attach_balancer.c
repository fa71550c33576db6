/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "attach.h"
#include "maps_internal.h"
#include "upgrade.h"

int attach_balancer(const struct attach_request *base, const struct maps_capacities *capacities, struct report *report)
{
	struct attach_request request = *base;
	struct maps maps;
	int error = upgrade_repair(request.instance, report);

	if (!error)
		error = maps_open_locked(request.instance, capacities, &maps, report);
	if (error)
		return error;
	request.maps = &maps;
	error = attach_interfaces(&request, report);
	maps_close(&maps);
	return error;
}
