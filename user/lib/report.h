/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the library has to say to people.  It neither logs nor exits: a function that can fail in a way
 * worth a sentence takes a report and adds to it; whoever owns the boundary prints it once.
 */
#ifndef SHUNT_REPORT_H
#define SHUNT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

enum report_level { REPORT_ERROR, REPORT_WARNING, REPORT_INFO };

struct report_entry {
	enum report_level level;
	unsigned int line;   /* 1-based in `report.source`; 0: no place */
	unsigned int column; /* 1-based */
	char *text; /* one sentence: the thing, what is wrong, the remedy; printable UTF-8, at most 2,000 bytes */
};

/* Entries that are kept; what comes later is only counted (`errors`, `dropped`). */
#define REPORT_ENTRIES_MAX 1000

struct report {
	char *source; /* file name for messages with a place, or NULL */
	struct report_entry *entries;
	size_t count;
	size_t errors;
	size_t dropped;
};

/* Add a sentence.  A report of NULL is allowed and drops it.  Out of memory counts the error and drops the text. */
void report_add(struct report *report, enum report_level level, unsigned int line, unsigned int column,
		const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Add an error without a place and return `error`, so that a failure is reported and returned in one statement. */
int report_error(struct report *report, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

int report_set_source(struct report *report, const char *source);

/* Put "prefix: " in front of every text: what is said of one thing joins what is said of many. */
void report_prefix(struct report *report, const char *prefix);

/* Move all of `from` to the end of `to`, leaving `from` empty. */
void report_move(struct report *to, struct report *from);

/* The text of the first error, else of the first entry, else `otherwise`: for whoever has room for one sentence. */
const char *report_first(const struct report *report, const char *otherwise);

/* The entries by place, as they came where that is equal; malloc'd, `count` pointers; NULL if out of memory. */
const struct report_entry **report_sorted(const struct report *report);

/*
 * "source:line:column: error: text\n" for each entry, sorted by place, and a line that counts the dropped ones;
 * malloc'd, the caller frees it; NULL if out of memory.
 */
char *report_text(const struct report *report);

void report_free(struct report *report);

#endif
