/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hook.h"

#define NOBODY 65534

static int refuse(char why[static HOOK_WHY_MAX], int error, const char *name, const char *text)
{
	snprintf(why, HOOK_WHY_MAX, "hook %.48s %s", name, text);
	return error;
}

/* The file and the folder are root's alone to write. */
static bool roots_own(const struct stat *status)
{
	return status->st_uid == 0 && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

int hook_check(const char *dir, const char *name, bool by_nobody, char why[static HOOK_WHY_MAX])
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
	if (by_nobody && !(status.st_mode & S_IXOTH))
		return refuse(why, -EPERM, name, "cannot be run by others than its owner: chmod 755");
	if (!(status.st_mode & S_IXUSR))
		return refuse(why, -EPERM, name, "cannot be run: chmod 755");
	return 0;
}

/* In the child; what it needs is prepared before, because other threads may hold locks. */
static void become_hook(const struct hook_request *request)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	if (null < 0 || syscall(SYS_close_range, 3, UINT_MAX, 0))
		_exit(126);
	if (setpgid(0, 0) || chdir("/"))
		_exit(126);
	if (request->by_nobody && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_exit(126);
	if (request->by_nobody && !geteuid() &&
	    (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		_exit(126);
	execve(request->path, request->arguments, request->variables);
	_exit(127);
}

int hook_start(const struct hook_request *request, pid_t *child, int *fd)
{
	pid_t pid = fork();
	int opened, error;

	if (!pid)
		become_hook(request);
	if (pid < 0)
		return -errno;
	setpgid(pid, pid); /* whichever of the two is first */
	opened = (int)syscall(SYS_pidfd_open, pid, 0);
	if (opened < 0) {
		error = -errno;
		hook_kill(pid);
		return error;
	}
	fcntl(opened, F_SETFD, FD_CLOEXEC);
	*child = pid;
	*fd = opened;
	return 0;
}

bool hook_ended(pid_t child, int *status)
{
	siginfo_t info = {};

	if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return false;
	kill(-child, SIGKILL); /* while the number is still its own */
	waitpid(child, status, 0);
	return true;
}

void hook_kill(pid_t child)
{
	kill(-child, SIGKILL);
	waitpid(child, NULL, 0);
}

const char *hook_describe(int status, char out[static HOOK_WHY_MAX])
{
	if (WIFEXITED(status))
		snprintf(out, HOOK_WHY_MAX, "exit status %d", WEXITSTATUS(status));
	else
		snprintf(out, HOOK_WHY_MAX, "killed by signal %d", WTERMSIG(status));
	return out;
}
