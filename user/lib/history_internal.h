/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the history in memory and its file. */
#ifndef SHUNT_HISTORY_INTERNAL_H
#define SHUNT_HISTORY_INTERNAL_H

#include <stdbool.h>

#include "history.h"

struct history_entry {
	uint64_t number;
	char *text; /* JSON, one line */
	bool written;
};

struct history_subject {
	char *name;		       /* of a pool; "": revisions */
	struct history_entry *entries; /* the oldest first */
	size_t n;
	uint64_t touched; /* history->touches when something was added */
};

struct history {
	char *dir;			  /* NULL: not on disk */
	struct history_subject *subjects; /* sorted by name */
	size_t n;
	size_t n_unwritten; /* entries that the file does not have */
	size_t live_bytes;  /* of all texts */
	uint64_t touches;
	uint64_t file_bytes; /* of the file; 0: it is to be written anew */
	uint64_t chain;	     /* checksum of the file's last line: the seed of the next */
};

/* Takes the text on success.  written: it is in the file already.  -ENOMEM. */
int history_insert(struct history *history, const char *pool, uint64_t number, char *text, bool written);

#endif
