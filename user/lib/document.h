/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the YAML document into a model. */
#ifndef SHUNT_DOCUMENT_H
#define SHUNT_DOCUMENT_H

#include "model.h"
#include "report.h"

/*
 * Bytes.  The largest capacities with the longest names take 30 MiB.  While it is read, 10 times as much memory is
 * needed, and 60 times where all is on one line, as in JSON that is not indented.
 */
#define DOCUMENT_SIZE_MAX (64u << 20)

/*
 * Parse and check syntax: YAML errors, unknown and duplicate keys, types, ranges.  All errors are listed, each with
 * line, column and a remedy.  Does not read the key file and does not judge what model_check() judges. 0 and *out owned
 * by the caller; -EINVAL with errors in `report`; -ENOMEM.
 */
int document_parse(const char *text, size_t length, struct model **out, struct report *report);

/*
 * Parse, read the key file, and model_check() against `locals`: all that is wrong is listed, also where some of it is
 * only found after the parsing of the rest failed.
 */
int document_check(const char *text, size_t length, const struct model_local *locals, size_t n_locals,
		   struct model **out, struct report *report);

/* Read a file ("-": standard input), parse it, read its key file, and model_check() it against this host.  -errno,
 * reported, where it cannot be read. */
int document_load(const char *path, struct model **out, struct report *report);

/* The same for a text that came from elsewhere; `source` names it in the report. */
int document_judge(const char *text, size_t length, const char *source, struct model **out, struct report *report);

/*
 * Where the document says "hash-key: keep": give it the key, and key file, of the model in force, or, if that is NULL,
 * of `key_file` (NULL: none).  0; -EINVAL, reported, where there is none to keep.
 */
int document_keep_key(struct model *model, const struct model *in_force, const char *key_file, struct report *report);

/* Read model->key_file: 32 hex digits and white space; a regular file that others cannot read.  -EINVAL, reported. */
int document_read_key(struct model *model, struct report *report);

#endif
