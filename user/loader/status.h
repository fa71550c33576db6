/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SHUNT_LOADER_STATUS_H
#define SHUNT_LOADER_STATUS_H

#include <jansson.h>

/* Print for people what `status -j` prints for programs. */
void status_print(const json_t *root);

#endif
