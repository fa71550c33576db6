/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "utf8.h"

#define TEXT_MAX 2000 /* bytes */

static const char *const level_names[] = {"error", "warning", "info"};

/*
 * Texts quote what others wrote, cut short by bytes: what is not printable UTF-8 becomes "?", so that a text is safe on
 * a terminal and always a JSON string.
 */
static void make_printable(char *text)
{
	size_t length = strlen(text), at = 0;

	if (length > TEXT_MAX) {
		length = TEXT_MAX;
		strcpy(text + length - 3, "...");
	}
	while ((at += utf8_bad(text + at, length - at, "")) < length)
		text[at++] = '?';
}

static void add_text(struct report *report, enum report_level level, unsigned int line, unsigned int column, char *text)
{
	struct report_entry *grown;

	if (level == REPORT_ERROR)
		report->errors++;
	if (text && report->count >= REPORT_ENTRIES_MAX) {
		report->dropped++;
		free(text);
		return;
	}
	if (!text)
		return;
	make_printable(text);
	grown = reallocarray(report->entries, report->count + 1, sizeof(*grown));
	if (!grown) {
		free(text);
		return;
	}
	report->entries = grown;
	grown[report->count++] = (struct report_entry){level, line, column, text};
}

void report_add(struct report *report, enum report_level level, unsigned int line, unsigned int column,
		const char *format, ...)
{
	va_list args;
	char *text;

	if (!report)
		return;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	add_text(report, level, line, column, text);
}

int report_error(struct report *report, int error, const char *format, ...)
{
	va_list args;
	char *text;

	if (!report)
		return error;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	add_text(report, REPORT_ERROR, 0, 0, text);
	return error;
}

int report_set_source(struct report *report, const char *source)
{
	char *copy = source ? strdup(source) : NULL;

	if (source && !copy)
		return -ENOMEM;
	free(report->source);
	report->source = copy;
	return 0;
}

void report_prefix(struct report *report, const char *prefix)
{
	for (size_t i = 0; i < report->count; i++) {
		char *text;

		if (asprintf(&text, "%s: %s", prefix, report->entries[i].text) < 0)
			continue;
		free(report->entries[i].text);
		report->entries[i].text = text;
	}
}

void report_move(struct report *to, struct report *from)
{
	size_t errors = (to ? to->errors : 0) + from->errors;

	if (!to)
		goto out;
	for (size_t i = 0; i < from->count; i++) {
		struct report_entry *entry = &from->entries[i];

		add_text(to, entry->level, entry->line, entry->column, entry->text);
		entry->text = NULL;
	}
	to->dropped += from->dropped;
	to->errors = errors; /* with those that have no entry */
out:
	report_free(from);
}

static int by_place(const void *a, const void *b)
{
	const struct report_entry *x = *(const struct report_entry *const *)a;
	const struct report_entry *y = *(const struct report_entry *const *)b;

	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->column != y->column)
		return x->column < y->column ? -1 : 1;
	return x < y ? -1 : x > y; /* as they came */
}

const struct report_entry **report_sorted(const struct report *report)
{
	const struct report_entry **sorted = calloc(report->count + 1, sizeof(*sorted));

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < report->count; i++)
		sorted[i] = &report->entries[i];
	qsort(sorted, report->count, sizeof(*sorted), by_place);
	return sorted;
}

char *report_text(const struct report *report)
{
	const struct report_entry **sorted = report_sorted(report);
	char *text = NULL;
	size_t size;
	FILE *out;

	if (!sorted)
		return NULL;
	out = open_memstream(&text, &size);
	for (size_t i = 0; out && i < report->count; i++) {
		if (sorted[i]->line)
			fprintf(out, "%s:%u:%u: ", report->source ? report->source : "-", sorted[i]->line,
				sorted[i]->column);
		fprintf(out, "%s: %s\n", level_names[sorted[i]->level], sorted[i]->text);
	}
	free(sorted);
	if (out && report->dropped)
		fprintf(out, "%zu more are not listed: correct these first\n", report->dropped);
	if (!out || fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

void report_free(struct report *report)
{
	for (size_t i = 0; i < report->count; i++)
		free(report->entries[i].text);
	free(report->entries);
	free(report->source);
	*report = (struct report){};
}

const char *report_first(const struct report *report, const char *otherwise)
{
	for (size_t i = 0; i < report->count; i++) {
		if (report->entries[i].level == REPORT_ERROR)
			return report->entries[i].text;
	}
	return report->count ? report->entries[0].text : otherwise;
}
