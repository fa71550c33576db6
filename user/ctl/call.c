/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "ctl.h"
#include "maps.h"

#define READ_TIMEOUT_MS 5000
#define CHANGE_TIMEOUT_MS 60000

static const char *transport_error(int err)
{
	switch (err) {
	case -ENOTCONN:
		return "NotRunning";
	case -ETIMEDOUT:
		return "NoAnswer";
	case -EACCES:
		return "PermissionDenied";
	default:
		return "Unreachable";
	}
}

/* The daemon's own error. */
static int refused(const char *error, const json_t *parameters)
{
	const char *message = json_string_value(json_object_get(parameters, "message"));

	return ctl_fail_entries(strcmp(error, "Policy") ? CTL_INVALID : CTL_POLICY, error, message ? message : error,
				json_object_get(parameters, "entries"));
}

static int judge(const json_t *message, json_t **reply)
{
	const json_t *parameters;
	char why[CONTROL_WHY_MAX];
	const char *error;
	int kind = control_reply_parse(message, &error, &parameters, why);

	if (kind < 0)
		return ctl_fail(CTL_UNREACHABLE, "Unreachable",
				"what answers is no shuntd that this program understands: %s", why);
	if (kind)
		return refused(error, parameters);
	*reply = json_incref((json_t *)parameters);
	return CTL_OK;
}

static int call(const char *method, json_t *parameters, unsigned int timeout_ms, bool changes, json_t **reply)
{
	char path[CONTROL_PATH_MAX];
	struct report report = {};
	json_t *request = NULL, *message = NULL;
	int err, code = CTL_USAGE;

	err = maps_check_instance(ctl_options.instance, &report);
	if (!err)
		err = control_path(ctl_options.instance, path);
	if (err) {
		json_decref(parameters);
		ctl_fail_report(CTL_USAGE, "Usage", &report);
		goto out;
	}
	request = control_request(method, parameters);
	err = request ? control_call(path, request, timeout_ms, &message, &report) : -ENOMEM;
	if (err == -ETIMEDOUT && changes)
		report_add(&report, REPORT_WARNING, 0, 0,
			   "the change may have been made all the same: look before you "
			   "repeat it");
	code = err ? ctl_fail_report(CTL_UNREACHABLE, transport_error(err), &report) : judge(message, reply);
out:
	json_decref(message);
	json_decref(request);
	report_free(&report);
	return code;
}

int ctl_call(const char *method, json_t *parameters, json_t **reply)
{
	unsigned int timeout_ms = ctl_options.timeout_ms ? ctl_options.timeout_ms : READ_TIMEOUT_MS;

	return call(method, parameters, timeout_ms, false, reply);
}

int ctl_rows(const char *method, json_t *parameters, const char *member, json_t **reply, const json_t **rows)
{
	int code = ctl_call(method, parameters, reply);

	if (code)
		return code;
	*rows = json_object_get(*reply, member);
	if (json_is_array(*rows))
		return CTL_OK;
	json_decref(*reply);
	*reply = NULL;
	return ctl_fail(CTL_UNREACHABLE, "Unreachable", "shuntd's reply to %s has no \"%s\"", method, member);
}

json_t *ctl_rows_if_running(const char *method, const char *member)
{
	json_t *request = control_request(method, NULL), *message = NULL, *rows = NULL;
	char path[CONTROL_PATH_MAX], why[CONTROL_WHY_MAX];
	const json_t *parameters;
	const char *error;

	if (request && !control_path(ctl_options.instance, path) &&
	    !control_call(path, request, ctl_options.timeout_ms ? ctl_options.timeout_ms : READ_TIMEOUT_MS, &message,
			  NULL) &&
	    !control_reply_parse(message, &error, &parameters, why))
		rows = json_incref(json_object_get(parameters, member));
	json_decref(message);
	json_decref(request);
	return rows;
}

const json_t *ctl_row_with(const json_t *rows, const char *key, json_int_t value)
{
	const json_t *row, *member;
	size_t i;

	json_array_foreach (rows, i, row) {
		member = json_object_get(row, key);
		if (json_is_integer(member) && json_integer_value(member) == value)
			return row;
	}
	return NULL;
}

int ctl_open_maps(struct maps *maps, struct report *report)
{
	int err;

	if (maps_check_instance(ctl_options.instance, report))
		return ctl_fail_report(CTL_USAGE, "Usage", report);
	err = maps_open_existing(ctl_options.instance, maps, report);
	if (err == -ENOENT)
		return ctl_fail(CTL_INVALID, "NotFound",
				"there is no instance %s: neither shunt-loader nor shuntd made its maps",
				ctl_options.instance);
	return err ? ctl_fail_report(CTL_INVALID, "Failed", report) : CTL_OK;
}

int ctl_change_reply(const char *method, json_t *parameters, const struct ctl_change_options *options, json_t **reply)
{
	unsigned int timeout_ms = ctl_options.timeout_ms ? ctl_options.timeout_ms : CHANGE_TIMEOUT_MS;

	if (options->wait)
		json_object_set_new(parameters, "wait", json_true());
	if (options->plan)
		json_object_set_new(parameters, "plan", json_true());
	if (options->force)
		json_object_set_new(parameters, "force", json_true());
	ctl_set_text(parameters, "reason", options->reason);
	return call(method, parameters, timeout_ms, !options->plan, reply);
}

int ctl_change(const char *method, json_t *parameters, const struct ctl_change_options *options)
{
	json_t *reply;
	int code = ctl_change_reply(method, parameters, options, &reply);

	if (code)
		return code;
	if (options->plan)
		return ctl_print_plan(reply, options->exit_code);
	if (ctl_options.json)
		return ctl_print_json(reply);
	json_decref(reply);
	return CTL_OK;
}

void ctl_set_text(json_t *parameters, const char *key, const char *text)
{
	if (text)
		json_object_set_new(parameters, key, control_text(text));
}

bool ctl_set_backend(json_t *parameters, const char *path)
{
	const char *slash = strchr(path, '/');
	char *pool;

	if (!slash || slash == path || !slash[1] || strchr(slash + 1, '/'))
		return false;
	pool = strndup(path, (size_t)(slash - path));
	if (!pool)
		return false;
	ctl_set_text(parameters, "pool", pool);
	ctl_set_text(parameters, "name", slash + 1);
	free(pool);
	return true;
}
