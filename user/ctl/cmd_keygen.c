/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl keygen: a hash key for a fleet. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl.h"
#include "model.h"

#define HEX (2 * MODEL_KEY_BYTES)

static error_t parse(int key, char *arg, struct argp_state *state)
{
	return ctl_word(state->input, key, arg, state);
}

/* 32 digits, a newline, a NUL. */
static int make_key(char text[static HEX + 2])
{
	unsigned char key[MODEL_KEY_BYTES];
	ssize_t n = getrandom(key, sizeof(key), 0);

	if (n != sizeof(key))
		return n < 0 ? -errno : -EIO;
	for (size_t i = 0; i < sizeof(key); i++)
		sprintf(text + 2 * i, "%02x", key[i]);
	strcpy(text + HEX, "\n");
	explicit_bzero(key, sizeof(key));
	return 0;
}

static int store(int fd, const char *text)
{
	ssize_t n = write(fd, text, HEX + 1);

	if (n != HEX + 1)
		return n < 0 ? -errno : -ENOSPC;
	/* The mode that open() gave is less the umask, which may take the owner's bits. */
	return fchmod(fd, 0600) || fsync(fd) ? -errno : 0;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), err;

	if (fd < 0 && errno == EEXIST)
		return ctl_fail(CTL_INVALID, "Exists",
				"%s exists, and a key in use may not be lost: name another file, or remove it first",
				path);
	if (fd < 0)
		return ctl_fail(CTL_INVALID, "Failed", "cannot make %s: %s", path, strerror(errno));
	err = store(fd, text);
	if (close(fd) && !err)
		err = -errno;
	if (err) {
		unlink(path);
		return ctl_fail(CTL_INVALID, "Failed", "cannot write %s: %s", path, strerror(-err));
	}
	return ctl_options.json ? ctl_print_json(json_object()) : CTL_OK;
}

static int print_key(char *text)
{
	if (!ctl_options.json) {
		fputs(text, stdout);
		return CTL_OK;
	}
	text[HEX] = '\0';
	return ctl_print_json(json_pack("{s:s}", "key", text));
}

int cmd_keygen(int argc, char **argv)
{
	static const char *const names[] = {"FILE", NULL};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.parser = parse,
		.args_doc = "[FILE]",
		.doc = "Makes a hash key, 32 hexadecimal digits, for hash-key or hash-key-file of the document. Every "
		       "load "
		       "balancer of a fleet needs the same one; whoever knows it can aim at a single backend. With "
		       "FILE "
		       "the key is written there, for the owner alone; a file that exists is never overwritten.",
		.children = children,
	};
	struct ctl_words words = {.names = names};
	char text[HEX + 2];
	int err, code = ctl_parse(&argp, argc, argv, NULL, &words);

	if (code)
		return code;
	err = make_key(text);
	if (err)
		return ctl_fail(CTL_INVALID, "Failed", "the kernel gives no random bytes: %s", strerror(-err));
	code = words.value[0] ? write_file(words.value[0], text) : print_key(text);
	explicit_bzero(text, sizeof(text));
	return code;
}
