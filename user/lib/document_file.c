/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "document.h"
#include "hexkey.h"

#define KEY_FILE_MAX 4096 /* bytes */

/* What was read: wiped when freed, because a key may be in it. */
struct content {
	char *text;
	size_t length, room;
};

static void wipe(struct content *content)
{
	if (content->text)
		explicit_bzero(content->text, content->room);
	free(content->text);
	*content = (struct content){};
}

static int grow(struct content *content)
{
	struct content larger = {.room = content->room ? 2 * content->room : 65536, .length = content->length};

	larger.text = malloc(larger.room);
	if (!larger.text)
		return -ENOMEM;
	if (content->length)
		memcpy(larger.text, content->text, content->length);
	wipe(content);
	*content = larger;
	return 0;
}

/* All up to the end, or -EFBIG beyond `max` bytes. */
static int read_all(int fd, size_t max, struct content *content)
{
	for (;;) {
		ssize_t n;

		if (content->length == content->room) {
			int ret = grow(content);

			if (ret)
				return ret;
		}
		n = read(fd, content->text + content->length, content->room - content->length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		content->length += (size_t)n;
		if (content->length > max)
			return -EFBIG;
	}
}

static int open_key_file(const struct model *model, struct report *report)
{
	const char *path = model->key_file;
	struct stat status;
	/* non-blocking: a pipe must not hold us before we can refuse it */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = errno;
	const char *wrong = NULL;

	if (fd < 0) {
		report_add(report, REPORT_ERROR, model->key_place.line, model->key_place.column,
			   "cannot read the key file %s (%s): %s, or name another", path, strerror(error),
			   error == EACCES ? "run this as root or as its owner" : "make it with \"shuntctl keygen\"");
		return -EINVAL;
	}
	if (fstat(fd, &status) || !S_ISREG(status.st_mode))
		wrong = "is not a regular file: name one that \"shuntctl keygen\" made";
	else if (status.st_mode & (S_IRWXO | S_IWGRP))
		wrong = "is open to other users, who could aim at one backend: make a new key, with mode 0600";
	if (!wrong)
		return fd;
	report_add(report, REPORT_ERROR, model->key_place.line, model->key_place.column, "the key file %s %s", path,
		   wrong);
	close(fd);
	return -EINVAL;
}

int document_read_key(struct model *model, struct report *report)
{
	struct content content = {};
	int fd = open_key_file(model, report), ret;

	if (fd < 0)
		return fd;
	ret = read_all(fd, KEY_FILE_MAX, &content);
	close(fd);
	if (!ret)
		ret = hexkey_parse(content.text, content.length, model->key);
	wipe(&content);
	if (ret == -ENOMEM)
		return ret;
	if (ret) {
		report_add(report, REPORT_ERROR, model->key_place.line, model->key_place.column,
			   "the key file %s does not hold 32 hexadecimal digits: make one with \"shuntctl keygen\"",
			   model->key_file);
		return -EINVAL;
	}
	model->has_key = true;
	return 0;
}

static int read_document_file(const char *path, struct content *content, bool *others_read, struct report *report)
{
	bool standard_input = strcmp(path, "-") == 0;
	int fd = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC), ret;
	struct stat status;

	if (fd < 0)
		return report_error(report, -errno, "cannot open %s: %s", path, strerror(errno));
	*others_read =
		!standard_input && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & S_IROTH);
	ret = read_all(fd, DOCUMENT_SIZE_MAX, content);
	if (!standard_input)
		close(fd);
	if (ret == -EFBIG)
		return report_error(report, -EINVAL, "%s is larger than %u MiB: make it shorter", path,
				    DOCUMENT_SIZE_MAX >> 20);
	if (ret)
		return report_error(report, ret, "cannot read %s: %s", path, strerror(-ret));
	return 0;
}

int document_judge(const char *text, size_t length, const char *source, struct model **out, struct report *report)
{
	struct model_local *locals = NULL;
	size_t n_locals = 0;
	int ret = report_set_source(report, source);

	if (ret)
		return ret;
	ret = model_locals(&locals, &n_locals);
	if (ret)
		report_error(report, ret, "cannot list the addresses of this host: %s", strerror(-ret));
	else
		ret = document_check(text, length, locals, n_locals, out, report);
	free(locals);
	return ret;
}

int document_load(const char *path, struct model **out, struct report *report)
{
	const char *source = strcmp(path, "-") == 0 ? "<stdin>" : path;
	struct content content = {};
	bool others_read = false;
	int ret = read_document_file(path, &content, &others_read, report);

	if (!ret)
		ret = document_judge(content.text, content.length, source, out, report);
	if (!ret && others_read && !(*out)->key_file && !(*out)->keep_key)
		report_add(
			report, REPORT_WARNING, (*out)->key_place.line, (*out)->key_place.column,
			"everybody on this host can read %s, and so its hash key: use hash-key-file, or chmod o-r it",
			path);
	wipe(&content);
	return ret;
}
