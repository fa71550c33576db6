/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "yaml_mapping.h"

static bool is_merge(const struct yaml_item *item)
{
	return item->key->plain && strcmp(item->key->text, "<<") == 0;
}

static int by_key(const void *a, const void *b)
{
	const struct yaml_node *x = (*(struct yaml_item *const *)a)->key, *y = (*(struct yaml_item *const *)b)->key;
	int order = strcmp(x->text, y->text);

	if (order)
		return order;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return (x->column > y->column) - (x->column < y->column);
}

/* A dropped item has no value, until unlink_dropped(). */
static void unlink_dropped(struct yaml_node *mapping)
{
	struct yaml_item **link = &mapping->items;

	while (*link) {
		if ((*link)->value) {
			link = &(*link)->next;
			continue;
		}
		*link = (*link)->next;
		mapping->count--;
	}
}

static int drop_duplicates(struct yaml_node *mapping, struct report *report)
{
	struct yaml_item **sorted = calloc(mapping->count + 1, sizeof(*sorted)), *first;
	size_t n = 0;

	if (!sorted)
		return -ENOMEM;
	for (struct yaml_item *item = mapping->items; item; item = item->next)
		sorted[n++] = item;
	qsort(sorted, n, sizeof(*sorted), by_key);
	first = sorted[0];
	for (size_t i = 1; i < n; i++) {
		const struct yaml_node *key = sorted[i]->key;

		if (strcmp(key->text, first->key->text) != 0) {
			first = sorted[i];
			continue;
		}
		report_add(report, REPORT_ERROR, key->line, key->column,
			   "key \"%.63s\" is already in this mapping at line %u: keep one of them", key->text,
			   first->key->line);
		sorted[i]->value = NULL;
	}
	free(sorted);
	unlink_dropped(mapping);
	return 0;
}

static bool has_key(const struct yaml_node *mapping, const char *text)
{
	for (const struct yaml_item *item = mapping->items; item; item = item->next) {
		if (item->value && strcmp(item->key->text, text) == 0)
			return true;
	}
	return false;
}

/* What a merge key is being expanded into. */
struct merge {
	struct arena *arena;
	struct yaml_node *mapping;
	struct yaml_item **end;	    /* where the next item is linked */
	const struct yaml_node *at; /* the merge key */
	struct report *report;
};

static int fail(const struct merge *merge, const char *sentence)
{
	report_add(merge->report, REPORT_ERROR, merge->at->line, merge->at->column, "merge key \"<<\" %s", sentence);
	return -EINVAL;
}

static int merge_from(struct merge *merge, const struct yaml_node *from)
{
	struct yaml_node *mapping = merge->mapping;

	if (from->kind != YAML_MAPPING)
		return fail(merge, "takes an alias of a mapping, or a list of them: write \"<<: *name\"");
	for (const struct yaml_item *item = from->items; item; item = item->next) {
		struct yaml_item *copy;

		if (mapping->count > YAML_MERGE_MAX || mapping->size + item->value->size > YAML_NODES_MAX)
			return fail(merge, "makes this mapping too large: write out what it needs");
		if (has_key(mapping, item->key->text))
			continue;
		copy = arena_alloc(merge->arena, sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		*copy = (struct yaml_item){.key = item->key, .value = item->value};
		*merge->end = copy;
		merge->end = &copy->next;
		mapping->count++;
		mapping->size += 1 + item->value->size;
	}
	return 0;
}

int yaml_mapping_finish(struct arena *arena, struct yaml_node *mapping, struct report *report)
{
	struct merge merge = {.arena = arena, .mapping = mapping, .end = &mapping->items, .report = report};
	const struct yaml_node *from = NULL;
	int ret = mapping->count > 1 ? drop_duplicates(mapping, report) : 0;

	if (ret)
		return ret;
	for (; *merge.end; merge.end = &(*merge.end)->next) {
		struct yaml_item *item = *merge.end;

		if (is_merge(item)) {
			merge.at = item->key;
			from = item->value;
			item->value = NULL;
		}
	}
	if (!from)
		return 0;
	if (from->kind != YAML_SEQUENCE)
		ret = merge_from(&merge, from);
	else
		for (const struct yaml_item *item = from->items; item && !ret; item = item->next)
			ret = merge_from(&merge, item->value);
	unlink_dropped(mapping);
	return ret;
}
