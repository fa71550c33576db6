/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "suggest.h"

#define WORD_MAX 63

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance over three rolling rows; anything above `limit` once it is sure to be. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length, size_t limit)
{
	size_t rows[3][WORD_MAX + 1], nearest = 0, nearest_above;

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		const size_t *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
		size_t *row = rows[i % 3];

		nearest_above = nearest;
		nearest = row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = least(above[j - 1] + (a[i - 1] != b[j - 1]), least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], above2[j - 2] + 1);
			nearest = least(nearest, row[j]);
		}
		/* a swap looks two rows back */
		if (nearest > limit && nearest_above > limit)
			return nearest;
	}
	return rows[a_length % 3][b_length];
}

void suggest(struct suggestion *suggestion, const char *word, const char *candidate)
{
	size_t length = strlen(word), other = strlen(candidate), limit = length > 4 ? 2 : 1, d;
	const char *at = candidate;

	if (length > WORD_MAX || other > WORD_MAX || length > other + limit || other > length + limit)
		return;
	/* what both begin with costs nothing: with thousands of names of one pattern this is most of the work */
	for (; length && other && *word == *at; word++, at++, length--)
		other--;
	d = distance(word, length, at, other, limit);
	if (d > limit || (suggestion->best && d >= suggestion->distance))
		return;
	*suggestion = (struct suggestion){candidate, d};
}

const char *suggest_text(const struct suggestion *suggestion, char out[static SUGGEST_TEXT_MAX])
{
	out[0] = '\0';
	if (suggestion->best)
		snprintf(out, SUGGEST_TEXT_MAX, " (did you mean \"%s\"?)", suggestion->best);
	return out;
}
