/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pool's `encapsulation`.  What does not go together is for model_check() to say. */
#include <stdio.h>
#include <string.h>

#include "addr.h"
#include "document_fields.h"

static bool read_type(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = object;
	unsigned int type;

	if (!read_choice(reader, value, "type", model_encapsulation_names, MODEL_NR_ENCAPSULATIONS, &type))
		return false;
	pool->encapsulation = type;
	return true;
}

static bool read_port(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = object;
	uint32_t port;

	if (!read_number(reader, value, "port", UINT16_MAX, "a UDP port from 1 to 65535", &port))
		return false;
	if (!port) {
		complain_at(reader->report, value, "port is 0: write a UDP port from 1 to 65535, in decimal");
		return false;
	}
	pool->gue_port = (uint16_t)port;
	pool->gue_port_place = node_place(value);
	return true;
}

static bool read_udp6_checksum(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_pool *pool = object;
	unsigned int checksum;

	if (!read_choice(reader, value, "udp6-checksum", model_udp6_checksum_names, MODEL_NR_UDP6_CHECKSUMS, &checksum))
		return false;
	pool->udp6_checksum = checksum;
	pool->udp6_checksum_place = node_place(value);
	return true;
}

/* The text is no source: say why. */
static void refuse_source(struct reader *reader, const struct yaml_node *item)
{
	char prefix_text[ADDR_TEXT_MAX], literal[ADDR_TEXT_MAX];
	const char *slash = item->kind == YAML_SCALAR ? strchr(item->text, '/') : NULL;
	struct shunt_prefix prefix;
	union shunt_address addr;

	if (!slash) {
		read_address(reader, item, "source", &addr);
		return;
	}
	if (prefix_parse_masked(item->text, &prefix)) {
		complain_at(reader->report, item,
			    "source is \"%.63s\", which is no prefix: write an address and its length in bits, such as "
			    "192.0.2.0/24",
			    item->text);
		return;
	}
	snprintf(literal, sizeof(literal), "%.*s", (int)(slash - item->text), item->text);
	complain_at(reader->report, item,
		    "source is \"%.63s\", which has bits set beyond its length: write %s, or %s for "
		    "one address",
		    item->text, prefix_format(&prefix, prefix_text), literal);
}

static void read_source(struct reader *reader, const struct yaml_node *item, void *object)
{
	struct model_pool *pool = object;
	struct model_source source = {}, *slot;
	bool v4;

	if (item->kind != YAML_SCALAR || model_source_parse(item->text, &source)) {
		refuse_source(reader, item);
		return;
	}
	v4 = model_source_is_v4(&source);
	slot = v4 ? &pool->source4 : &pool->source6;
	if (slot->given) {
		complain_at(reader->report, item,
			    "source has a second %s address: give at most one of each family, or a prefix",
			    v4 ? "IPv4" : "IPv6");
		return;
	}
	source.place = node_place(item);
	*slot = source;
}

static bool read_sources(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_list(reader, value, "source", read_source, object);
}

static const struct field encapsulation_fields[] = {
	{"type", read_type, NULL},
	{"port", read_port, NULL},
	{"udp6-checksum", read_udp6_checksum, NULL},
	{"source", read_sources, NULL},
};

bool read_encapsulation(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_fields(reader, value, "encapsulation", encapsulation_fields,
			   sizeof(encapsulation_fields) / sizeof(*encapsulation_fields), object);
}
