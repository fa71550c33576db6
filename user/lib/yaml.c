/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <libfyaml.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "utf8.h"
#include "yaml.h"
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
	struct report *report;
	struct fy_diag *diag;
	struct fy_parser *parser;
	struct fy_token_iter *iterator;
	void *anchors;		   /* tsearch() tree of struct anchor, by name */
	unsigned int line, column; /* of the last event that had a place */
};

static int fail(struct builder *b, const char *sentence)
{
	report_add(b->report, REPORT_ERROR, b->line, b->column, "%s", sentence);
	return -EINVAL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct anchor *)a)->name, ((const struct anchor *)b)->name);
}

static void keep(void *anchor)
{
	(void)anchor; /* the arena owns it */
}

/*
 * The bytes of a token's text, to `copy` unless it is NULL.  Not by fy_token_get_text(), which leaks 2 KiB (libfyaml
 * 0.7.12) for each text of more than a few escapes or lines.
 */
static int walk_text(struct builder *b, struct fy_token *token, char *copy, size_t *length)
{
	const struct fy_iter_chunk *chunk;
	int error = 0;

	*length = 0;
	fy_token_iter_start(token, b->iterator);
	for (chunk = fy_token_iter_chunk_next(b->iterator, NULL, &error); chunk;
	     chunk = fy_token_iter_chunk_next(b->iterator, chunk, &error)) {
		if (copy)
			memcpy(copy + *length, chunk->str, chunk->len);
		*length += chunk->len;
	}
	fy_token_iter_finish(b->iterator);
	return error ? fail(b, "this text has an escape sequence that is not YAML: correct it") : 0;
}

/* A token's text as a string in the arena: printable characters alone, or -EINVAL. */
static int take_text(struct builder *b, struct fy_token *token, const char **out)
{
	size_t length = 0;
	char *copy;
	int ret = token ? walk_text(b, token, NULL, &length) : 0;

	if (ret)
		return ret;
	copy = arena_alloc(&b->tree->arena, length + 1);
	if (!copy)
		return -ENOMEM;
	ret = token ? walk_text(b, token, copy, &length) : 0;
	if (ret)
		return ret;
	if (utf8_bad(copy, length, "") != length)
		return fail(b, "this text has a line break or control character in it: write it on one line without");
	*out = copy;
	return 0;
}

static struct yaml_node *new_node(struct builder *b, enum yaml_kind kind)
{
	struct yaml_node *node = arena_alloc(&b->tree->arena, sizeof(*node));

	if (node)
		*node = (struct yaml_node){.kind = kind, .line = b->line, .column = b->column, .size = 1};
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
		return fail(b, "the document is too large, with aliases (*name) written out: repeat less");
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
static int set_anchor(struct builder *b, struct fy_token *token, struct yaml_node *node, struct anchor **out)
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
	(*found)->node = node;
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
		report_add(b->report, REPORT_ERROR, b->line, b->column,
			   "alias \"*%.63s\" names no anchor that was complete before it: define \"&%.63s\" earlier",
			   key.name, key.name);
		return -EINVAL;
	}
	*out = (*found)->node;
	return 0;
}

/* What libfyaml says is wrong; only the first error counts, what follows it is guesswork. */
static int syntax_error(struct builder *b)
{
	void *iterator = NULL;
	const struct fy_diag_error *error;

	while ((error = fy_diag_errors_iterate(b->diag, &iterator)) != NULL) {
		if (error->type != FYET_ERROR)
			continue;
		report_add(b->report, REPORT_ERROR, (unsigned int)error->line, (unsigned int)error->column,
			   "this is not YAML: %s", error->msg);
		return -EINVAL;
	}
	return fail(b, "this is not YAML that can be read: look for a directive (%) or a character out of place");
}

