/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * agent PORT: runs commands in the virtual machine for whoever connects.  A connection sends a script and a NUL; a
 * shell runs it with the connection as its standard input, output and error; at its end a NUL and its exit status
 * follow.
 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SCRIPT_MAX 65536u

/* By the byte: what follows the script is its input. */
static int read_script(int fd, char *script)
{
	for (size_t n = 0; n < SCRIPT_MAX; n++) {
		if (read(fd, script + n, 1) != 1)
			return -EPIPE;
		if (!script[n])
			return 0;
	}
	return -E2BIG;
}

static int serve(int fd)
{
	static char script[SCRIPT_MAX];
	int status = 0;
	pid_t child;

	if (read_script(fd, script))
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	if (!child) {
		for (int standard = 0; standard < 3; standard++)
			dup2(fd, standard);
		close(fd);
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(127);
	}
	waitpid(child, &status, 0);
	dprintf(fd, "%c%d\n", 0, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)(argc > 1 ? strtoul(argv[1], NULL, 10) : 0))};
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	signal(SIGCHLD, SIG_IGN);
	if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 64)) {
		perror("agent");
		return 1;
	}
	puts("agent: ready");
	fflush(stdout);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			continue;
		if (!fork()) {
			signal(SIGCHLD, SIG_DFL);
			return serve(fd);
		}
		close(fd);
	}
}
