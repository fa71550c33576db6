/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "document_fields.h"
#include "duration.h"
#include "suggest.h"

static const char *const kind_names[] = {
	[YAML_SCALAR] = "a single value", [YAML_SEQUENCE] = "a list", [YAML_MAPPING] = "a mapping"};

struct model_place node_place(const struct yaml_node *node)
{
	return (struct model_place){node->line, node->column};
}

bool reader_no_memory(struct reader *reader)
{
	reader->no_memory = true;
	return false;
}

void *reader_append(struct reader *reader, void **array, size_t count, size_t size)
{
	void *grown;

	/* full at powers of two */
	if (count & (count - 1))
		return (char *)*array + count * size;
	grown = reallocarray(*array, count ? 2 * count : 1, size);
	if (!grown) {
		reader_no_memory(reader);
		return NULL;
	}
	*array = grown;
	return (char *)grown + count * size;
}

static bool is_empty(const struct yaml_node *node)
{
	return node->kind == YAML_SCALAR && node->plain &&
	       (!*node->text || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

/* Whether the node is of the kind that `what` needs. */
static bool expect(struct reader *reader, const struct yaml_node *node, const char *what, enum yaml_kind kind)
{
	if (is_empty(node) && kind == YAML_SCALAR)
		complain_at(reader->report, node, "%s has no value: give it one", what);
	else if (is_empty(node))
		complain_at(reader->report, node, "%s is empty: write %s", what,
			    kind == YAML_MAPPING ? "a mapping, or remove the key" : "a list, or [] for none");
	else if (node->kind != kind)
		complain_at(reader->report, node, "%s is %s: write %s", what, kind_names[node->kind], kind_names[kind]);
	else
		return true;
	return false;
}

static const struct field *find_field(const struct field *fields, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	}
	return NULL;
}

static void unknown_key(struct reader *reader, const struct yaml_node *key, const char *what,
			const struct field *fields, size_t n)
{
	char hint[SUGGEST_TEXT_MAX], names[512] = "";
	struct suggestion near = {};
	size_t length = 0;

	for (size_t i = 0; i < n; i++) {
		if (!fields[i].read || length >= sizeof(names))
			continue;
		suggest(&near, key->text, fields[i].name);
		length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", length ? ", " : "",
					   fields[i].name);
	}
	complain_at(reader->report, key, "%s has no key \"%.63s\"%s: its keys are %s", what, key->text,
		    suggest_text(&near, hint), names);
}

bool read_fields(struct reader *reader, const struct yaml_node *node, const char *what, const struct field *fields,
		 size_t n, void *object)
{
	bool complete = true, seen[FIELDS_MAX] = {};

	if (!expect(reader, node, what, YAML_MAPPING))
		return false;
	for (const struct yaml_item *item = node->items; item; item = item->next) {
		const struct field *field = find_field(fields, n, item->key->text);

		if (!field) {
			unknown_key(reader, item->key, what, fields, n);
		} else if (!field->read) {
			complain_at(reader->report, item->key, "%s has no key \"%s\": %s", what, field->name,
				    field->remedy);
		} else {
			seen[field - fields] = true;
			if (!field->read(reader, item->value, object) && field->remedy)
				complete = false;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (seen[i] || !fields[i].read || !fields[i].remedy)
			continue;
		complain_at(reader->report, node, "%s lacks the key \"%s\": %s", what, fields[i].name,
			    fields[i].remedy);
		complete = false;
	}
	return complete;
}

bool read_list(struct reader *reader, const struct yaml_node *node, const char *what, item_fn *read, void *object)
{
	if (!expect(reader, node, what, YAML_SEQUENCE))
		return false;
	for (const struct yaml_item *item = node->items; item && !reader->no_memory; item = item->next)
		read(reader, item->value, object);
	return !reader->no_memory;
}

bool read_text(struct reader *reader, const struct yaml_node *node, const char *what, char **out)
{
	char *text;

	if (!expect(reader, node, what, YAML_SCALAR))
		return false;
	text = strdup(node->text);
	if (!text)
		return reader_no_memory(reader);
	free(*out);
	*out = text;
	return true;
}

/* Decimal digits without sign or leading zero (which YAML 1.1 took as octal). */
static bool parse_number(const char *text, uint32_t max, uint32_t *out)
{
	uint64_t value = 0;

	if (!*text || (text[0] == '0' && text[1]))
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > max)
			return false;
	}
	*out = (uint32_t)value;
	return true;
}

