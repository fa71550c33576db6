/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* "Did you mean": the candidate nearest to a misspelt word. */
#ifndef SHUNT_SUGGEST_H
#define SHUNT_SUGGEST_H

#include <stddef.h>

struct suggestion {
	const char *best; /* NULL: nothing near enough */
	size_t distance;
};

/*
 * Take `candidate` as *best if it is nearer to `word` than what was there: at most two edits (a swap of neighbours is
 * one), one in words of four characters or less.  Words longer than 63 bytes are near to nothing.  Start with {}.
 */
void suggest(struct suggestion *suggestion, const char *word, const char *candidate);

#define SUGGEST_TEXT_MAX 96
/* " (did you mean "best"?)", or "" without one.  Returns `out`. */
const char *suggest_text(const struct suggestion *suggestion, char out[static SUGGEST_TEXT_MAX]);

#endif
