/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where things are pinned: instance names, bpffs, folders, the lock. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include <linux/magic.h>

#include "kernel.h"
#include "maps_internal.h"

#define RUN_DIR "/run/shunt"
#define LOCK_POLL_NS 5000000
#define LOCK_TIMEOUT_MS 10000
#define MOUNT_COMMAND "mount -t bpf bpf " SHUNT_BPFFS

int maps_check_instance(const char *instance, struct report *report)
{
	size_t length = strlen(instance);

	if (length >= 1 && length <= SHUNT_INSTANCE_MAX && *instance >= 'a' && *instance <= 'z' &&
	    strspn(instance, "abcdefghijklmnopqrstuvwxyz0123456789-") == length)
		return 0;
	return report_error(report, -EINVAL,
			    "instance name '%s': must be 1 to %d of a-z, 0-9 and '-', the first one a letter", instance,
			    SHUNT_INSTANCE_MAX);
}

const char *maps_instance_option(const char *instance)
{
	return strcmp(instance, SHUNT_INSTANCE_DEFAULT) ? " --instance " : "";
}

const char *maps_instance_name(const char *instance)
{
	return strcmp(instance, SHUNT_INSTANCE_DEFAULT) ? instance : "";
}

static bool is_bpffs(void)
{
	struct statfs info;

	return !statfs(SHUNT_BPFFS, &info) && info.f_type == BPF_FS_MAGIC;
}

int maps_bpffs(struct report *report)
{
	struct statfs info;

	if (statfs(SHUNT_BPFFS, &info))
		return kernel_error(report, -errno,
				    SHUNT_BPFFS " cannot be used: mount sysfs at /sys, then run `" MOUNT_COMMAND "`");
	if (info.f_type == BPF_FS_MAGIC)
		return 0;
	if (info.f_type != SYSFS_MAGIC)
		return report_error(report, -ENODEV,
				    SHUNT_BPFFS
				    " holds another file system than bpffs: unmount it, then run `" MOUNT_COMMAND "`");
	/* Somebody else may have mounted it at the same moment: then there are two, of which the upper one counts. */
	if (mount("bpf", SHUNT_BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755") && !is_bpffs())
		return report_error(report, -errno,
				    "bpffs is not mounted at " SHUNT_BPFFS
				    " and cannot be mounted from here (%s): run `" MOUNT_COMMAND "` as root",
				    strerror(errno));
	return 0;
}

void maps_set_dir(const char *instance, const struct set_range *range, const char *suffix,
		  char out[static PIN_PATH_MAX])
{
	snprintf(out, PIN_PATH_MAX, SHUNT_PIN_ROOT "/%s/%sv%u%s", instance, range == &set_decap ? PIN_DECAP : "",
		 SHUNT_ABI, suffix);
}

int maps_make_instance_dir(const char *instance, struct report *report)
{
	char dir[PIN_PATH_MAX];

	snprintf(dir, sizeof(dir), SHUNT_PIN_ROOT "/%s", instance);
	if (mkdir(SHUNT_PIN_ROOT, 0755) && errno != EEXIST)
		return kernel_error(report, -errno, "cannot make " SHUNT_PIN_ROOT);
	if (mkdir(dir, 0700) && errno != EEXIST)
		return kernel_error(report, -errno, "cannot make %s", dir);
	return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	(void)info;
	(void)type;
	(void)ftw;
	return remove(path) && errno != ENOENT ? -errno : 0;
}

int maps_remove_tree(const char *dir)
{
	int error = nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);

	if (error == -1)
		error = -errno;
	return error == -ENOENT ? 0 : error;
}

static int wait_for_lock(int fd, unsigned int timeout_ms)
{
	struct timespec start, now, pause = {.tv_nsec = LOCK_POLL_NS};

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 >= (long)timeout_ms)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
	return 0;
}

int maps_lock(const char *instance, unsigned int timeout_ms)
{
	char path[PIN_PATH_MAX];
	int fd, error;

	if (mkdir(RUN_DIR, 0755) && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof(path), RUN_DIR "/%s.lock", instance);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	error = wait_for_lock(fd, timeout_ms);
	if (error) {
		close(fd);
		return error;
	}
	return fd;
}

int maps_begin(const char *instance, struct report *report)
{
	int error = maps_check_instance(instance, report), lock;

	if (!error)
		error = maps_bpffs(report);
	if (error)
		return error;
	lock = maps_lock(instance, LOCK_TIMEOUT_MS);
	if (lock == -EBUSY)
		report_error(report, lock,
			     "another program has held the lock " RUN_DIR "/%s.lock for %d seconds: try again",
			     instance, LOCK_TIMEOUT_MS / 1000);
	else if (lock < 0)
		kernel_error(report, lock, "cannot lock " RUN_DIR "/%s.lock", instance);
	return lock;
}
