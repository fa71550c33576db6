/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "document_output.h"

#define INDENT 2

/* JSON is YAML, so a text in JSON's quotes is right, whatever is in it. */
static void print_flow(const json_t *value)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY);

	fputs(text ? text : "null", stdout);
	free(text);
}

static bool is_list_of_objects(const json_t *value)
{
	return json_is_object(json_array_get(value, 0));
}

static bool fits_one_line(const json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)object, key, value)
		if (is_list_of_objects(value))
			return false;
	return true;
}

static void print_members(const json_t *object, int indent, bool first_is_indented);

static void print_list(const json_t *list, int indent)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		printf("%*s- ", indent, "");
		if (fits_one_line(item)) {
			print_flow(item);
			putchar('\n');
		} else {
			print_members(item, indent + INDENT, true);
		}
	}
}

static void print_members(const json_t *object, int indent, bool first_is_indented)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)object, key, value) {
		printf("%*s%s:", first_is_indented ? 0 : indent, "", key);
		first_is_indented = false;
		if (is_list_of_objects(value)) {
			putchar('\n');
			print_list(value, indent + INDENT);
		} else {
			putchar(' ');
			print_flow(value);
			putchar('\n');
		}
	}
}

void ctl_print_document(const json_t *document)
{
	print_members(document, 0, false);
}
