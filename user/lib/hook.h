/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs of the host's that the daemon runs: files that root put into a directory of root's.  No shell is between. */
#ifndef SHUNT_HOOK_H
#define SHUNT_HOOK_H

#include <stdbool.h>
#include <sys/types.h>

#define HOOK_WHY_MAX 120
#define HOOK_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Whether a file may be run, by nobody or by us: 0, or -EPERM or another -errno, with why. */
int hook_check(const char *dir, const char *name, bool by_nobody, char why[static HOOK_WHY_MAX]);

struct hook_request {
	const char *path;
	char *const *arguments, *const *variables; /* both ended by NULL; the first argument is the program's name */
	bool by_nobody;				   /* without privilege */
};

/*
 * Run it in a process group of its own, without the daemon's descriptors.  0, *child and *fd, which is readable when it
 * has ended; or -errno.
 */
int hook_start(const struct hook_request *request, pid_t *child, int *fd);

/* Whether it has ended; then it is waited for, and what it left behind is killed.  *status: as of waitpid(). */
bool hook_ended(pid_t child, int *status);

/* The same at once, whatever it does. */
void hook_kill(pid_t child);

/* What came of it: "exit status 1", "killed by signal 9". */
const char *hook_describe(int status, char out[static HOOK_WHY_MAX]);

#endif
