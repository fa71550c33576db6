/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which methods there are, who may call them and with what. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "methods.h"
#include "model.h"
#include "suggest.h"

#define END                                                                                                            \
	{                                                                                                              \
	}
#define WAIT                                                                                                           \
	{                                                                                                              \
		"wait", PARAMETER_BOOLEAN, false, 0                                                                    \
	}
/* Of whatever changes the model. */
#define CHANGE                                                                                                         \
	WAIT, {"plan", PARAMETER_BOOLEAN, false, 0}, {"force", PARAMETER_BOOLEAN, false, 0},                           \
	{                                                                                                              \
		"reason", PARAMETER_TEXT, false, 0                                                                     \
	}
#define IGNORE_MISSING                                                                                                 \
	{                                                                                                              \
		"ignore_missing", PARAMETER_BOOLEAN, false, 0                                                          \
	}

static const struct parameter none[] = {END};
static const struct parameter only_wait[] = {WAIT, END};
static const struct parameter undo[] = {WAIT, {"reason", PARAMETER_TEXT, false, 0}, END};
static const struct parameter any_name[] = {{"name", PARAMETER_TEXT, false, 0}, END};
static const struct parameter delete_name[] = {{"name", PARAMETER_TEXT, true, 0}, IGNORE_MISSING, CHANGE, END};
static const struct parameter service_add[] = {
	{"name", PARAMETER_TEXT, true, 0},
	{"address", PARAMETER_TEXT, true, 0},
	{"protocol", PARAMETER_TEXT, true, 0},
	{"ports", PARAMETER_TEXT, true, 0},
	{"pool", PARAMETER_TEXT, true, 0},
	{"hash", PARAMETER_TEXT, false, 0},
	{"unknown_port", PARAMETER_TEXT, false, 0},
	{"echo", PARAMETER_TEXT, false, 0},
	CHANGE,
	END,
};
static const struct parameter pool_add[] = {
	{"name", PARAMETER_TEXT, true, 0},
	{"algorithm", PARAMETER_TEXT, false, 0},
	{"slots", PARAMETER_NUMBER, false, UINT32_MAX},
	{"balance_percent", PARAMETER_NUMBER, false, UINT32_MAX},
	{"vnodes", PARAMETER_NUMBER, false, UINT32_MAX},
	{"encapsulation", PARAMETER_TEXT, false, 0},
	{"port", PARAMETER_NUMBER, false, UINT16_MAX},
	{"udp6_checksum", PARAMETER_TEXT, false, 0},
	{"source4", PARAMETER_TEXT, false, 0},
	{"source6", PARAMETER_TEXT, false, 0},
	CHANGE,
	END,
};
static const struct parameter pool_table[] = {
	{"name", PARAMETER_TEXT, true, 0},
	{"owners", PARAMETER_BOOLEAN, false, 0},
	END,
};
static const struct parameter backend_list[] = {
	{"pool", PARAMETER_TEXT, false, 0},
	{"name", PARAMETER_TEXT, false, 0},
	{"without_way", PARAMETER_BOOLEAN, false, 0},
	END,
};
static const struct parameter backend_add[] = {
	{"pool", PARAMETER_TEXT, true, 0},
	{"name", PARAMETER_TEXT, true, 0},
	{"address", PARAMETER_TEXT, true, 0},
	{"weight", PARAMETER_NUMBER, false, MODEL_WEIGHT_MAX},
	CHANGE,
	END,
};
static const struct parameter backend_del[] = {
	{"pool", PARAMETER_TEXT, true, 0},
	{"name", PARAMETER_TEXT, true, 0},
	{"now", PARAMETER_BOOLEAN, false, 0},
	IGNORE_MISSING,
	CHANGE,
	END,
};
static const struct parameter backend_drain[] = {
	{"pool", PARAMETER_TEXT, true, 0},
	{"name", PARAMETER_TEXT, true, 0},
	CHANGE,
	END,
};
static const struct parameter backend_set[] = {
	{"pool", PARAMETER_TEXT, true, 0},
	{"name", PARAMETER_TEXT, true, 0},
	{"weight", PARAMETER_NUMBER, false, MODEL_WEIGHT_MAX},
	CHANGE,
	END,
};