static int next_event(struct builder *b, struct fy_event **out)
{
	struct fy_event *event = fy_parser_parse(b->parser);
	const struct fy_mark *mark;

	if (!event)
		return syntax_error(b);
	mark = fy_event_start_mark(event);
	if (mark && event->type != FYET_STREAM_END) {
		b->line = (unsigned int)mark->line + 1;
		b->column = (unsigned int)mark->column + 1;
	}
	*out = event;
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

		ret = next_event(b, &event);
		if (ret)
			return ret;
		is_end = event->type == end;
		ret = is_end ? 0 : take_node(b, event, depth + 1, &value);
		fy_parser_event_free(b->parser, event);
		if (ret || is_end)
			return ret;
		if (node->kind == YAML_MAPPING && !key) {
			if (value->kind != YAML_SCALAR)
				return fail(b, "a list or mapping cannot be a key: use a word");
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
		return fail(b, "tags (!) are not used in this document: remove it");
	if (node->kind == YAML_SCALAR) {
		node->plain = !value || fy_token_scalar_style(value) == FYSS_PLAIN;
		return take_text(b, value, &node->text);
	}
	if (depth > YAML_DEPTH_MAX)
		return fail(b, "this is nested too deeply: no part of a document needs more than a few levels");
	ret = take_items(b, node, depth);
	if (ret || node->kind != YAML_MAPPING)
		return ret;
	return yaml_mapping_finish(&b->tree->arena, node, b->report);
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
		return fail(b, "this is not YAML that can be read: something ends here that did not begin");
	node = new_node(b, kind);
	if (!node)
		return -ENOMEM;
	if (token)
		ret = set_anchor(b, token, NULL, &anchor);
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
		ret = next_event(b, &event);
		if (ret)
			return ret;
		switch (event->type) {
		case FYET_STREAM_END:
			ended = true;
			break;
		case FYET_STREAM_START:
		case FYET_DOCUMENT_END:
			break;
		case FYET_DOCUMENT_START:
			if (documents++)
				ret = fail(b, "a second document begins here: one file holds one document");
			break;
		default:
			ret = take_node(b, event, 1, &b->tree->root);
		}
		fy_parser_event_free(b->parser, event);
	}
	return ret;
}

/* Malformed text would end libfyaml's scan early and silently, as if the rest were not there. */
static int check_text(const char *text, size_t length, struct report *report)
{
	size_t bad = utf8_bad(text, length, "\t\n\r"), start = 0;
	unsigned int line = 1, column = 1;

	if (bad == length)
		return 0;
	for (size_t i = 0; i < bad; i++) {
		if (text[i] == '\n') {
			line++;
			start = i + 1;
		}
	}
	for (size_t i = start; i < bad; i += utf8_character(text + i, length - i, "\t\n\r"))
		column++;
	report_add(report, REPORT_ERROR, line, column,
		   "byte 0x%02x is no printable UTF-8 text: save the document as UTF-8 and remove control characters",
		   (unsigned char)text[bad]);
	return -EINVAL;
}

static int open_parser(struct builder *b, const char *text, size_t length)
{
	struct fy_parse_cfg config = {
		.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE | FYPCF_DEFAULT_VERSION_1_2,
	};
	struct fy_diag_cfg diag_config;

	fy_diag_cfg_default(&diag_config);
	diag_config.fp = NULL;
	diag_config.colorize = false;
	b->diag = fy_diag_create(&diag_config);
	if (!b->diag)
		return -ENOMEM;
	fy_diag_set_collect_errors(b->diag, true);
	config.diag = b->diag;
	b->parser = fy_parser_create(&config);
	b->iterator = fy_token_iter_create(NULL);
	if (!b->parser || !b->iterator || fy_parser_set_string(b->parser, text, length))
		return -ENOMEM;
	return 0;
}

int yaml_parse(const char *text, size_t length, struct yaml_tree **out, struct report *report)
{
	struct builder b = {.report = report, .line = 1, .column = 1};
	int ret = check_text(text, length, report);

	if (ret)
		return ret;
	b.tree = calloc(1, sizeof(*b.tree));
	if (!b.tree)
		return -ENOMEM;
	ret = open_parser(&b, text, length);
	if (!ret)
		ret = take_stream(&b);
	tdestroy(b.anchors, keep);
	if (b.iterator)
		fy_token_iter_destroy(b.iterator);
	if (b.parser)
		fy_parser_destroy(b.parser);
	if (b.diag)
		fy_diag_destroy(b.diag);
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
