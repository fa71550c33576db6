/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of check*.c share. */
#ifndef SHUNT_CHECK_INTERNAL_H
#define SHUNT_CHECK_INTERNAL_H

#include "check.h"

enum check_verdict check_fail(struct check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* check_speak.c: what is said over a connection that stands; tcp says nothing. */
enum check_verdict check_say(struct check *check);
enum check_verdict check_hear(struct check *check);

/* check_hook.c */
enum check_verdict check_hook_start(struct check *check, const struct check_request *request);
enum check_verdict check_hook_step(struct check *check);

#endif
