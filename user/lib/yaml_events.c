/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "utf8.h"
#include "yaml_events.h"

int yaml_events_fail(struct yaml_events *events, const char *sentence)
{
	report_add(events->report, REPORT_ERROR, events->line, events->column, "%s", sentence);
	return -EINVAL;
}

/* Not by fy_token_get_text(), which leaks 2 KiB (libfyaml 0.7.12) for each text of more than a few escapes or lines. */
int yaml_events_text(struct yaml_events *events, struct fy_token *token, char *copy, size_t *length)
{
	const struct fy_iter_chunk *chunk;
	int error = 0;

	*length = 0;
	fy_token_iter_start(token, events->iterator);
	for (chunk = fy_token_iter_chunk_next(events->iterator, NULL, &error); chunk;
	     chunk = fy_token_iter_chunk_next(events->iterator, chunk, &error)) {
		if (copy)
			memcpy(copy + *length, chunk->str, chunk->len);
		*length += chunk->len;
	}
	fy_token_iter_finish(events->iterator);
	return error ? yaml_events_fail(events, "this text has an escape sequence that is not YAML: correct it") : 0;
}

/* What libfyaml says is wrong; only the first error counts, what follows it is guesswork. */
static void syntax_error(struct yaml_events *events)
{
	void *iterator = NULL;
	const struct fy_diag_error *error;

	while ((error = fy_diag_errors_iterate(events->diag, &iterator)) != NULL) {
		if (error->type != FYET_ERROR)
			continue;
		report_add(events->report, REPORT_ERROR, (unsigned int)error->line, (unsigned int)error->column,
			   "this is not YAML: %s", error->msg);
		return;
	}
	yaml_events_fail(events,
			 "this is not YAML that can be read: look for a directive (%) or a character out of place");
}

struct fy_event *yaml_events_next(struct yaml_events *events)
{
	struct fy_event *event = fy_parser_parse(events->parser);
	const struct fy_mark *mark;

	if (!event) {
		syntax_error(events);
		return NULL;
	}
	mark = fy_event_start_mark(event);
	if (mark && event->type != FYET_STREAM_END) {
		events->line = (unsigned int)mark->line + 1;
		events->column = (unsigned int)mark->column + 1;
	}
	return event;
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

static int open_parser(struct yaml_events *events, const char *text, size_t length)
{
	struct fy_parse_cfg config = {
		.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_JSON_NONE | FYPCF_DEFAULT_VERSION_1_2,
	};
	struct fy_diag_cfg diag_config;

	fy_diag_cfg_default(&diag_config);
	diag_config.fp = NULL;
	diag_config.colorize = false;
	events->diag = fy_diag_create(&diag_config);
	if (!events->diag)
		return -ENOMEM;
	fy_diag_set_collect_errors(events->diag, true);
	config.diag = events->diag;
	events->parser = fy_parser_create(&config);
	events->iterator = fy_token_iter_create(NULL);
	if (!events->parser || !events->iterator || fy_parser_set_string(events->parser, text, length))
		return -ENOMEM;
	return 0;
}

int yaml_events_open(struct yaml_events *events, const char *text, size_t length, struct report *report)
{
	int ret = check_text(text, length, report);

	*events = (struct yaml_events){.report = report, .line = 1, .column = 1};
	return ret ? ret : open_parser(events, text, length);
}

void yaml_events_close(struct yaml_events *events)
{
	if (events->iterator)
		fy_token_iter_destroy(events->iterator);
	if (events->parser)
		fy_parser_destroy(events->parser);
	if (events->diag)
		fy_diag_destroy(events->diag);
	*events = (struct yaml_events){};
}
