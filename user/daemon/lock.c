/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control.h"
#include "daemon.h"

static int make_dir(const char *path, struct report *report)
{
	if (mkdir(path, 0755) == 0 || errno == EEXIST)
		return 0;
	return report_error(report, -errno, "cannot make %s: %s: run shuntd as root, or make it for its user", path,
			    strerror(errno));
}

static long read_pid(int fd)
{
	char text[32] = "";

	if (pread(fd, text, sizeof(text) - 1, 0) < 0)
		return 0;
	return strtol(text, NULL, 10);
}

/* The file stays when the daemon ends: a lock on a file that was removed meanwhile would lock nobody out. */
static int take(const char *path, const char *instance, struct report *report)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644), ret;

	if (fd < 0)
		return report_error(report, -errno, "cannot open %s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
		report_error(report, ret,
			     "instance %s has a daemon already, process %ld: stop it first, or name another --instance",
			     instance, read_pid(fd));
		close(fd);
		return ret;
	}
	if (ftruncate(fd, 0) || dprintf(fd, "%ld\n", (long)getpid()) < 0) {
		ret = report_error(report, -errno, "cannot write %s: %s", path, strerror(errno));
		close(fd);
		return ret;
	}
	return fd;
}

int lock_instance(const char *instance, struct report *report)
{
	char path[CONTROL_PATH_MAX];
	int ret;

	ret = make_dir(CONTROL_RUN_DIR, report);
	if (ret)
		return ret;
	snprintf(path, sizeof(path), CONTROL_RUN_DIR "/%s", instance);
	ret = make_dir(path, report);
	if (ret)
		return ret;
	snprintf(path, sizeof(path), CONTROL_RUN_DIR "/%s/daemon.lock", instance);
	return take(path, instance, report);
}
