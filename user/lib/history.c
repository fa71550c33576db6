/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "history_internal.h"

/* ---- subjects: pools, and "" for revisions, sorted by name ---- */

/* Where the name is, or would be. */
static size_t place_of(const struct history *history, const char *name, bool *found)
{
	size_t low = 0, high = history->n;

	*found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(name, history->subjects[middle].name);

		if (!order) {
			*found = true;
			return middle;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void drop_entry(struct history *history, struct history_subject *subject, size_t i)
{
	struct history_entry *entry = &subject->entries[i];

	history->live_bytes -= strlen(entry->text);
	history->n_unwritten -= !entry->written;
	free(entry->text);
	subject->n--;
	memmove(entry, entry + 1, (subject->n - i) * sizeof(*entry));
}

static void drop_subject(struct history *history, size_t at)
{
	struct history_subject *subject = &history->subjects[at];

	while (subject->n)
		drop_entry(history, subject, subject->n - 1);
	free(subject->entries);
	free(subject->name);
	history->n--;
	memmove(subject, subject + 1, (history->n - at) * sizeof(*subject));
}

/* The pool that nothing happened to for the longest time. */
static void drop_stalest(struct history *history)
{
	size_t stalest = history->n;

	for (size_t i = 0; i < history->n; i++) {
		if (*history->subjects[i].name &&
		    (stalest == history->n || history->subjects[i].touched < history->subjects[stalest].touched))
			stalest = i;
	}
	if (stalest < history->n)
		drop_subject(history, stalest);
}

static struct history_subject *subject_of(struct history *history, const char *name)
{
	struct history_subject *grown;
	bool found;
	size_t at;
	char *copy;

	if (history->n >= HISTORY_POOLS)
		drop_stalest(history);
	at = place_of(history, name, &found);
	if (found)
		return &history->subjects[at];
	grown = reallocarray(history->subjects, history->n + 1, sizeof(*grown));
	copy = strdup(name);
	if (grown)
		history->subjects = grown;
	if (!grown || !copy) {
		free(copy);
		return NULL;
	}
	memmove(&grown[at + 1], &grown[at], (history->n - at) * sizeof(*grown));
	grown[at] = (struct history_subject){.name = copy};
	history->n++;
	return &grown[at];
}

/* ---- entries ---- */

/* Drop the oldest beyond what is kept. */
static void trim(struct history *history, struct history_subject *subject)
{
	size_t most = *subject->name ? HISTORY_EPOCHS : HISTORY_REVISIONS, bytes = 0;

	for (size_t i = subject->n; i-- > 0;) {
		size_t newer = subject->n - i;

		bytes += strlen(subject->entries[i].text);
		if (newer <= most && (newer <= 2 || bytes <= HISTORY_POOL_BYTES))
			continue;
		for (size_t old = i + 1; old-- > 0;)
			drop_entry(history, subject, old);
		return;
	}
}

int history_insert(struct history *history, const char *pool, uint64_t number, char *text, bool written)
{
	struct history_subject *subject = subject_of(history, pool ? pool : "");
	struct history_entry *grown;

	if (!subject)
		return -ENOMEM;
	grown = reallocarray(subject->entries, subject->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	subject->entries = grown;
	for (size_t i = subject->n; i-- > 0;)
		if (grown[i].number == number)
			drop_entry(history, subject, i);
	grown[subject->n++] = (struct history_entry){.number = number, .text = text, .written = written};
	history->live_bytes += strlen(text);
	history->n_unwritten += !written;
	subject->touched = ++history->touches;
	trim(history, subject);
	return 0;
}

int history_add(struct history *history, const char *pool, uint64_t number, json_t *entry)
{
	char *text;
	int ret;

	if (!entry || (pool && json_object_set_new(entry, "pool", json_string(pool))) ||
	    json_object_set_new(entry, pool ? "epoch" : "revision", json_integer((json_int_t)number))) {
		json_decref(entry);
		return -ENOMEM;
	}
	text = json_dumps(entry, JSON_COMPACT);
	json_decref(entry);
	ret = text ? history_insert(history, pool, number, text, false) : -ENOMEM;
	if (ret)
		free(text);
	return ret;
}

json_t *history_list(const struct history *history, const char *pool)
{
	json_t *list = json_array();
	bool found;
	size_t at = place_of(history, pool ? pool : "", &found);

	for (size_t i = 0; list && found && i < history->subjects[at].n; i++) {
		if (json_array_append_new(list, json_loads(history->subjects[at].entries[i].text, 0, NULL))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

json_t *history_find(const struct history *history, const char *pool, uint64_t number)
{
	bool found;
	size_t at = place_of(history, pool ? pool : "", &found);

	for (size_t i = found ? history->subjects[at].n : 0; i-- > 0;)
		if (history->subjects[at].entries[i].number == number)
			return json_loads(history->subjects[at].entries[i].text, 0, NULL);
	return NULL;
}

void history_close(struct history *history)
{
	if (!history)
		return;
	while (history->n)
		drop_subject(history, history->n - 1);
	free(history->subjects);
	free(history->dir);
	free(history);
}
