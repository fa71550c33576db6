/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who changed something, when and why: kept with revisions and epochs. */
#ifndef SHUNT_ORIGIN_H
#define SHUNT_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#define ORIGIN_USER_MAX 32 /* characters, as of a Linux user name */
#define ORIGIN_WHY_MAX 200 /* bytes */
#define ORIGIN_SELF (-1)   /* uid of the daemon acting by itself */

struct origin {
	uint64_t time; /* UNIX seconds; 0: nothing is known, and the rest is empty */
	int64_t uid, pid;
	bool forced; /* the policy was overridden */
	char user[ORIGIN_USER_MAX + 1];
	char why[ORIGIN_WHY_MAX + 1];
};

/* Now, by the daemon itself. */
struct origin origin_self(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Now, by a peer of the control socket; the user's name is looked up. */
struct origin origin_peer(uint32_t uid, int64_t pid, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Into members time, user, uid, pid, why, forced of an object.  0, or not where memory is out. */
int origin_set_json(json_t *object, const struct origin *origin);

/* From the same.  -EINVAL, and *out untouched. */
int origin_from_json(const json_t *object, struct origin *out);

#endif
