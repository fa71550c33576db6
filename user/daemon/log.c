/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

static enum log_level threshold = LOG_INFO;

static const struct {
	const char *word;
	enum log_level level;
} levels[] = {{"error", LOG_ERROR}, {"warning", LOG_WARNING}, {"info", LOG_INFO}, {"debug", LOG_DEBUG}};

static const char *level_word(enum log_level level)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (levels[i].level == level)
			return levels[i].word;
	return "";
}

int log_level_parse(const char *word, enum log_level *out)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (!strcmp(levels[i].word, word)) {
			*out = levels[i].level;
			return 0;
		}
	}
	return -EINVAL;
}

void log_set_level(enum log_level level)
{
	threshold = level;
}

/* One write a line, so that lines of several processes on one stream stay whole. */
static void put_line(enum log_level level, const char *text)
{
	char *line = NULL;
	ssize_t written;
	int length;

	if (isatty(STDERR_FILENO))
		length = asprintf(&line, "shuntd: %s: %s\n", level_word(level), text);
	else
		length = asprintf(&line, "<%d>%s\n", level, text);
	if (length < 0)
		return;
	written = write(STDERR_FILENO, line, (size_t)length);
	(void)written; /* there is nowhere else to say it */
	free(line);
}

void log_line(enum log_level level, const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	if (level > threshold)
		return;
	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		return;
	put_line(level, text);
	free(text);
}

void log_report(const struct report *report)
{
	static const enum log_level of[] = {
		[REPORT_ERROR] = LOG_ERROR, [REPORT_WARNING] = LOG_WARNING, [REPORT_INFO] = LOG_INFO};

	for (size_t i = 0; i < report->count; i++) {
		const struct report_entry *entry = &report->entries[i];

		if (entry->line)
			log_line(of[entry->level], "%s:%u:%u: %s", report->source ? report->source : "-", entry->line,
				 entry->column, entry->text);
		else
			log_line(of[entry->level], "%s", entry->text);
	}
	if (report->dropped)
		log_error("... and %zu more", report->dropped);
}
