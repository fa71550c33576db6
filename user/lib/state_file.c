/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state file: a line that says format, length and checksum of the line that follows, which is the state.  It is
 * written beside and renamed, so that there is always a whole one; what other damage does, the checksum finds.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "file.h"
#include "state_internal.h"

#define FILE_MAX (256u << 20) /* bytes: far above what a full instance takes */
#define HEAD_MAX 96

/* ---- save ---- */

static int make_dirs(const char *dir)
{
	char *path = strdup(dir);
	int ret = 0;

	if (!path)
		return -ENOMEM;
	for (char *at = path + 1; *at && !ret; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(path, 0700) && errno != EEXIST)
			ret = -errno;
		*at = '/';
	}
	if (!ret && mkdir(path, 0700) && errno != EEXIST)
		ret = -errno;
	free(path);
	return ret;
}

static int open_dir(const char *dir)
{
	int ret = make_dirs(dir), fd;

	if (ret)
		return ret;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
}

static void write_head(char out[static HEAD_MAX], int format, size_t length, uint64_t checksum)
{
	snprintf(out, HEAD_MAX, "{\"shunt-state\":%d,\"length\":%zu,\"xxh64\":\"%016" PRIx64 "\"}\n", format, length,
		 checksum);
}

static int write_file(int dir, const char *text, size_t length)
{
	char head[HEAD_MAX];
	struct iovec parts[] = {{head, 0}, {(char *)text, length}};
	int ret;

	write_head(head, STATE_FORMAT, length, XXH64(text, length, 0));
	parts[0].iov_len = strlen(head);
	ret = file_replace(dir, STATE_FILE, parts, 2);
	if (!ret && fsync(dir))
		ret = -errno;
	return ret;
}

int state_save(const char *dir, const struct state *state, struct report *report)
{
	struct text text = {};
	int fd, ret = state_encode(state, &text);

	if (ret) {
		text_free(&text);
		return ret;
	}
	fd = open_dir(dir);
	ret = fd < 0 ? fd : write_file(fd, text.at, text.length);
	if (fd >= 0)
		close(fd);
	text_free(&text);
	if (ret)
		return report_error(report, ret,
				    "cannot write %s/" STATE_FILE ": %s; the change is refused, because it would not "
				    "survive a restart: make the folder writable, or room on its disk",
				    dir, strerror(-ret));
	return 0;
}

int state_remove(const char *dir)
{
	int ret = 0, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (unlinkat(fd, STATE_FILE, 0) ? errno != ENOENT : fsync(fd))
		ret = -errno;
	close(fd);
	return ret;
}

/* ---- load ---- */

static int damaged(const char *path, const char *why, struct report *report)
{
	return report_error(report, -EUCLEAN,
			    "%s cannot be used: %s; nothing was changed, and traffic goes on as it is "
			    "pinned. To recover, put a good copy back, or move the file away and start again: the "
			    "document is then applied anew, and what verbs changed since is lost",
			    path, why);
}

/* The head must be, byte for byte, what write_head() writes for the body: no other spelling of it is accepted. */
static int check_head(const char *text, size_t length, size_t *body, int *format, char why[static 128])
{
	const char *end = memchr(text, '\n', length);
	char expected[HEAD_MAX];
	size_t head;

	if (!end || end - text >= HEAD_MAX || sscanf(text, "{\"shunt-state\":%d,", format) != 1) {
		snprintf(why, 128, "it does not begin as a state file");
		return -EUCLEAN;
	}
	if (*format < 1 || *format > STATE_FORMAT) {
		snprintf(why, 128, "it has format %d, and this program reads formats 1 to %d", *format, STATE_FORMAT);
		return -EUCLEAN;
	}
	head = (size_t)(end - text) + 1;
	write_head(expected, *format, length - head, XXH64(text + head, length - head, 0));
	if (head != strlen(expected) || memcmp(text, expected, head) != 0) {
		snprintf(why, 128, "it is damaged (length or checksum do not fit)");
		return -EUCLEAN;
	}
	*body = head;
	return 0;
}

/* Takes the path, which may be NULL. */
static int load(char *path, struct state *out, struct report *report)
{
	char *text, why[128] = "it is no regular file, or too large";
	size_t length = 0, body = 0;
	int ret, format = 0;

	if (!path)
		return -ENOMEM;
	text = file_read(path, FILE_MAX, &length, &ret);
	if (text) {
		ret = check_head(text, length, &body, &format, why);
		if (!ret)
			ret = state_decode(format, text + body, length - body, out, why);
		explicit_bzero(text, length);
		free(text);
	}
	if (ret == -EUCLEAN || ret == -EINVAL)
		ret = damaged(path, why, report);
	else if (ret && ret != -ENOENT && ret != -ENOMEM)
		report_error(report, ret, "cannot read %s: %s", path, strerror(-ret));
	free(path);
	return ret;
}

int state_load(const char *dir, struct state *out, struct report *report)
{
	char *path;

	return load(asprintf(&path, "%s/" STATE_FILE, dir) < 0 ? NULL : path, out, report);
}

int state_load_revision(const char *dir, uint64_t revision, struct state *out, struct report *report)
{
	char *path;

	return load(asprintf(&path, "%s/" STATE_REVISIONS "/%" PRIu64 ".json", dir, revision) < 0 ? NULL : path, out,
		    report);
}
