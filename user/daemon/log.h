/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's log: lines to standard error, with the journal's level prefixes ("<3>") where that is no terminal. */
#ifndef SHUNTD_LOG_H
#define SHUNTD_LOG_H

#include "report.h"

enum log_level { LOG_ERROR = 3, LOG_WARNING = 4, LOG_INFO = 6, LOG_DEBUG = 7 }; /* as in syslog(3) */

/* "error", "warning", "info", "debug".  -EINVAL and *out untouched for another word. */
int log_level_parse(const char *word, enum log_level *out);
void log_set_level(enum log_level level);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/* Each entry of the report as a line of its own level. */
void log_report(const struct report *report);

#endif
