/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The document reader: whatever the bytes are, it either gives a model that survives the way through JSON, or says at
 * least one error, each with a place and printable.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "document.h"
#include "utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

static bool reading;

/* A document can name any file, and opening a device can have effects: no file is there for it. */
int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	if (reading) {
		errno = ENOENT;
		return -1;
	}
	va_start(args, flags);
	mode = va_arg(args, int);
	va_end(args);
	return __real_open(path, flags, mode);
}

static void insist(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void judge_report(const struct report *report)
{
	char *text = report_text(report);

	insist(text != NULL, "no memory for the report");
	for (size_t i = 0; i < report->count; i++) {
		const struct report_entry *entry = &report->entries[i];

		insist(entry->line && entry->column, "an error without a place");
		insist(utf8_bad(entry->text, strlen(entry->text), "") == strlen(entry->text), "a text not printable");
	}
	free(text);
}

static void judge_round_trip(const struct model *model)
{
	json_t *json = model_json(model, MODEL_WITH_KEY), *second;
	char *text = json_dumps(json, JSON_COMPACT);
	struct report report = {};
	struct model *again;

	insist(json && text, "a model that JSON cannot hold");
	insist(document_parse(text, strlen(text), &again, &report) == 0, "JSON that is no document");
	second = model_json(again, MODEL_WITH_KEY);
	insist(json_equal(json, second), "a model changed on its way through JSON");
	json_decref(json);
	json_decref(second);
	free(text);
	model_free(again);
	report_free(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct model_local locals[2] = {{.interface = "eth0"}, {.interface = "lo", .loopback = true}};
	struct report report = {};
	struct model *model = NULL;
	int ret;

	addr_parse("192.0.2.200", &locals[0].address);
	addr_parse("192.0.2.201", &locals[1].address);
	reading = true;
	ret = document_check((const char *)data, size, locals, 2, &model, &report);
	reading = false;
	insist(ret == 0 || ret == -EINVAL, "another error than -EINVAL");
	insist((ret != 0) == (report.errors != 0), "the report and the result disagree");
	insist((ret != 0) == (model == NULL), "a model that is wrong");
	judge_report(&report);
	report_free(&report);
	if (model)
		judge_round_trip(model);
	model_free(model);
	return 0;
}
