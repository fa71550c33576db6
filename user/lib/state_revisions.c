/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Former revisions: the state file gets a second name before it is replaced, which costs nothing but that. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "state.h"

#define NAME_MAX_BYTES 32

static const char *name_of(uint64_t revision, char out[static NAME_MAX_BYTES])
{
	snprintf(out, NAME_MAX_BYTES, "%" PRIu64 ".json", revision);
	return out;
}

/* A descriptor of dir/revisions, which is made if `make`. */
static int open_revisions(const char *dir, bool make)
{
	int fd, parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret = 0;

	if (parent < 0)
		return -errno;
	if (make && mkdirat(parent, STATE_REVISIONS, 0700) && errno != EEXIST)
		ret = -errno;
	fd = ret ? -1 : openat(parent, STATE_REVISIONS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (!ret && fd < 0)
		ret = -errno;
	close(parent);
	return ret ? ret : fd;
}

bool state_has_revision(const char *dir, uint64_t revision)
{
	char name[NAME_MAX_BYTES];
	int fd = open_revisions(dir, false);
	bool has = fd >= 0 && !faccessat(fd, name_of(revision, name), F_OK, AT_SYMLINK_NOFOLLOW);

	if (fd >= 0)
		close(fd);
	return has;
}

static int keep(const char *dir, int revisions, uint64_t revision)
{
	char name[NAME_MAX_BYTES];
	int ret = 0, parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (parent < 0)
		return -errno;
	/* A name that is there already is from an attempt that failed after this point. */
	if ((unlinkat(revisions, name_of(revision, name), 0) && errno != ENOENT) ||
	    linkat(parent, STATE_FILE, revisions, name, 0) || fsync(revisions))
		ret = -errno;
	close(parent);
	return ret;
}

int state_keep_revision(const char *dir, uint64_t revision, struct report *report)
{
	char name[NAME_MAX_BYTES];
	int fd = open_revisions(dir, true);
	int ret = fd < 0 ? fd : keep(dir, fd, revision);

	/* More than one only where the number kept became smaller. */
	for (uint64_t old = revision; !ret && old > STATE_REVISIONS_KEPT;) {
		old = old == revision ? revision - STATE_REVISIONS_KEPT : old - 1;
		if (unlinkat(fd, name_of(old, name), 0))
			break;
	}
	if (fd >= 0)
		close(fd);
	if (!ret)
		return 0;
	return report_error(report, ret,
			    "cannot keep revision %" PRIu64 " in %s/" STATE_REVISIONS ": %s; the change is refused, "
			    "because it could not be taken back: make the folder writable, or room on its disk",
			    revision, dir, strerror(-ret));
}
