/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The methods of docs/control-protocol.md: from a request to a reply. */
#ifndef SHUNTD_METHODS_H
#define SHUNTD_METHODS_H

#include <jansson.h>

#include "control.h"
#include "daemon.h"

enum parameter_type { PARAMETER_TEXT, PARAMETER_NUMBER, PARAMETER_BOOLEAN };

struct parameter {
	const char *name;
	enum parameter_type type;
	bool required;
	json_int_t max; /* of a number; the least is 0 */
};

#define CONFIRM_MAX 86400 /* seconds */

/* Who asks. */
struct peer {
	uid_t uid;
	pid_t pid;
	bool admin; /* may change things */
};

/* One request at work.  Its parameters are of the right names and types. */
struct call {
	struct daemon *daemon;
	const struct peer *peer;
	const char *method;
	const json_t *parameters; /* an object */
	struct report report;	  /* of what the library said */
	enum control_error error;
	char message[512]; /* of the error */
};

/* The reply's parameters (a new reference); NULL after call_fail(), or where memory is out. */
typedef json_t *method_fn(struct call *call);

struct method {
	const char *name;
	method_fn *run;
	bool admin;
	const struct parameter *parameters; /* ended by one without a name */
};

extern const struct method method_table[]; /* ended by one without a name */

/* Answer a message from a peer.  A whole reply; NULL if out of memory. */
json_t *methods_answer(struct daemon *daemon, const json_t *message, const struct peer *peer);

/* Returns NULL, so that a method fails in one statement. */
json_t *call_fail(struct call *call, enum control_error error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

const char *call_text(const struct call *call, const char *name); /* NULL if not given */
json_int_t call_number(const struct call *call, const char *name, json_int_t otherwise);
bool call_flag(const struct call *call, const char *name);

/* methods_show.c */
method_fn method_status, method_service_list, method_pool_list, method_backend_list, method_counters;
/* methods_table.c */
method_fn method_pool_table;
/* methods_change.c */
method_fn method_service_add, method_service_del, method_pool_add, method_pool_del, method_backend_add,
	method_backend_del, method_backend_set, method_reload, method_reopen;
/* methods_apply.c */
method_fn method_apply, method_confirm, method_undo, method_revision_rollback;
/* methods_history.c */
method_fn method_export, method_digests, method_epoch_list, method_epoch_show, method_epoch_diff, method_revision_list,
	method_revision_show, method_revision_diff;

/*
 * Make a change with the request's reason, force, plan and who asks; its reply, or NULL after the failure is noted.
 * Takes the model.  what: "web/web1", for the history; NULL: nothing.
 */
json_t *call_change(struct call *call, struct model *model, struct change *change, const char *what);
/* Where this change comes from: the method, `what`, and the request's reason. */
struct origin call_origin(const struct call *call, const char *what);
enum control_error call_error_of(int error);

/* methods_apply.c: the reply of a drain, or of its plan. */
json_t *call_drain(struct call *call, enum engine_drain how);

/* announce_drain.c */
method_fn method_self_drain, method_self_undrain;

/* methods_drain.c */
method_fn method_backend_drain, method_backend_undrain, method_backend_maintenance, method_backend_activate;
/* Whether the backend of a call has connections that a deletion would break, and a drain would not. */
bool drain_needed(const struct call *call);
json_t *drain_and_delete(struct call *call);

#endif
