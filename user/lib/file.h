/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Small files that are there whole or not at all. */
#ifndef SHUNT_FILE_H
#define SHUNT_FILE_H

#include <stddef.h>
#include <sys/uio.h>

/* All of it: 0 or -errno. */
int file_write(int fd, const char *data, size_t length);

/*
 * Replace `name` in the directory by the parts, written beside as "<name>.new" (mode 0600), flushed, and renamed; on
 * failure the old file is what there is.  That the new one outlives a power cut takes an fsync() of the directory, too.
 * 0 or -errno.
 */
int file_replace(int dir, const char *name, const struct iovec *parts, size_t n);

/*
 * A regular file of at most `max` bytes, malloc'd and terminated.  NULL and a negative *error on failure: -EUCLEAN for
 * what is no regular file, or larger.
 */
char *file_read(const char *path, size_t max, size_t *length, int *error);

#endif
