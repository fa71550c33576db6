/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Checks by a program of the host's.  It runs as nobody, with no more than a few variables; exit status 0 is a pass. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include "addr.h"
#include "check_internal.h"
#include "hook.h"

#define N_VARIABLES 5
#define VARIABLE_MAX 128

_Static_assert(CHECK_WHY_MAX >= HOOK_WHY_MAX, "hook_check() writes there");

enum check_verdict check_hook_start(struct check *check, const struct check_request *request)
{
	char path[PATH_MAX], text[N_VARIABLES][VARIABLE_MAX], address[ADDR_TEXT_MAX];
	char *variables[N_VARIABLES + 1] = {}, *arguments[] = {path, NULL};
	const struct hook_request hook = {path, arguments, variables, true};
	int ret;

	if (hook_check(request->hooks_dir, request->health->hook, true, check->why))
		return CHECK_UNABLE;
	snprintf(path, sizeof(path), "%s/%s", request->hooks_dir, request->health->hook);
	snprintf(text[0], VARIABLE_MAX, HOOK_PATH);
	snprintf(text[1], VARIABLE_MAX, "SHUNT_POOL=%s", request->pool);
	snprintf(text[2], VARIABLE_MAX, "SHUNT_BACKEND=%s", request->backend);
	snprintf(text[3], VARIABLE_MAX, "SHUNT_ADDRESS=%s", addr_format(&request->address, address));
	snprintf(text[4], VARIABLE_MAX, "SHUNT_PORT=%u", request->port);
	for (int i = 0; i < N_VARIABLES; i++)
		variables[i] = text[i];
	ret = hook_start(&hook, &check->child, &check->fd);
	if (ret)
		return check_unable(check, "cannot run hook %.48s: %s", request->health->hook, strerror(-ret));
	check->events = EPOLLIN;
	return CHECK_RUNNING;
}

enum check_verdict check_hook_step(struct check *check)
{
	char what[HOOK_WHY_MAX];
	int status = 0;

	if (!hook_ended(check->child, &status))
		return CHECK_RUNNING;
	check->child = 0;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return CHECK_PASSED;
	return check_fail(check, "hook %.48s: %s", check->health->hook, hook_describe(status, what));
}