static const struct parameter reload[] = {
	WAIT,
	{"force", PARAMETER_BOOLEAN, false, 0},
	{"reason", PARAMETER_TEXT, false, 0},
	END,
};
static const struct parameter apply[] = {
	{"document", PARAMETER_TEXT, true, 0},
	{"source", PARAMETER_TEXT, false, 0},
	{"confirm_within", PARAMETER_NUMBER, false, CONFIRM_MAX},
	CHANGE,
	END,
};
static const struct parameter epoch_list[] = {{"pool", PARAMETER_TEXT, false, 0}, END};
static const struct parameter epoch_show[] = {
	{"pool", PARAMETER_TEXT, true, 0},
	{"epoch", PARAMETER_NUMBER, true, INT64_MAX},
	END,
};
static const struct parameter epoch_diff[] = {
	{"pool", PARAMETER_TEXT, true, 0},
	{"from", PARAMETER_NUMBER, true, INT64_MAX},
	{"to", PARAMETER_NUMBER, true, INT64_MAX},
	END,
};
static const struct parameter only_reason[] = {{"reason", PARAMETER_TEXT, false, 0}, END};
static const struct parameter revision_show[] = {{"revision", PARAMETER_NUMBER, true, INT64_MAX}, END};
static const struct parameter revision_diff[] = {
	{"from", PARAMETER_NUMBER, true, INT64_MAX},
	{"to", PARAMETER_NUMBER, true, INT64_MAX},
	END,
};
static const struct parameter revision_rollback[] = {{"revision", PARAMETER_NUMBER, true, INT64_MAX}, CHANGE, END};

const struct method method_table[] = {
	{"Status", method_status, false, none},
	{"ServiceList", method_service_list, false, any_name},
	{"ServiceAdd", method_service_add, true, service_add},
	{"ServiceDel", method_service_del, true, delete_name},
	{"PoolList", method_pool_list, false, any_name},
	{"PoolAdd", method_pool_add, true, pool_add},
	{"PoolDel", method_pool_del, true, delete_name},
	{"PoolTable", method_pool_table, false, pool_table},
	{"BackendList", method_backend_list, false, backend_list},
	{"BackendAdd", method_backend_add, true, backend_add},
	{"BackendDel", method_backend_del, true, backend_del},
	{"BackendDrain", method_backend_drain, true, backend_drain},
	{"BackendUndrain", method_backend_undrain, true, backend_drain},
	{"BackendMaintenance", method_backend_maintenance, true, backend_drain},
	{"BackendActivate", method_backend_activate, true, backend_drain},
	{"BackendSet", method_backend_set, true, backend_set},
	{"Counters", method_counters, false, none},
	{"Reload", method_reload, true, reload},
	{"Apply", method_apply, true, apply},
	{"Confirm", method_confirm, true, none},
	{"Undo", method_undo, true, undo},
	{"Export", method_export, false, none},
	{"Digests", method_digests, false, none},
	{"EpochList", method_epoch_list, false, epoch_list},
	{"EpochShow", method_epoch_show, false, epoch_show},
	{"EpochDiff", method_epoch_diff, false, epoch_diff},
	{"RevisionList", method_revision_list, false, none},
	{"RevisionShow", method_revision_show, false, revision_show},
	{"RevisionDiff", method_revision_diff, false, revision_diff},
	{"RevisionRollback", method_revision_rollback, true, revision_rollback},
	{"SelfDrain", method_self_drain, true, only_reason},
	{"SelfUndrain", method_self_undrain, true, none},
	{"Reopen", method_reopen, true, only_wait},
	{},
};

/* ---- what methods use ---- */

json_t *call_fail(struct call *call, enum control_error error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(call->message, sizeof(call->message), format, args);
	va_end(args);
	call->error = error;
	return NULL;
}

const char *call_text(const struct call *call, const char *name)
{
	return json_string_value(json_object_get(call->parameters, name));
}

json_int_t call_number(const struct call *call, const char *name, json_int_t otherwise)
{
	const json_t *value = json_object_get(call->parameters, name);

	return value ? json_integer_value(value) : otherwise;
}

bool call_flag(const struct call *call, const char *name)
{
	return json_is_true(json_object_get(call->parameters, name));
}

/* ---- judging a request ---- */

