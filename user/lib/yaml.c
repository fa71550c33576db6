/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "utf8.h"
#include "yaml.h"
#include "yaml_events.h"
#include "yaml_mapping.h"

struct yaml_tree {
	struct arena arena;
	struct yaml_node *root;
};

struct anchor {
	const char *name;
	struct yaml_node *node; /* NULL: not complete, so that an alias to it would have no end */
};

struct builder {
	struct yaml_tree *tree;
	struct yaml_events events;
	void *anchors; /* tsearch() tree of struct anchor, by name */
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct anchor *)a)->name, ((const struct anchor *)b)->name);
}

static void keep(void *anchor)
{
	(void)anchor; /* the arena owns it */
}

/* A token's text as a string in the arena: printable characters alone, or -EINVAL. */
static int take_text(struct builder *b, struct fy_token *token, const char **out)
{
	size_t length = 0;
	char *copy;
	int ret = token ? yaml_events_text(&b->events, token, NULL, &length) : 0;

	if (ret)
		return ret;
	copy = arena_alloc(&b->tree->arena, length + 1);
	if (!copy)
		return -ENOMEM;
	ret = token ? yaml_events_text(&b->events, token, copy, &length) : 0;
	if (ret)
		return ret;
	if (utf8_bad(copy, length, "") != length)
		return yaml_events_fail(
			&b->events,
			"this text has a line break or control character in it: write it on one line without");
	*out = copy;
	return 0;
}

static struct yaml_node *new_node(struct builder *b, enum yaml_kind kind)
{
	struct yaml_node *node = arena_alloc(&b->tree->arena, sizeof(*node));

	if (node)
		*node = (struct yaml_node){.kind = kind, .line = b->events.line, .column = b->events.column, .size = 1};
	return node;
}

static int add_item(struct builder *b, struct yaml_node *node, struct yaml_item **last, const struct yaml_node *key,
		    const struct yaml_node *value)
{
	struct yaml_item *item = arena_alloc(&b->tree->arena, sizeof(*item));
	uint64_t size = (uint64_t)node->size + (key ? key->size : 0) + value->size;

	if (!item)
		return -ENOMEM;
	if (size > YAML_NODES_MAX)
		return yaml_events_fail(&b->events,
					"the document is too large, with aliases (*name) written out: repeat less");
	*item = (struct yaml_item){.key = key, .value = value};
	if (*last)
		(*last)->next = item;
	else
		node->items = item;
	*last = item;
	node->count++;
	node->size = (uint32_t)size;
	return 0;
}

/* Keep an anchor's node for aliases to come; a name may be used again, then the latest counts. */
static int set_anchor(struct builder *b, struct fy_token *token, struct anchor **out)
{
	struct anchor *anchor = arena_alloc(&b->tree->arena, sizeof(*anchor)), **found;
	int ret;

	if (!anchor)
		return -ENOMEM;
	ret = take_text(b, token, &anchor->name);
	if (ret)
		return ret;
	found = tsearch(anchor, &b->anchors, by_name);
	if (!found)
		return -ENOMEM;
	(*found)->node = NULL;
	*out = *found;
	return 0;
}

static int take_alias(struct builder *b, struct fy_token *token, struct yaml_node **out)
{
	struct anchor key = {}, *const * found;
	int ret = take_text(b, token, &key.name);

	if (ret)
		return ret;
	found = tfind(&key, &b->anchors, by_name);
	if (!found || !(*found)->node) {
		report_add(b->events.report, REPORT_ERROR, b->events.line, b->events.column,
			   "alias \"*%.63s\" names no anchor that was complete before it: define \"&%.63s\" earlier",
			   key.name, key.name);
		return -EINVAL;
	}
	*out = (*found)->node;
	return 0;
}

static int take_node(struct builder *b, struct fy_event *event, unsigned int depth, struct yaml_node **out);

