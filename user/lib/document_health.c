/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A pool's `health` in the document. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document_fields.h"

#define COUNT_MAX 100u
#define HOUR 3600000u

static bool read_type(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_health *health = object;
	unsigned int type;

	if (!read_choice(reader, value, "type", model_check_names, MODEL_NR_CHECKS, &type))
		return false;
	health->type = type;
	return true;
}

static bool read_port(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_health *health = object;

	if (!read_number(reader, value, "port", 65535, "a port from 1 to 65535", &health->port))
		return false;
	if (!health->port)
		complain_at(reader->report, value, "port is 0: write a port from 1 to 65535, or leave it out");
	return health->port;
}

static bool read_via(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_health *health = object;
	unsigned int via;

	if (!read_choice(reader, value, "check-via", model_via_names, MODEL_NR_VIAS, &via))
		return false;
	health->via = via;
	return true;
}

static bool read_verify(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_health *health = object;
	unsigned int verify;

	if (!read_choice(reader, value, "verify", model_verify_names, MODEL_NR_VERIFIES, &verify))
		return false;
	health->verify = verify;
	return true;
}

static bool read_interval(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_duration_in(reader, value, "interval", 50, HOUR, "50ms to 1h",
				&((struct model_health *)object)->interval);
}

static bool read_timeout(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_duration_in(reader, value, "timeout", 10, HOUR, "10ms to 1h",
				&((struct model_health *)object)->timeout);
}

static bool read_count(struct reader *reader, const struct yaml_node *value, const char *what, uint32_t *out)
{
	if (!read_number(reader, value, what, COUNT_MAX, "a whole number from 1 to 100", out))
		return false;
	if (!*out)
		complain_at(reader->report, value, "%s is 0: write a whole number from 1 to 100", what);
	return *out;
}

static bool read_rise(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_count(reader, value, "rise", &((struct model_health *)object)->rise);
}

static bool read_fall(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_count(reader, value, "fall", &((struct model_health *)object)->fall);
}

static bool read_hold_down(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_duration_in(reader, value, "hold-down", 0, 24 * HOUR, "0s (never) to 24h",
				&((struct model_health *)object)->hold_down);
}

static bool read_hold_down_max(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_duration_in(reader, value, "hold-down-max", 0, 24 * HOUR, "0s (never) to 24h",
				&((struct model_health *)object)->hold_down_max);
}

static bool read_packet_size(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_health *health = object;

	if (!read_number(reader, value, "packet-size", MODEL_HEALTH_SIZE_MAX, "bytes, 64 to 9216",
			 &health->packet_size))
		return false;
	if (health->packet_size < 64)
		complain_at(reader->report, value, "packet-size is %u: write bytes, 64 to 9216, or leave it out",
			    health->packet_size);
	return health->packet_size >= 64;
}

static bool read_panic(struct reader *reader, const struct yaml_node *value, void *object)
{
	return read_number(reader, value, "panic", 100, "per cent of the backends, 0 to 100 (100: never)",
			   &((struct model_health *)object)->panic);
}

static bool read_last(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_health *health = object;
	unsigned int last;

	if (!read_choice(reader, value, "last-backend", model_last_names, HEALTH_NR_LASTS, &last))
		return false;
	health->last = last;
	return true;
}

static bool read_newcomers(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_health *health = object;
	unsigned int newcomers;

	if (!read_choice(reader, value, "new-backends", model_newcomer_names, MODEL_NR_NEWCOMERS, &newcomers))
		return false;
	health->newcomers = newcomers;
	return true;
}

/* A text of the check: nothing that would end a line of what is sent. */
static bool read_words(struct reader *reader, const struct yaml_node *value, const char *what, char **out)
{
	char *text = NULL;

	if (!read_text(reader, value, what, &text))
		return false;
	if (!*text || strlen(text) > MODEL_HEALTH_TEXT_MAX || strpbrk(text, "\r\n")) {
		complain_at(reader->report, value, "%s must be one line of 1 to %u bytes", what, MODEL_HEALTH_TEXT_MAX);
		free(text);
		return false;
	}
	free(*out);
	*out = text;
	return true;
}

#define TEXT_FIELD(name, member)                                                                                       \
	static bool read_##member(struct reader *reader, const struct yaml_node *value, void *object)                  \
	{                                                                                                              \
		return read_words(reader, value, name, &((struct model_health *)object)->member);                      \
	}

TEXT_FIELD("path", path)
TEXT_FIELD("host", host)
TEXT_FIELD("match", match)
TEXT_FIELD("send", send)
TEXT_FIELD("query", query)
TEXT_FIELD("hook", hook)
TEXT_FIELD("sni", sni)
TEXT_FIELD("ca-file", ca_file)

static bool read_status(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model_health *health = object;
	struct model_ports range;

	if (value->kind != YAML_SCALAR || model_range_parse(value->text, &range) || range.first < 100 ||
	    range.last > 599) {
		complain_at(reader->report, value, "status must be a code or a range of them, such as 200 or 200-399");
		return false;
	}
	health->status_first = range.first;
	health->status_last = range.last;
	return true;
}

static const struct field health_fields[] = {
	{"type", read_type, "write tcp, http, https, udp, dns or exec"},
	{"port", read_port, NULL},
	{"check-via", read_via, NULL},
	{"interval", read_interval, NULL},
	{"timeout", read_timeout, NULL},
	{"rise", read_rise, NULL},
	{"fall", read_fall, NULL},
	{"hold-down", read_hold_down, NULL},
	{"hold-down-max", read_hold_down_max, NULL},
	{"packet-size", read_packet_size, NULL},
	{"panic", read_panic, NULL},
	{"last-backend", read_last, NULL},
	{"new-backends", read_newcomers, NULL},
	{"path", read_path, NULL},
	{"host", read_host, NULL},
	{"status", read_status, NULL},
	{"match", read_match, NULL},
	{"send", read_send, NULL},
	{"query", read_query, NULL},
	{"hook", read_hook, NULL},
	{"sni", read_sni, NULL},
	{"verify", read_verify, NULL},
	{"ca-file", read_ca_file, NULL},
	{"command", NULL,
	 "a document cannot name a command: put a file into the hooks directory, and name it with hook"},
};

bool read_health(struct reader *reader, const struct yaml_node *value, struct model_health **out)
{
	struct model_health *health = malloc(sizeof(*health));

	if (!health)
		return reader_no_memory(reader);
	*health = model_health_default();
	health->line = value->line;
	health->column = value->column;
	if (!read_fields(reader, value, "health", health_fields, sizeof(health_fields) / sizeof(*health_fields),
			 health)) {
		model_health_free(health);
		return false;
	}
	model_health_free(*out);
	*out = health;
	return true;
}
