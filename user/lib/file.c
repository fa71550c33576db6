/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

#define NAME_SIZE 256

int file_write(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t n = write(fd, data, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		length -= (size_t)n;
	}
	return 0;
}

int file_replace(int dir, const char *name, const struct iovec *parts, size_t n)
{
	char fresh[NAME_SIZE];
	int fd, ret;

	snprintf(fresh, sizeof(fresh), "%s.new", name);
	fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	ret = fchmod(fd, 0600) ? -errno : 0;
	for (size_t i = 0; i < n && !ret; i++)
		ret = file_write(fd, parts[i].iov_base, parts[i].iov_len);
	if (!ret && fsync(fd))
		ret = -errno;
	if (close(fd) && !ret)
		ret = -errno;
	if (!ret && renameat(dir, fresh, dir, name))
		ret = -errno;
	if (ret)
		unlinkat(dir, fresh, 0);
	return ret;
}

char *file_read(const char *path, size_t max, size_t *length, int *error)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat stat = {};
	char *text = NULL;
	size_t have = 0;
	ssize_t n = 1;

	*error = 0;
	if (fd < 0 || fstat(fd, &stat))
		*error = -errno;
	else if (!S_ISREG(stat.st_mode) || (size_t)stat.st_size > max)
		*error = -EUCLEAN;
	if (!*error) {
		text = malloc((size_t)stat.st_size + 1);
		*error = text ? 0 : -ENOMEM;
	}
	while (!*error && n && have < (size_t)stat.st_size) {
		n = read(fd, text + have, (size_t)stat.st_size - have);
		if (n < 0 && errno != EINTR)
			*error = -errno;
		have += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0)
		close(fd);
	if (*error) {
		free(text);
		return NULL;
	}
	text[have] = '\0';
	*length = have;
	return text;
}
