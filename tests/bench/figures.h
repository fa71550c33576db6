/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Of the rounds of a benchmark. */
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H

#define ROUNDS_MAX 99

/* n: at most ROUNDS_MAX */
double median(const double *values, unsigned int n);

struct ratio {
	double median, least, most;
};

/* Of medians, and the extremes of single rounds. */
struct ratio ratio_of(const double *values, const double *to, unsigned int n);

#endif
