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

/* One request at work.  Its parameters are of the right names and types. */
struct call {
	struct daemon *daemon;
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

/* Answer a message from a user.  A whole reply; NULL if out of memory. */
json_t *methods_answer(struct daemon *daemon, const json_t *message, uid_t uid);

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

#endif
