/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "document_fields.h"
#include "hexkey.h"

#define DOCUMENT_VERSION 1

static bool read_version(struct reader *reader, const struct yaml_node *value, void *object)
{
	uint32_t version;

	(void)object;
	if (!read_number(reader, value, "version", UINT32_MAX, "1", &version))
		return false;
	if (version == DOCUMENT_VERSION)
		return true;
	complain_at(reader->report, value, "version %u of the document is not known here: write version %d, or update",
		    version, DOCUMENT_VERSION);
	return false;
}

static bool read_key_file(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model *model = object;

	model->key_place = node_place(value);
	if (!read_text(reader, value, "hash-key-file", &model->key_file)) {
		model->has_key = true;
		return false;
	}
	if (model->key_file[0] == '/')
		return true;
	complain_at(reader->report, value, "hash-key-file is \"%.200s\": give the whole path, beginning with \"/\"",
		    model->key_file);
	return false;
}

static bool read_key(struct reader *reader, const struct yaml_node *value, void *object)
{
	struct model *model = object;

	model->key_place = node_place(value);
	if (value->kind == YAML_SCALAR && !strcmp(value->text, MODEL_KEY_KEEP)) {
		model->has_key = model->keep_key = true;
		return true;
	}
	model->has_key = true; /* also where it is wrong, for then the model goes no further than model_check() */
	if (value->kind != YAML_SCALAR || hexkey_parse(value->text, strlen(value->text), model->key)) {
		complain_at(reader->report, value,
			    "hash-key is not 32 hexadecimal digits in quotes: make one with \"shuntctl keygen\"");
		return false;
	}
	return true;
}

static const struct field document_fields[] = {
	{"version", read_version, "write \"version: 1\""},
	{"hash-key-file", read_key_file, NULL},
	{"hash-key", read_key, NULL},
	{"policy", read_policy, NULL},
	{"settings", read_settings, NULL},
	{"announce", read_announce, NULL},
	{"pools", read_pools, "list the pools, or write \"pools: []\""},
	{"services", read_services, "list the services, or write \"services: []\""},
};

static void read_document(struct reader *reader, const struct yaml_node *root)
{
	reader->model->key_place = node_place(root);
	reader->model->settings.error_rate = MODEL_DEFAULT_ERROR_RATE;
	read_fields(reader, root, "the document", document_fields, sizeof(document_fields) / sizeof(*document_fields),
		    reader->model);
	model_sort(reader->model);
}

static int check_root(const struct yaml_node *root, struct report *report)
{
	if (root && root->kind == YAML_MAPPING)
		return 0;
	report_add(report, REPORT_ERROR, root ? root->line : 1, root ? root->column : 1,
		   "%s: write a mapping with version, hash-key-file, pools and services",
		   root ? "this is no document of shunt" : "the document is empty");
	return -EINVAL;
}

/*
 * As much of a model as there is: 0, and the report tells whether all of it was right.  *out is NULL where nothing
 * could be read.
 */
static int read_model(const char *text, size_t length, struct model **out, struct report *report)
{
	struct reader reader = {.report = report};
	struct yaml_tree *tree = NULL;
	int ret;

	*out = NULL;
	if (length > DOCUMENT_SIZE_MAX) {
		report_error(report, -EINVAL, "the document is larger than %u MiB: make it shorter",
			     DOCUMENT_SIZE_MAX >> 20);
		return -EINVAL;
	}
	ret = yaml_parse(text, length, &tree, report);
	if (ret)
		return ret;
	ret = check_root(yaml_root(tree), report);
	if (ret) {
		yaml_free(tree);
		return ret;
	}
	reader.model = calloc(1, sizeof(*reader.model));
	if (reader.model)
		read_document(&reader, yaml_root(tree));
	yaml_free(tree);
	if (!reader.model || reader.no_memory) {
		model_free(reader.model);
		return -ENOMEM;
	}
	*out = reader.model;
	return 0;
}

int document_parse(const char *text, size_t length, struct model **out, struct report *report)
{
	struct report found = {};
	struct model *model;
	int ret = read_model(text, length, &model, &found);

	if (!ret && found.errors)
		ret = -EINVAL;
	report_move(report, &found);
	if (ret)
		model_free(model);
	else
		*out = model;
	return ret;
}

/* The key of a document that people wrote: inline or in a file, not both. */
static int find_key(struct model *model, struct report *report)
{
	int ret = 0;

	if (model->key_file && model->has_key) {
		report_add(report, REPORT_ERROR, model->key_place.line, model->key_place.column,
			   "both hash-key and hash-key-file are given: remove one of them");
		return 0;
	}
	if (model->key_file && model->key_file[0] == '/')
		ret = document_read_key(model, report);
	if (model->key_file)
		model->has_key = true; /* what is wrong with it is reported by now */
	return ret == -ENOMEM ? ret : 0;
}

int document_keep_key(struct model *model, const struct model *in_force, const char *key_file, struct report *report)
{
	const char *path = in_force ? in_force->key_file : key_file;

	if (!model->keep_key)
		return 0;
	if (!in_force && !key_file)
		return report_error(
			report, -EINVAL,
			"the document says \"hash-key: keep\", and there is no key to keep yet: start shuntd "
			"with --hash-key-file FILE");
	if (path) {
		model->key_file = strdup(path);
		if (!model->key_file)
			return -ENOMEM;
	}
	if (in_force)
		memcpy(model->key, in_force->key, sizeof(model->key));
	else if (document_read_key(model, report))
		return -EINVAL;
	model->keep_key = false;
	return 0;
}

int document_check(const char *text, size_t length, const struct model_local *locals, size_t n_locals,
		   struct model **out, struct report *report)
{
	struct report found = {};
	struct model *model;
	int ret = read_model(text, length, &model, &found);

	if (!ret)
		ret = find_key(model, &found);
	if (!ret)
		ret = model_check(model, locals, n_locals, &found);
	if (!ret && found.errors)
		ret = -EINVAL;
	report_move(report, &found);
	if (ret)
		model_free(model);
	else
		*out = model;
	return ret;
}
