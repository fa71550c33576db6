/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "figures.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double median(const double *values, unsigned int n)
{
	double sorted[ROUNDS_MAX];

	memcpy(sorted, values, n * sizeof(*values));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[n / 2];
}

struct ratio ratio_of(const double *values, const double *to, unsigned int n)
{
	struct ratio ratio = {median(values, n) / median(to, n), INFINITY, 0};

	for (unsigned int i = 0; i < n; i++) {
		ratio.least = fmin(ratio.least, values[i] / to[i]);
		ratio.most = fmax(ratio.most, values[i] / to[i]);
	}
	return ratio;
}
