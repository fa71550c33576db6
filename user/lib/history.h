/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happened: an entry for each epoch of a pool and each revision, in one file, history.jsonl
 * (docs/state-format.md), that only grows until it is written anew without what is too old.  Nothing depends on it but
 * what people ask.
 */
#ifndef SHUNT_HISTORY_H
#define SHUNT_HISTORY_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "report.h"

#define HISTORY_FILE "history.jsonl"
#define HISTORY_EPOCHS 64u	      /* kept of each pool */
#define HISTORY_REVISIONS 200u	      /* kept */
#define HISTORY_POOLS 4096u	      /* remembered, those that are no more among them */
#define HISTORY_POOL_BYTES (1u << 20) /* of text of a pool's epochs; the newest two stay whatever they take */

struct history;

/*
 * Read dir/history.jsonl, if there is one.  What is damaged is moved to history.jsonl.damaged, with a warning, and the
 * history begins anew with what stood before the damage.  An unfinished last line, which a crash leaves, is dropped.
 * dir NULL: nothing is kept on disk.  0, -ENOMEM, or what the system says, reported.
 */
int history_open(const char *dir, struct history **out, struct report *report);
void history_close(struct history *history); /* NULL is allowed; what was not flushed is lost */

/*
 * Add an entry, in memory: epoch `number` of `pool`, or, where that is NULL, revision `number`.  Takes the reference;
 * one of the same pool and number is replaced.  0 or -ENOMEM.
 */
int history_add(struct history *history, const char *pool, uint64_t number, json_t *entry);

/* Write what was added since.  0, or -errno, reported; it is tried again the next time. */
int history_flush(struct history *history, struct report *report);

/* The entries of a pool (NULL: revisions), the oldest first: a new array; NULL if out of memory. */
json_t *history_list(const struct history *history, const char *pool);

/* One of them: a new reference, or NULL. */
json_t *history_find(const struct history *history, const char *pool, uint64_t number);

#endif
