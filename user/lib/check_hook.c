/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks by a program of the host's: a file of the hooks directory, which root put there.  It runs as nobody, without
 * privilege and with no more than a few variables; exit status 0 is a pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "addr.h"
#include "check_internal.h"

#define NOBODY 65534
#define N_VARIABLES 5
#define VARIABLE_MAX 128

static int refuse(char why[static CHECK_WHY_MAX], int error, const char *name, const char *text)
{
	snprintf(why, CHECK_WHY_MAX, "hook %.48s %s", name, text);
	return error;
}

/* The file and the folder are root's alone to write. */
static bool roots_own(const struct stat *status)
{
	return status->st_uid == 0 && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

int check_hook(const char *dir, const char *name, char why[static CHECK_WHY_MAX])
{
	char path[PATH_MAX];
	struct stat status;

	if (strchr(name, '/') || *name == '.')
		return refuse(why, -EPERM, name, "is not a file's name");
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (stat(dir, &status) || !S_ISDIR(status.st_mode))
		return refuse(why, -ENOENT, name, "is in a hooks directory that is not there");
	if (!roots_own(&status))
		return refuse(why, -EPERM, name, "is in a directory that others than root can write");
	if (lstat(path, &status))
		return refuse(why, -errno, name, "is not in the hooks directory");
	if (!S_ISREG(status.st_mode) || !roots_own(&status))
		return refuse(why, -EPERM, name, "must be a file of root's that nobody else can write");
	if (!(status.st_mode & S_IXOTH))
		return refuse(why, -EPERM, name, "cannot be run by others than its owner: chmod 755");
	return 0;
}

/* In the child; what it needs is prepared before, because other threads may hold locks. */
static void become_hook(const char *path, char *const variables[])
{
	char *const arguments[] = {(char *)path, NULL};
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (null < 0 || syscall(SYS_close_range, 3, UINT_MAX, 0))
		_exit(126);
	if (setpgid(0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || chdir("/"))
		_exit(126);
	if (!geteuid() &&
	    (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		_exit(126);
	execve(path, arguments, variables);
	_exit(127);
}

enum check_verdict check_hook_start(struct check *check, const struct check_request *request)
{
	char path[PATH_MAX], text[N_VARIABLES][VARIABLE_MAX], address[ADDR_TEXT_MAX];
	char *variables[N_VARIABLES + 1] = {};

	if (check_hook(request->hooks_dir, request->health->hook, check->why))
		return CHECK_FAILED;
	snprintf(path, sizeof(path), "%s/%s", request->hooks_dir, request->health->hook);
	snprintf(text[0], VARIABLE_MAX, "PATH=/usr/local/bin:/usr/bin:/bin");
	snprintf(text[1], VARIABLE_MAX, "SHUNT_POOL=%s", request->pool);
	snprintf(text[2], VARIABLE_MAX, "SHUNT_BACKEND=%s", request->backend);
	snprintf(text[3], VARIABLE_MAX, "SHUNT_ADDRESS=%s", addr_format(&request->address, address));
	snprintf(text[4], VARIABLE_MAX, "SHUNT_PORT=%u", request->port);
	for (int i = 0; i < N_VARIABLES; i++)
		variables[i] = text[i];
	check->child = fork();
	if (!check->child)
		become_hook(path, variables);
	if (check->child < 0) {
		check->child = 0;
		return check_fail(check, "cannot run hook %.48s: %s", request->health->hook, strerror(errno));
	}
	setpgid(check->child, check->child); /* whichever of the two is first */
	check->fd = (int)syscall(SYS_pidfd_open, check->child, 0);
	if (check->fd < 0)
		return check_fail(check, "cannot wait for hook %.48s: %s", request->health->hook, strerror(errno));
	fcntl(check->fd, F_SETFD, FD_CLOEXEC);
	check->events = EPOLLIN;
	return CHECK_RUNNING;
}

enum check_verdict check_hook_step(struct check *check)
{
	siginfo_t info = {};
	int status = 0;

	if (waitid(P_PID, (id_t)check->child, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return CHECK_RUNNING;
	kill(-check->child, SIGKILL); /* what it left behind, while the number is still its own */
	waitpid(check->child, &status, 0);
	check->child = 0;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return CHECK_PASSED;
	if (WIFEXITED(status))
		return check_fail(check, "hook %.48s: exit status %d", check->health->hook, WEXITSTATUS(status));
	return check_fail(check, "hook %.48s: killed by signal %d", check->health->hook, WTERMSIG(status));
}
