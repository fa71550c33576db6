/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SHUNT_CTL_DOCUMENT_OUTPUT_H
#define SHUNT_CTL_DOCUMENT_OUTPUT_H

#include <jansson.h>

/* A document in JSON, as YAML for people: what is in a list is one line, if it holds no list itself. */
void ctl_print_document(const json_t *document);

#endif
