/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "origin.h"

#define NAME_BUFFER 4096 /* bytes for one entry of the user database */

static void set_why(struct origin *origin, const char *format, va_list args)
{
	vsnprintf(origin->why, sizeof(origin->why), format, args);
}

struct origin origin_self(const char *format, ...)
{
	struct origin origin = {.time = (uint64_t)time(NULL), .uid = ORIGIN_SELF, .pid = getpid(), .user = "shuntd"};
	va_list args;

	va_start(args, format);
	set_why(&origin, format, args);
	va_end(args);
	return origin;
}

struct origin origin_peer(uint32_t uid, int64_t pid, const char *format, ...)
{
	struct origin origin = {.time = (uint64_t)time(NULL), .uid = uid, .pid = pid};
	struct passwd entry, *found = NULL;
	char buffer[NAME_BUFFER];
	va_list args;

	if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found))
		found = NULL;
	snprintf(origin.user, sizeof(origin.user), "%.*s", ORIGIN_USER_MAX, found ? found->pw_name : "?");
	va_start(args, format);
	set_why(&origin, format, args);
	va_end(args);
	return origin;
}

int origin_set_json(json_t *object, const struct origin *origin)
{
	int failed = json_object_set_new(object, "time", json_integer((json_int_t)origin->time));

	failed |= json_object_set_new(object, "user", control_text(origin->user));
	failed |= json_object_set_new(object, "uid", json_integer(origin->uid));
	failed |= json_object_set_new(object, "pid", json_integer(origin->pid));
	failed |= json_object_set_new(object, "why", control_text(origin->why));
	failed |= json_object_set_new(object, "forced", json_boolean(origin->forced));
	return failed;
}

int origin_from_json(const json_t *object, struct origin *out)
{
	const json_t *when = json_object_get(object, "time"), *forced = json_object_get(object, "forced");
	const json_t *uid = json_object_get(object, "uid"), *pid = json_object_get(object, "pid");
	const char *user = json_string_value(json_object_get(object, "user"));
	const char *why = json_string_value(json_object_get(object, "why"));
	struct origin origin = {};

	if (!json_is_integer(when) || json_integer_value(when) < 0 || !json_is_integer(uid) || !json_is_integer(pid) ||
	    !json_is_boolean(forced) || !user || strlen(user) > ORIGIN_USER_MAX || !why || strlen(why) > ORIGIN_WHY_MAX)
		return -EINVAL;
	origin.time = (uint64_t)json_integer_value(when);
	origin.uid = json_integer_value(uid);
	origin.pid = json_integer_value(pid);
	origin.forced = json_is_true(forced);
	snprintf(origin.user, sizeof(origin.user), "%s", user);
	snprintf(origin.why, sizeof(origin.why), "%s", why);
	*out = origin;
	return 0;
}
