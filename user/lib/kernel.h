/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's refusals in words. */
#ifndef SHUNT_KERNEL_H
#define SHUNT_KERNEL_H

#include "report.h"

/*
 * Report "<text>: <error in words>" and return `error` (negative errno).  -EPERM names the capabilities that the
 * process lacks, or the lockdown mode, instead of "Operation not permitted".
 */
int kernel_error(struct report *report, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
