/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a document or a changed model to what is in force. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon.h"
#include "document.h"
#include "hashkey.h"
#include "log.h"

/* ---- a model ---- */

static int check(const struct model *model, const struct model *in_force, struct report *report)
{
	struct model_local *locals;
	size_t count;
	int ret = model_locals(&locals, &count);

	if (ret)
		return report_error(report, ret, "cannot list this host's addresses: %s", strerror(-ret));
	ret = model_check_change(model, in_force, locals, count, report);
	free(locals);
	return ret;
}

/* Takes the model, also on failure. */
static int put_in_force(struct daemon *daemon, struct model *model, uint64_t tag, unsigned int settle_ms,
			struct report *report)
{
	int ret = ways_watch(daemon, model);

	if (!ret) {
		ways_settle(daemon, settle_ms);
		ret = engine_apply(daemon->engine, model, &(struct engine_change){.document_tag = tag}, report);
	}
	if (ret)
		model_free(model);
	else
		ways_published(daemon);
	if (ways_watch(daemon, NULL))
		log_error("out of memory: addresses that are gone are still followed");
	ticks_kick(daemon);
	return ret;
}

int apply_model(struct daemon *daemon, struct model *model, struct report *report)
{
	int ret = check(model, engine_model(daemon->engine), report);

	if (!ret)
		return put_in_force(daemon, model, 0, VERB_SETTLE_MS, report);
	model_free(model);
	return ret;
}

/* ---- the file ---- */

static char *read_bytes(const char *path, size_t *length)
{
	FILE *file = fopen(path, "re");
	struct stat status;
	char *bytes = NULL;

	if (file && !fstat(fileno(file), &status) && S_ISREG(status.st_mode) && status.st_size <= DOCUMENT_SIZE_MAX)
		bytes = malloc((size_t)status.st_size + 1);
	if (bytes)
		*length = fread(bytes, 1, (size_t)status.st_size, file);
	if (file)
		fclose(file);
	return bytes;
}

/* The document's own key makes the tag: it tells nothing of a document to who reads the state without the key. */
static uint64_t tag_of(const char *bytes, size_t length)
{
	struct model *model = NULL;
	struct report unused = {};
	uint64_t tag = 0;

	if (!document_parse(bytes, length, &model, &unused) &&
	    (model->has_key || (model->key_file && !document_read_key(model, &unused)))) {
		tag = siphash24(model->key, bytes, length);
		tag = tag ? tag : 1; /* 0 means none */
	}
	model_free(model);
	report_free(&unused);
	return tag;
}

/*
 * Of what is in the file now, 0 if that is no document.  Taken before the document is loaded: if the file changes
 * between, then the next start finds another tag and applies it again.
 */
static uint64_t file_tag(const char *path)
{
	size_t length = 0;
	char *bytes = read_bytes(path, &length);
	uint64_t tag = bytes ? tag_of(bytes, length) : 0;

	if (bytes)
		explicit_bzero(bytes, length); /* the key may be in it */
	free(bytes);
	return tag;
}

static bool same_model(const struct model *a, const struct model *b)
{
	json_t *x = a ? model_json(a, MODEL_WITH_KEY) : NULL, *y = b ? model_json(b, MODEL_WITH_KEY) : NULL;
	bool same = x && y && json_equal(x, y);

	json_decref(x);
	json_decref(y);
	return same;
}

static int load_and_apply(struct daemon *daemon, uint64_t tag, bool *changed, struct report *report)
{
	struct model *model = NULL;
	int ret = document_load(daemon->options->file, &model, report);
	bool same;

	if (ret)
		return ret;
	same = same_model(engine_model(daemon->engine), model);
	ret = put_in_force(daemon, model, tag, APPLY_SETTLE_MS, report);
	if (!ret)
		*changed = !same;
	return ret;
}

static void remember_outcome(struct daemon *daemon, int error, const struct report *report)
{
	const char *first = report->count ? report->entries[0].text : strerror(-error);

	for (size_t i = 0; i < report->count; i++) {
		if (report->entries[i].level == REPORT_ERROR) {
			first = report->entries[i].text;
			break;
		}
	}
	if (error)
		daemon_set_problem(&daemon->document_problem, "%s is not in force, it has %zu error%s: %s",
				   daemon->options->file, report->errors, report->errors == 1 ? "" : "s", first);
	else
		daemon_set_problem(&daemon->document_problem, NULL);
}

int apply_file(struct daemon *daemon, bool always, bool *changed, struct report *report)
{
	uint64_t tag = file_tag(daemon->options->file);
	int ret;

	if (!always && tag && tag == engine_document_tag(daemon->engine)) {
		*changed = false;
		return 0;
	}
	ret = load_and_apply(daemon, tag, changed, report);
	remember_outcome(daemon, ret, report);
	return ret;
}

int apply_reopen(struct daemon *daemon, struct report *report)
{
	int ret = engine_reopen(daemon->engine, report);

	if (!ret)
		ways_publish(daemon);
	return ret;
}