bool read_number(struct reader *reader, const struct yaml_node *node, const char *what, uint32_t max, const char *range,
		 uint32_t *out)
{
	uint32_t value;

	if (!expect(reader, node, what, YAML_SCALAR))
		return false;
	if (!parse_number(node->text, max, &value)) {
		complain_at(reader->report, node, "%s is \"%.40s\": write %s, in decimal", what, node->text, range);
		return false;
	}
	if (!node->plain) {
		complain_at(reader->report, node, "%s is a text: write the number without quotes, %u", what, value);
		return false;
	}
	*out = value;
	return true;
}

/*
 * The third decimal and those after it may only be what a program's rounding left, 1.1000000000000001: a model as JSON
 * has such numbers.
 */
static bool parse_percent(const char *text, uint32_t min, uint32_t max, uint32_t *out)
{
	double value, hundredths;
	char *end;

	if (*text < '0' || *text > '9' || text[strspn(text, "0123456789.")])
		return false;
	value = strtod(text, &end) * 100;
	if (*end || !(value < UINT32_MAX))
		return false;
	hundredths = (uint32_t)(value + 0.5);
	if (value - hundredths > 1e-6 || hundredths - value > 1e-6 || hundredths < min || hundredths > max)
		return false;
	*out = (uint32_t)hundredths;
	return true;
}

bool read_percent(struct reader *reader, const struct yaml_node *node, const char *what, uint32_t min, uint32_t max,
		  const char *range, uint32_t *out)
{
	if (!expect(reader, node, what, YAML_SCALAR))
		return false;
	if (!node->plain || !parse_percent(node->text, min, max, out)) {
		complain_at(reader->report, node, "%s is \"%.40s\": write %s, without quotes", what, node->text, range);
		return false;
	}
	return true;
}

bool read_duration_in(struct reader *reader, const struct yaml_node *node, const char *what, uint32_t min, uint32_t max,
		      const char *range, uint32_t *out)
{
	uint64_t value;

	if (!expect(reader, node, what, YAML_SCALAR))
		return false;
	if (duration_parse(node->text, &value)) {
		complain_at(reader->report, node,
			    "%s is \"%.40s\": write a duration with its units, such as 30s, 5m or 2h10m", what,
			    node->text);
		return false;
	}
	if (value < min || value > max) {
		complain_at(reader->report, node, "%s is \"%.40s\", which is out of range: write %s", what, node->text,
			    range);
		return false;
	}
	*out = (uint32_t)value;
	return true;
}

bool read_duration(struct reader *reader, const struct yaml_node *node, const char *what, uint32_t *out)
{
	return read_duration_in(reader, node, what, MODEL_DURATION_MIN, MODEL_DURATION_MAX, "1s to 30d", out);
}

bool read_address(struct reader *reader, const struct yaml_node *node, const char *what, union shunt_address *out)
{
	const char *remedy = "give an IPv4 or IPv6 address; names are not looked up";
	union shunt_address addr;
	struct shunt_prefix prefix;
	unsigned int port;

	if (!expect(reader, node, what, YAML_SCALAR))
		return false;
	if (!addr_parse(node->text, out))
		return true;
	if (!addr_port_parse(node->text, &addr, &port))
		remedy = "give the address without a port";
	else if (!prefix_parse(node->text, &prefix))
		remedy = "give one address, not a prefix";
	complain_at(reader->report, node, "%s is \"%.63s\", which is not an IP address: %s", what, node->text, remedy);
	return false;
}

bool read_choice(struct reader *reader, const struct yaml_node *node, const char *what, const char *const *names,
		 size_t n, unsigned int *out)
{
	char hint[SUGGEST_TEXT_MAX], list[160] = "";
	struct suggestion near = {};
	size_t length = 0;

	if (!expect(reader, node, what, YAML_SCALAR))
		return false;
	for (unsigned int i = 0; i < n; i++) {
		if (strcmp(names[i], node->text) == 0) {
			*out = i;
			return true;
		}
		suggest(&near, node->text, names[i]);
		length += (size_t)snprintf(list + length, sizeof(list) - length, "%s\"%s\"", length ? " or " : "",
					   names[i]);
	}
	complain_at(reader->report, node, "%s is \"%.40s\"%s: use %s", what, node->text, suggest_text(&near, hint),
		    list);
	return false;
}