/* The events of a sequence's or mapping's items, up to the one that ends it. */
static int take_items(struct builder *b, struct yaml_node *node, unsigned int depth)
{
	enum fy_event_type end = node->kind == YAML_MAPPING ? FYET_MAPPING_END : FYET_SEQUENCE_END;
	struct yaml_node *key = NULL, *value;
	struct yaml_item *last = NULL;
	struct fy_event *event;
	int ret;

	for (;;) {
		bool is_end;

		event = yaml_events_next(&b->events);
		if (!event)
			return -EINVAL;
		is_end = event->type == end;
		ret = is_end ? 0 : take_node(b, event, depth + 1, &value);
		fy_parser_event_free(b->events.parser, event);
		if (ret || is_end)
			return ret;
		if (node->kind == YAML_MAPPING && !key) {
			if (value->kind != YAML_SCALAR)
				return yaml_events_fail(&b->events, "a list or mapping cannot be a key: use a word");
			key = value;
			continue;
		}
		ret = add_item(b, node, &last, key, value);
		if (ret)
			return ret;
		key = NULL;
	}
}

static int take_content(struct builder *b, struct fy_event *event, unsigned int depth, struct yaml_node *node)
{
	struct fy_token *value = event->type == FYET_SCALAR ? event->scalar.value : NULL;
	int ret;

	if (fy_event_get_tag_token(event))
		return yaml_events_fail(&b->events, "tags (!) are not used in this document: remove it");
	if (node->kind == YAML_SCALAR) {
		node->plain = !value || fy_token_scalar_style(value) == FYSS_PLAIN;
		return take_text(b, value, &node->text);
	}
	if (depth > YAML_DEPTH_MAX)
		return yaml_events_fail(
			&b->events, "this is nested too deeply: no part of a document needs more than a few levels");
	ret = take_items(b, node, depth);
	if (ret || node->kind != YAML_MAPPING)
		return ret;
	return yaml_mapping_finish(&b->tree->arena, node, b->events.report);
}

static int take_node(struct builder *b, struct fy_event *event, unsigned int depth, struct yaml_node **out)
{
	struct fy_token *token = fy_event_get_anchor_token(event);
	struct anchor *anchor = NULL;
	enum yaml_kind kind = YAML_SCALAR;
	struct yaml_node *node;
	int ret = 0;

	if (event->type == FYET_ALIAS)
		return take_alias(b, event->alias.anchor, out);
	if (event->type == FYET_MAPPING_START)
		kind = YAML_MAPPING;
	else if (event->type == FYET_SEQUENCE_START)
		kind = YAML_SEQUENCE;
	else if (event->type != FYET_SCALAR)
		return yaml_events_fail(&b->events,
					"this is not YAML that can be read: something ends here that did not begin");
	node = new_node(b, kind);
	if (!node)
		return -ENOMEM;
	if (token)
		ret = set_anchor(b, token, &anchor);
	if (!ret)
		ret = take_content(b, event, depth, node);
	if (ret)
		return ret;
	if (anchor)
		anchor->node = node;
	*out = node;
	return 0;
}

/* The stream: its start, at most one document, its end. */
static int take_stream(struct builder *b)
{
	struct fy_event *event;
	unsigned int documents = 0;
	bool ended = false;
	int ret = 0;

	while (!ret && !ended) {
		event = yaml_events_next(&b->events);
		if (!event)
			return -EINVAL;
		switch (event->type) {
		case FYET_STREAM_END:
			ended = true;
			break;
		case FYET_STREAM_START:
		case FYET_DOCUMENT_END:
			break;
		case FYET_DOCUMENT_START:
			if (documents++)
				ret = yaml_events_fail(&b->events,
						       "a second document begins here: one file holds one document");
			break;
		default:
			ret = take_node(b, event, 1, &b->tree->root);
		}
		fy_parser_event_free(b->events.parser, event);
	}
	return ret;
}

int yaml_parse(const char *text, size_t length, struct yaml_tree **out, struct report *report)
{
	struct builder b = {.tree = calloc(1, sizeof(*b.tree))};
	int ret;

	if (!b.tree)
		return -ENOMEM;
	ret = yaml_events_open(&b.events, text, length, report);
	if (!ret)
		ret = take_stream(&b);
	tdestroy(b.anchors, keep);
	yaml_events_close(&b.events);
	if (ret) {
		yaml_free(b.tree);
		return ret;
	}
	*out = b.tree;
	return 0;
}

const struct yaml_node *yaml_root(const struct yaml_tree *tree)
{
	return tree->root;
}

void yaml_free(struct yaml_tree *tree)
{
	if (!tree)
		return;
	arena_free(&tree->arena);
	free(tree);
}
