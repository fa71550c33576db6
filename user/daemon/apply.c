/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The document file, and whether it is the one last applied. */
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

/*
 * The document's own key makes the tag: it tells nothing of a document to who reads the state without the key.  One
 * that keeps the key has none of its own, and nothing to hide: zeros do.
 */
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

uint64_t apply_tag(const struct daemon *daemon, const char *text, size_t length)
{
	size_t file_length = 0;
	char *bytes = daemon->options->file ? read_bytes(daemon->options->file, &file_length) : NULL;
	bool same = bytes && file_length == length && !memcmp(bytes, text, length);

	if (bytes)
		explicit_bzero(bytes, file_length);
	free(bytes);
	return same ? tag_of(text, length) : 0;
}

static int load_and_apply(struct daemon *daemon, uint64_t tag, const struct origin *origin, bool *changed,
			  struct report *report)
{
	const struct change change = {
		.origin = *origin,
		.tag = tag,
		.document = true,
		.files = true,
		.settle_ms = APPLY_SETTLE_MS,
		.forced = origin->forced,
	};
	struct change_result result;
	struct model *model = NULL;
	int ret = document_load(daemon->options->file, &model, report);

	if (ret)
		return ret;
	ret = document_keep_key(model, engine_model(daemon->engine), daemon->options->hash_key_file, report);
	if (ret) {
		model_free(model);
		return ret;
	}
	ret = change_make(daemon, model, &change, &result, report);
	if (!ret)
		*changed = json_array_size(result.changes);
	change_result_free(&result);
	return ret;
}

static void remember_outcome(struct daemon *daemon, int error, const struct report *report)
{
	const char *first = report_first(report, strerror(-error));

	if (error == -EALREADY)
		daemon_set_problem(&daemon->document_problem,
				   "%s was not read again, because another change waited to be confirmed: \"shuntctl "
				   "reload\" applies it then",
				   daemon->options->file);
	else if (error)
		daemon_set_problem(&daemon->document_problem, "%s is not in force, it has %zu error%s: %s",
				   daemon->options->file, report->errors, report->errors == 1 ? "" : "s", first);
	else
		daemon_set_problem(&daemon->document_problem, NULL);
}

int apply_file(struct daemon *daemon, bool always, const struct origin *origin, bool *changed, struct report *report)
{
	uint64_t tag = file_tag(daemon->options->file);
	int ret;

	if (!always && tag && tag == engine_document_tag(daemon->engine)) {
		*changed = false;
		return 0;
	}
	ret = load_and_apply(daemon, tag, origin, changed, report);
	remember_outcome(daemon, ret, report);
	return ret;
}

int apply_reopen(struct daemon *daemon, struct report *report)
{
	int ret = engine_reopen(daemon->engine, report);

	if (!ret) {
		checks_reopen(daemon);
		ways_publish(daemon);
	}
	return ret;
}
