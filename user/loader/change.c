/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The verbs that change something: attach, detach, upgrade. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control.h"
#include "decap.h"
#include "kernel.h"
#include "loader.h"
#include "maps_internal.h"
#include "upgrade.h"

#define REOPEN_TIMEOUT_MS 30000

static const char *instance_of(const struct loader_options *options)
{
	return options->instance ? options->instance : SHUNT_INSTANCE_DEFAULT;
}

/* The decap lists as they were, for when attaching fails. */
struct lists {
	struct shunt_prefix *sources, *destinations;
	size_t n_sources, n_destinations;
};

static int save_lists(const struct maps *maps, struct lists *lists, struct report *report)
{
	int error = decap_list(maps->decap_sources, &lists->sources, &lists->n_sources);

	if (!error)
		error = decap_list(maps->decap_inner, &lists->destinations, &lists->n_destinations);
	return error ? kernel_error(report, error, "cannot read the lists of allowed prefixes") : 0;
}

static void restore_lists(const struct maps *maps, const struct lists *lists, struct report *report)
{
	int error = decap_set(maps->decap_sources, lists->sources, lists->n_sources);

	if (!error)
		error = decap_set(maps->decap_inner, lists->destinations, lists->n_destinations);
	if (error)
		kernel_error(report, error, "cannot put back the lists of allowed prefixes");
}

static void free_lists(struct lists *lists)
{
	free(lists->sources);
	free(lists->destinations);
}

static int set_list(int fd, const struct loader_list *list, const char *option, struct report *report)
{
	struct shunt_prefix *now;
	size_t count;
	int error;

	if (list->given) {
		error = decap_set(fd, list->prefixes, list->count);
		if (error == -ENOSPC)
			return report_error(report, error, "%s: %zu prefixes, at most %u fit", option, list->count,
					    DECAP_PREFIXES_MAX);
		if (error)
			return kernel_error(report, error, "cannot change the list of %s", option);
	}
	error = decap_list(fd, &now, &count);
	if (error)
		return kernel_error(report, error, "cannot read the list of %s", option);
	free(now);
	if (!count)
		report_add(report, REPORT_WARNING, 0, 0, "the list of %s is empty: every tunnel packet is dropped",
			   option);
	return 0;
}

/* The lists are right before a packet can be judged by them. */
static int attach_decap(const struct loader_options *options, const struct attach_request *base, struct report *report)
{
	struct attach_request request = *base;
	struct lists before = {};
	struct maps maps;
	int error = maps_open_decap_locked(request.instance, &maps, report);

	if (error)
		return error;
	request.maps = &maps;
	error = save_lists(&maps, &before, report);
	if (!error) {
		error = set_list(maps.decap_sources, &options->sources, "--allow-source", report);
		if (!error)
			error = set_list(maps.decap_inner, &options->destinations, "--allow-destination", report);
		if (!error)
			error = attach_interfaces(&request, report);
		if (error)
			restore_lists(&maps, &before, report);
	}
	free_lists(&before);
	maps_close(&maps);
	return error;
}

int loader_attach(const struct loader_options *options, struct report *report)
{
	struct attach_request request = {
		.instance = instance_of(options),
		.role = options->role,
		.mode = options->mode,
		.gue_port = options->gue_port_given ? (uint16_t)options->gue_port : SHUNT_GUE_PORT,
		.names = options->names,
		.n_names = options->n_names,
	};
	int lock = maps_begin(request.instance, report), error;

	if (lock < 0)
		return lock;
	error = attach_check(&request, report);
	if (!error)
		error = options->role == PROGRAM_LB ? attach_balancer(&request, &options->capacities, report)
						    : attach_decap(options, &request, report);
	close(lock);
	return error;
}

int loader_detach(const struct loader_options *options, struct report *report)
{
	const char *instance = instance_of(options);
	int lock = maps_begin(instance, report), error;

	if (lock < 0)
		return lock;
	error = attach_detach(instance, options->names, options->n_names, report);
	close(lock);
	return error;
}

/* A daemon that does not hear of it notices before its next publication; this spares it the wait. */
static void tell_daemon(const char *instance, struct report *report)
{
	char path[CONTROL_PATH_MAX];
	struct report unheard = {};
	json_t *request = control_request("Reopen", NULL), *reply = NULL;
	const json_t *parameters;
	char why[CONTROL_WHY_MAX];
	const char *error = NULL;
	int result;

	if (control_path(instance, path) || !request) {
		json_decref(request);
		return;
	}
	result = control_call(path, request, REOPEN_TIMEOUT_MS, &reply, &unheard);
	if (!result && control_reply_parse(reply, &error, &parameters, why))
		report_add(report, REPORT_WARNING, 0, 0, "the daemon could not open the new maps (%s): restart it",
			   error ? error : why);
	else if (!result)
		report_add(report, REPORT_INFO, 0, 0, "the daemon has opened the new maps");
	else if (result != -ENOTCONN)
		report_add(report, REPORT_WARNING, 0, 0, "the daemon could not be told of the new maps: %s",
			   unheard.count ? unheard.entries[0].text : strerror(-result));
	report_free(&unheard);
	json_decref(request);
	json_decref(reply);
}

int loader_upgrade(const struct loader_options *options, struct report *report)
{
	const char *instance = instance_of(options);
	int lock = maps_begin(instance, report), error;
	bool rebuilt;

	if (lock < 0)
		return lock;
	error = upgrade_instance(instance, &options->capacities, &rebuilt, report);
	close(lock); /* the daemon takes it to open the maps */
	if (!error && rebuilt)
		tell_daemon(instance, report);
	return error;
}
