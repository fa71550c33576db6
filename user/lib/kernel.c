/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>

#include "kernel.h"

#define LOCKDOWN "/sys/kernel/security/lockdown"

static const struct {
	const char *name;
	unsigned int number;
} needed[] = {
	{"CAP_BPF", CAP_BPF},
	{"CAP_NET_ADMIN", CAP_NET_ADMIN},
	{"CAP_PERFMON", CAP_PERFMON},
};

static uint64_t effective_capabilities(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	uint64_t caps = UINT64_MAX;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "CapEff:", 7))
			caps = strtoull(line + 7, NULL, 16);
	if (file)
		fclose(file);
	return caps;
}

static bool locked_down(void)
{
	FILE *file = fopen(LOCKDOWN, "re");
	char line[256] = "";
	bool locked;

	locked = file && fgets(line, sizeof(line), file) && strstr(line, "[confidentiality]");
	if (file)
		fclose(file);
	return locked;
}

/* Why -EPERM; the result is static text or in `buffer`. */
static const char *explain_permission(char *buffer, size_t size)
{
	uint64_t caps = effective_capabilities();
	size_t used = 0;

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]) && used < size; i++)
		if (!(caps >> needed[i].number & 1))
			used += snprintf(buffer + used, size - used, "%s%s", used ? ", " : "not permitted without ",
					 needed[i].name);
	if (used && used < size)
		snprintf(buffer + used, size - used, ": run it as root or give it these capabilities");
	if (used)
		return buffer;
	if (locked_down())
		return "not permitted: the kernel is locked down (" LOCKDOWN
		       " says confidentiality), which forbids BPF";
	return "not permitted, though the process has CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON: in a container they must "
	       "be those of the host's user namespace, and its seccomp filter must allow bpf(2)";
}

int kernel_error(struct report *report, int error, const char *format, ...)
{
	char buffer[256], *text;
	const char *why;
	va_list args;

	if (!report)
		return error;
	if (error == -EPERM)
		why = explain_permission(buffer, sizeof(buffer));
	else if (error == -EACCES && geteuid() != 0)
		why = "permission denied: run it as root";
	else
		why = strerror(-error);
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	report_error(report, error, "%s: %s", text ? text : "out of memory", why);
	free(text);
	return error;
}