static bool right_type(const struct parameter *parameter, const json_t *value)
{
	switch (parameter->type) {
	case PARAMETER_TEXT:
		/* C strings from here on: what comes behind a NUL would be lost without a word. */
		return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value);
	case PARAMETER_NUMBER:
		return json_is_integer(value) && json_integer_value(value) >= 0 &&
		       json_integer_value(value) <= parameter->max;
	default:
		return json_is_boolean(value);
	}
}

static void describe_type(const struct parameter *parameter, char *out, size_t size)
{
	static const char *const words[] = {[PARAMETER_TEXT] = "text", [PARAMETER_BOOLEAN] = "true or false"};

	if (parameter->type == PARAMETER_NUMBER)
		snprintf(out, size, "a whole number from 0 to %" JSON_INTEGER_FORMAT, parameter->max);
	else
		snprintf(out, size, "%s", words[parameter->type]);
}

static bool check_known(struct call *call, const struct method *method)
{
	const struct parameter *parameter;
	char wanted[64], hint[SUGGEST_TEXT_MAX];
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)call->parameters, name, value) {
		struct suggestion near = {};

		for (parameter = method->parameters; parameter->name && strcmp(parameter->name, name) != 0; parameter++)
			suggest(&near, name, parameter->name);
		if (!parameter->name) {
			call_fail(call, CONTROL_BAD_REQUEST, "%s has no parameter \"%.60s\"%s", method->name, name,
				  suggest_text(&near, hint));
			return false;
		}
		if (!right_type(parameter, value)) {
			describe_type(parameter, wanted, sizeof(wanted));
			call_fail(call, CONTROL_BAD_REQUEST, "%s: parameter \"%s\" must be %s", method->name, name,
				  wanted);
			return false;
		}
	}
	return true;
}

static bool check_required(struct call *call, const struct method *method)
{
	for (const struct parameter *parameter = method->parameters; parameter->name; parameter++) {
		if (parameter->required && !json_object_get(call->parameters, parameter->name)) {
			call_fail(call, CONTROL_BAD_REQUEST, "%s needs parameter \"%s\"", method->name,
				  parameter->name);
			return false;
		}
	}
	return true;
}

static json_t *run(struct call *call, const char *name)
{
	const struct method *method = method_table;

	while (method->name && strcmp(method->name, name) != 0)
		method++;
	if (!method->name)
		return call_fail(call, CONTROL_UNKNOWN_METHOD, "there is no method \"%.60s\"", name);
	call->method = method->name;
	if (!call->peer->admin && (method->admin || call->daemon->options->only_admins))
		return call_fail(call, CONTROL_PERMISSION_DENIED,
				 "%s%s is for root, the user that shuntd runs as, and the group \"%s\", and this is "
				 "user %u",
				 method->name,
				 json_is_true(json_object_get(call->parameters, "plan")) ? ", also only to plan it,"
											 : "",
				 call->daemon->options->admin_group, (unsigned int)call->peer->uid);
	if (!check_known(call, method) || !check_required(call, method))
		return NULL;
	return method->run(call);
}

/* A report's errors come with the message; the first of them is the message where there is no other. */
static json_t *error_reply(struct call *call)
{
	if (!*call->message)
		snprintf(call->message, sizeof(call->message), "%s", report_first(&call->report, "out of memory"));
	return control_error_reply(call->error, call->message, control_entries(&call->report));
}

json_t *methods_answer(struct daemon *daemon, const json_t *message, const struct peer *peer)
{
	struct call call = {.daemon = daemon, .peer = peer, .error = CONTROL_FAILED};
	json_t *nothing = json_object(), *reply;
	char why[CONTROL_WHY_MAX];
	const char *name = "?";

	if (control_request_parse(message, &name, &call.parameters, &call.error, why)) {
		reply = control_error_reply(call.error, why, NULL);
	} else {
		if (!call.parameters)
			call.parameters = nothing;
		call.error = CONTROL_FAILED;
		reply = run(&call, name);
		reply = reply ? control_reply(reply) : error_reply(&call);
	}
	if (*call.message)
		log_debug("%s for user %u: %s", name, (unsigned int)peer->uid, call.message);
	report_free(&call.report);
	json_decref(nothing);
	return reply;
}
