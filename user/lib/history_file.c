/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The history's file: a head, then lines "<checksum> <JSON>".  Each checksum has the one before as its seed, so that a
 * line that is changed, missing or out of its place is found.
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
#include "history_internal.h"

#define HEAD "{\"shunt-history\":1}\n"
#define HEAD_LENGTH (sizeof(HEAD) - 1)
#define SUM_LENGTH 17 /* 16 hexadecimal digits and a space */
#define FILE_NEW HISTORY_FILE ".new"
#define FILE_DAMAGED HISTORY_FILE ".damaged"
#define FILE_MAX (1ull << 30)
#define SLACK 65536u /* bytes of old entries that are not worth writing the file anew */

/* ---- write ---- */

/* The file anew, or the lines that it does not have: malloc'd. */
static char *lines_of(const struct history *history, bool anew, size_t *length, uint64_t *chain)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, length);

	if (!out)
		return NULL;
	if (anew)
		fputs(HEAD, out);
	for (size_t i = 0; i < history->n; i++) {
		const struct history_subject *subject = &history->subjects[i];

		for (size_t j = 0; j < subject->n; j++) {
			const char *entry = subject->entries[j].text;

			if (subject->entries[j].written && !anew)
				continue;
			*chain = XXH64(entry, strlen(entry), *chain);
			fprintf(out, "%016" PRIx64 " %s\n", *chain, entry);
		}
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static void all_written(struct history *history)
{
	for (size_t i = 0; i < history->n; i++)
		for (size_t j = 0; j < history->subjects[i].n; j++)
			history->subjects[i].entries[j].written = true;
	history->n_unwritten = 0;
}

static int write_out(int fd, const char *text, size_t length)
{
	int ret = file_write(fd, text, length);

	if (!ret && fdatasync(fd))
		ret = -errno;
	return ret;
}

static int write_anew(struct history *history, int dir)
{
	uint64_t chain = 0;
	size_t length = 0;
	char *text = lines_of(history, true, &length, &chain);
	int ret, fd = text ? openat(dir, FILE_NEW, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;

	ret = !text ? -ENOMEM : fd < 0 ? -errno : write_out(fd, text, length);
	free(text);
	if (fd >= 0 && close(fd) && !ret)
		ret = -errno;
	if (!ret && (renameat(dir, FILE_NEW, dir, HISTORY_FILE) || fsync(dir)))
		ret = -errno;
	if (ret) {
		unlinkat(dir, FILE_NEW, 0);
		return ret;
	}
	history->file_bytes = length;
	history->chain = chain;
	all_written(history);
	return 0;
}

static int append(struct history *history, int dir)
{
	uint64_t chain = history->chain;
	size_t length = 0;
	char *text = lines_of(history, false, &length, &chain);
	int ret, fd = text ? openat(dir, HISTORY_FILE, O_WRONLY | O_NOFOLLOW | O_CLOEXEC) : -1;

	/* What an append that failed has left is overwritten. */
	if (!text)
		ret = -ENOMEM;
	else if (fd < 0 || ftruncate(fd, (off_t)history->file_bytes) || lseek(fd, 0, SEEK_END) < 0)
		ret = -errno;
	else
		ret = write_out(fd, text, length);
	free(text);
	if (fd >= 0 && close(fd) && !ret)
		ret = -errno;
	if (ret)
		return ret;
	history->file_bytes += length;
	history->chain = chain;
	all_written(history);
	return 0;
}

int history_flush(struct history *history, struct report *report)
{
	int dir, ret;

	if (!history->dir || !history->n_unwritten)
		return 0;
	dir = open(history->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		ret = -errno;
	else if (!history->file_bytes || history->file_bytes > 2 * history->live_bytes + SLACK)
		ret = write_anew(history, dir);
	else
		ret = append(history, dir);
	if (dir >= 0)
		close(dir);
	if (ret)
		report_error(report, ret,
			     "cannot write %s/" HISTORY_FILE ": %s; epochs go on, and are remembered while the daemon "
			     "runs: make the folder writable, or room on its disk",
			     history->dir, strerror(-ret));
	return ret;
}

/* ---- read ---- */

static int take_line(struct history *history, const char *line, size_t length)
{
	const char *text = line + SUM_LENGTH, *pool;
	size_t size = length - SUM_LENGTH;
	json_t *entry, *number;
	char sum[SUM_LENGTH + 1], *copy;
	int ret = -EUCLEAN;

	if (length <= SUM_LENGTH)
		return -EUCLEAN;
	snprintf(sum, sizeof(sum), "%016" PRIx64 " ", XXH64(text, size, history->chain));
	if (memcmp(sum, line, SUM_LENGTH) != 0)
		return -EUCLEAN;
	entry = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	pool = json_string_value(json_object_get(entry, "pool"));
	number = json_object_get(entry, pool ? "epoch" : "revision");
	copy = strndup(text, size);
	if (!copy)
		ret = -ENOMEM;
	else if (json_is_integer(number))
		ret = history_insert(history, pool, (uint64_t)json_integer_value(number), copy, true);
	if (ret)
		free(copy);
	else
		history->chain = XXH64(text, size, history->chain);
	json_decref(entry);
	return ret;
}

/* All whole lines; *done: bytes that were right.  -EUCLEAN where a line is not. */
static int take_lines(struct history *history, const char *text, size_t length, size_t *done)
{
	*done = 0;
	if (length < HEAD_LENGTH || memcmp(text, HEAD, HEAD_LENGTH) != 0)
		return -EUCLEAN;
	for (*done = HEAD_LENGTH; *done < length;) {
		const char *end = memchr(text + *done, '\n', length - *done);
		int ret;

		if (!end)
			return 0;
		ret = take_line(history, text + *done, (size_t)(end - text) - *done);
		if (ret)
			return ret;
		*done = (size_t)(end - text) + 1;
	}
	return 0;
}

static char *read_file(int dir, size_t *length, int *error)
{
	int fd = openat(dir, HISTORY_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat stat = {};
	char *text = NULL;
	ssize_t n = 0;

	*error = 0;
	*length = 0;
	if (fd < 0 || fstat(fd, &stat))
		*error = -errno;
	else if (!S_ISREG(stat.st_mode) || (uint64_t)stat.st_size > FILE_MAX)
		*error = -EUCLEAN;
	else if (!(text = malloc((size_t)stat.st_size + 1)))
		*error = -ENOMEM;
	while (text && *length < (size_t)stat.st_size) {
		n = read(fd, text + *length, (size_t)stat.st_size - *length);
		if (n <= 0)
			break;
		*length += (size_t)n;
	}
	if (n < 0)
		*error = -errno;
	if (fd >= 0)
		close(fd);
	return text;
}

/* The damaged file goes aside; what stood before the damage is written anew with the next entry. */
static int set_aside(const struct history *history, int dir, size_t done, struct report *report)
{
	if (renameat(dir, HISTORY_FILE, dir, FILE_DAMAGED))
		return report_error(report, -errno, "cannot move the damaged %s/" HISTORY_FILE " aside: %s",
				    history->dir, strerror(errno));
	report_add(report, REPORT_WARNING, 0, 0,
		   "%s/" HISTORY_FILE " is damaged after %zu bytes: it is " FILE_DAMAGED
		   " now, and the history of epochs "
		   "and revisions goes on with what stands before; nothing else is lost",
		   history->dir, done);
	return 0;
}

static int load(struct history *history, struct report *report)
{
	int ret, dir = open(history->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t length = 0, done = 0;
	char *text;

	if (dir < 0)
		return errno == ENOENT ? 0 : -errno;
	text = read_file(dir, &length, &ret);
	if (!ret)
		ret = take_lines(history, text, length, &done);
	free(text);
	if (!ret && done < length)
		report_add(report, REPORT_INFO, 0, 0,
			   "%s/" HISTORY_FILE ": its last entry was not finished, and is dropped", history->dir);
	history->file_bytes = ret ? 0 : done;
	if (ret == -EUCLEAN)
		ret = set_aside(history, dir, done, report);
	close(dir);
	return ret == -ENOENT ? 0 : ret;
}

int history_open(const char *dir, struct history **out, struct report *report)
{
	struct history *history = calloc(1, sizeof(*history));
	int ret = 0;

	if (!history)
		return -ENOMEM;
	if (dir) {
		history->dir = strdup(dir);
		ret = history->dir ? load(history, report) : -ENOMEM;
	}
	if (ret) {
		report_error(report, ret, "cannot read the history of %s: %s", dir, strerror(-ret));
		history_close(history);
		return ret;
	}
	*out = history;
	return 0;
}
