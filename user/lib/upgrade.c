/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The order, and what a crash leaves:
 *   1. build and fill the new set in the stage    the old set in force; a left-over stage
 *   2. exchange the two folders, in one step      the new set pinned, links on the old one, which the stage holds
 *   3. update the links, one after the other      some links on the old set: traffic goes on as it was
 *   4. remove the stage
 * Whoever comes next finds the stage, gives every link the program on the set that is pinned, and removes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "attach.h"
#include "kernel.h"
#include "maps_internal.h"
#include "upgrade.h"

bool upgrade_interrupted(const char *instance)
{
	char dir[PIN_PATH_MAX], stage[PIN_PATH_MAX];

	maps_set_dir(instance, &set_lb, "", dir);
	maps_set_dir(instance, &set_lb, PIN_STAGE, stage);
	return !access(stage, F_OK) && !access(dir, F_OK);
}

static int remove_stage(const char *stage, struct report *report)
{
	int error = maps_remove_tree(stage);

	return error ? kernel_error(report, error, "cannot remove %s", stage) : 0;
}

int upgrade_repair(const char *instance, struct report *report)
{
	char stage[PIN_PATH_MAX];
	struct maps maps;
	int error;

	if (!upgrade_interrupted(instance))
		return 0;
	error = maps_open_existing(instance, &maps, report);
	if (error)
		return error;
	error = attach_update(&maps, PROGRAM_LB, NULL, NULL, NULL, report);
	maps_close(&maps);
	if (error)
		return error;
	maps_set_dir(instance, &set_lb, PIN_STAGE, stage);
	report_add(report, REPORT_INFO, 0, 0, "instance '%s': an interrupted upgrade was brought to its end", instance);
	return remove_stage(stage, report);
}

static int upgrade_role(const struct maps *maps, enum program_role role, attach_ready_fn *ready, void *arg,
			struct report *report)
{
	size_t updated;
	int error = attach_update(maps, role, ready, arg, &updated, report);

	if (!error)
		report_add(report, REPORT_INFO, 0, 0, "instance '%s', role %s: %zu interface%s the installed program",
			   maps->instance, attach_role_name(role), updated, updated == 1 ? " runs" : "s run");
	return error;
}

struct exchange {
	const struct maps *old, *next;
	bool done;
};

static int exchange_folders(const struct exchange *exchange, struct report *report)
{
	const char *old = exchange->old->dir, *next = exchange->next->dir;

	if (renameat2(AT_FDCWD, next, AT_FDCWD, old, RENAME_EXCHANGE))
		return kernel_error(report, -errno, "cannot exchange %s and %s", next, old);
	return 0;
}

/* Step 2.  The counters go over as late as can be: what is counted after this is lost, a few milliseconds' packets. */
static int switch_maps(void *arg, struct report *report)
{
	struct exchange *exchange = arg;
	int error = exchange_folders(exchange, report);

	exchange->done = !error;
	if (!error)
		error = upgrade_copy_counters(exchange->old, exchange->next, report);
	return error ? error : upgrade_update_flows(exchange->old, exchange->next, false, report);
}

/* Steps 2 and 3; back again if a link cannot be updated. */
static int switch_over(const struct maps *old, const struct maps *next, struct report *report)
{
	struct exchange exchange = {.old = old, .next = next};
	int error = upgrade_role(next, PROGRAM_LB, switch_maps, &exchange, report);

	if (error && exchange.done)
		exchange_folders(&exchange, report);
	/* What packets left in the old one until the last link was updated. */
	return error ? error : upgrade_update_flows(old, next, true, report);
}

static int rebuild(const struct maps *old, const struct shunt_meta *meta, struct report *report)
{
	char stage[PIN_PATH_MAX];
	struct maps next;
	int error;

	maps_set_dir(old->instance, &set_lb, PIN_STAGE, stage);
	/* One flow table for both sets, where its size allows: a connection that opens during the switch is in both. */
	error = maps_create_set(stage, meta, meta->flows == old->meta.flows ? old->flows : -1, report);
	if (error)
		return error;
	error = maps_open_set(stage, &set_lb, &next, report);
	if (!error) {
		snprintf(next.instance, sizeof(next.instance), "%s", old->instance);
		error = upgrade_copy(old, &next, report);
		if (!error)
			error = switch_over(old, &next, report);
		maps_close(&next);
	}
	if (error)
		maps_remove_tree(stage);
	else
		error = remove_stage(stage, report);
	return error;
}

static bool same_capacities(const struct shunt_meta *a, const struct shunt_meta *b)
{
	return a->services == b->services && a->addresses == b->addresses && a->pools == b->pools &&
	       a->backends == b->backends && a->flows == b->flows;
}

/* *found: the instance has maps of this role. */
static int upgrade_lb(const char *instance, const struct maps_capacities *want, bool *found, bool *rebuilt,
		      struct report *report)
{
	struct shunt_meta meta;
	struct maps maps;
	int error = maps_open_existing(instance, &maps, report);

	*found = error != -ENOENT;
	if (error)
		return *found ? error : 0;
	meta = maps.meta;
	maps_merge_capacities(want, &meta);
	if (same_capacities(&meta, &maps.meta)) {
		error = upgrade_role(&maps, PROGRAM_LB, NULL, NULL, report);
	} else {
		meta.serial++;
		error = rebuild(&maps, &meta, report);
		*rebuilt = !error;
	}
	maps_close(&maps);
	return error;
}

static int upgrade_decap(const char *instance, bool *found, struct report *report)
{
	struct maps maps;
	int error = maps_open_existing_decap(instance, &maps, report);

	*found = error != -ENOENT;
	if (error)
		return *found ? error : 0;
	error = upgrade_role(&maps, PROGRAM_DECAP, NULL, NULL, report);
	maps_close(&maps);
	return error;
}

static bool wants_capacity(const struct maps_capacities *want)
{
	return want->services || want->addresses || want->pools || want->backends || want->flows;
}

int upgrade_instance(const char *instance, const struct maps_capacities *want, bool *rebuilt, struct report *report)
{
	bool found_lb, found_decap;
	struct shunt_meta unused;
	int error;

	*rebuilt = false;
	error = maps_check_capacities(want, &unused, report);
	if (!error)
		error = upgrade_repair(instance, report);
	if (!error)
		error = attach_sweep(instance);
	if (!error)
		error = upgrade_lb(instance, want, &found_lb, rebuilt, report);
	if (!error)
		error = upgrade_decap(instance, &found_decap, report);
	if (!error && found_decap && !found_lb && wants_capacity(want))
		error = report_error(report, -ENOENT,
				     "the instance '%s' has only the role decap, which has no capacities", instance);
	if (!error && !found_lb && !found_decap)
		error = report_error(report, -ENOENT, "the instance '%s' has no maps: there is nothing to upgrade",
				     instance);
	return error;
}
