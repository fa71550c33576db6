/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <libsmartcols/libsmartcols.h>

#include "control.h"
#include "ctl.h"

/* ---- failures ---- */

static void print_entry(const json_t *entry, const char *message)
{
	const char *level = json_string_value(json_object_get(entry, "level"));
	const char *text = json_string_value(json_object_get(entry, "text"));
	json_int_t line = json_integer_value(json_object_get(entry, "line"));

	if (!level || !text || (!strcmp(level, "error") && !strcmp(text, message)))
		return;
	if (line > 0)
		fprintf(stderr, "%" JSON_INTEGER_FORMAT ":%" JSON_INTEGER_FORMAT ": ", line,
			json_integer_value(json_object_get(entry, "column")));
	fprintf(stderr, "%s: %s\n", level, text);
}

int ctl_fail_entries(enum ctl_exit code, const char *error, const char *message, const json_t *entries)
{
	const json_t *entry;
	size_t i;

	if (ctl_options.json) {
		ctl_print_json(json_pack("{s:o, s:o, s:O*}", "error", control_text(error), "message",
					 control_text(message), "entries", entries));
		return (int)code;
	}
	fprintf(stderr, "shuntctl: %s\n", message);
	json_array_foreach (entries, i, entry)
		print_entry(entry, message);
	return (int)code;
}

int ctl_fail(enum ctl_exit code, const char *error, const char *format, ...)
{
	char *message;
	va_list args;

	va_start(args, format);
	if (vasprintf(&message, format, args) < 0)
		message = NULL;
	va_end(args);
	ctl_fail_entries(code, error, message ? message : "out of memory", NULL);
	free(message);
	return (int)code;
}

int ctl_fail_report(enum ctl_exit code, const char *error, const struct report *report)
{
	json_t *entries = control_entries(report), *entry;
	const char *message = "failed";
	size_t i;

	json_array_foreach (entries, i, entry) {
		if (!strcmp(json_string_value(json_object_get(entry, "level")), "error")) {
			message = json_string_value(json_object_get(entry, "text"));
			break;
		}
	}
	ctl_fail_entries(code, error, message, entries);
	json_decref(entries);
	return (int)code;
}

/* ---- values ---- */

static char *format_time(json_int_t seconds)
{
	time_t when = (time_t)seconds;
	char text[64];
	struct tm tm;

	if (seconds <= 0 || !localtime_r(&when, &tm) || !strftime(text, sizeof(text), "%F %T", &tm))
		return strdup("-");
	return strdup(text);
}

static char *format_value(const json_t *value, enum ctl_format format)
{
	char *text = NULL;
	int n = 0;

	if (format == CTL_TIME)
		return format_time(json_integer_value(value));
	switch (json_typeof(value)) {
	case JSON_STRING:
		return strdup(json_string_length(value) ? json_string_value(value) : "-");
	case JSON_TRUE:
		return strdup("yes");
	case JSON_FALSE:
		return strdup("no");
	case JSON_INTEGER:
	case JSON_REAL:
		if (format == CTL_PERCENT)
			n = asprintf(&text, "%.2f%%", json_number_value(value));
		else if (json_is_integer(value))
			n = asprintf(&text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		else
			n = asprintf(&text, "%.6g", json_real_value(value));
		return n < 0 ? NULL : text;
	default:
		return strdup("-");
	}
}

char *ctl_cell(const json_t *row, const struct ctl_column *column)
{
	const json_t *value;

	if (column->text)
		return column->text(row);
	value = json_object_get(row, column->key);
	return value ? format_value(value, column->format) : strdup("-");
}

/* ---- for people ---- */

static int add_column(struct libscols_table *table, const struct ctl_column *column)
{
	bool right = column->format == CTL_NUMBER || column->format == CTL_PERCENT;
	int flags = right ? SCOLS_FL_RIGHT : column->format == CTL_LONG ? SCOLS_FL_WRAP : 0;

	return scols_table_new_column(table, column->title, 0, flags) ? 0 : -ENOMEM;
}

static int add_cell(struct libscols_line *line, size_t column, char *cell)
{
	int err = cell ? scols_line_set_data(line, column, cell) : -ENOMEM;

	free(cell);
	return err;
}

static int add_row(struct libscols_table *table, const json_t *row, const struct ctl_column *columns, size_t n)
{
	struct libscols_line *line = scols_table_new_line(table, NULL);
	int err = line ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < n; i++)
		err = add_cell(line, i, ctl_cell(row, &columns[i]));
	return err;
}

static int fill_table(struct libscols_table *table, const json_t *rows, const struct ctl_column *columns, size_t n)
{
	const json_t *row;
	size_t i;
	int err = 0;

	for (i = 0; !err && i < n; i++)
		err = add_column(table, &columns[i]);
	if (err)
		return err;
	json_array_foreach (rows, i, row) {
		err = add_row(table, row, columns, n);
		if (err)
			return err;
	}
	return scols_print_table(table);
}

int ctl_print_table(const json_t *rows, const struct ctl_column *columns, size_t n)
{
	struct libscols_table *table = scols_new_table();
	int err = table ? fill_table(table, rows, columns, n) : -ENOMEM;

	scols_unref_table(table);
	if (err && err != -EPIPE)
		return ctl_fail(CTL_INVALID, "Failed", "cannot print: %s", strerror(err < 0 ? -err : err));
	return CTL_OK;
}

int ctl_print_object(const json_t *row, const struct ctl_column *columns, size_t n)
{
	int width = 0;

	for (size_t i = 0; i < n; i++)
		if ((int)strlen(columns[i].title) > width)
			width = (int)strlen(columns[i].title);
	for (size_t i = 0; i < n; i++) {
		char *cell = ctl_cell(row, &columns[i]);

		printf("%-*s  %s\n", width, columns[i].title, cell ? cell : "-");
		free(cell);
	}
	return CTL_OK;
}

/* ---- for programs ---- */

int ctl_print_json(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(value);
	return CTL_OK;
}

/* Whoever read the output, `head` or a pager, has had enough of it. */
static bool reader_is_gone(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

	return poll(&out, 1, 0) == 1 && out.revents & (POLLERR | POLLHUP);
}

int ctl_finish(int code)
{
	int err = fflush(stdout) ? errno : 0;

	if ((!err && !ferror(stdout)) || reader_is_gone())
		return code;
	/* Not by the stream: help is printed while ctl_parse() has another in its place. */
	dprintf(STDERR_FILENO, "shuntctl: cannot write the output: %s\n", err ? strerror(err) : "it was cut off");
	return code ? code : CTL_INVALID;
}
