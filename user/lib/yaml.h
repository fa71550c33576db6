/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One YAML document as a tree in which every node knows its place.  Aliases and merge keys (<<) are resolved, within
 * bounds; a node can so stand in several places of the tree.  No types: a scalar is its text.
 */
#ifndef SHUNT_YAML_H
#define SHUNT_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report.h"

#define YAML_DEPTH_MAX 32	/* levels of nesting */
#define YAML_NODES_MAX 4000000u /* nodes, those that aliases repeat counted again */
#define YAML_MERGE_MAX 64	/* keys of a mapping with a merge key, merged ones included */

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node;

struct yaml_item {
	const struct yaml_node *key; /* a scalar; NULL in a sequence */
	const struct yaml_node *value;
	struct yaml_item *next;
};

struct yaml_node {
	enum yaml_kind kind;
	bool plain;		 /* a scalar without quotes */
	unsigned int line;	 /* 1-based */
	unsigned int column;	 /* 1-based, in characters */
	const char *text;	 /* of a scalar: printable, on one line */
	struct yaml_item *items; /* in the document's order */
	size_t count;		 /* of items */
	uint32_t size;		 /* nodes in here, itself included */
};

struct yaml_tree;

/*
 * Parse.  0 and *out owned by the caller; duplicate keys are errors in the report and nothing more, the first one
 * counts, so that all that is wrong can be listed.  -EINVAL, reported, at the first thing that is not YAML; -ENOMEM.
 */
int yaml_parse(const char *text, size_t length, struct yaml_tree **out, struct report *report);

/* NULL: the document is empty. */
const struct yaml_node *yaml_root(const struct yaml_tree *tree);

/* Wipes the texts: one of them may be the key.  NULL is allowed. */
void yaml_free(struct yaml_tree *tree);

#endif
