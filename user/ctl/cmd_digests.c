/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl export, digests, verify: what is in force, to keep or to compare */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl.h"
#include "document_output.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static error_t parse_words(int key, char *arg, struct argp_state *state)
{
	return ctl_word(state->input, key, arg, state);
}

static const char *const none[] = {NULL};
static const struct argp_child children[] = {CTL_GLOBAL, {}};

int cmd_export(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_words,
		.doc = "Prints what is in force as a document: applied, it changes nothing. The hash key is not in it: "
		       "the document names its file or says \"hash-key: keep\".",
		.children = children,
	};
	struct ctl_words words = {.names = none};
	json_t *reply, *document;
	int code = ctl_parse(&argp, argc, argv, NULL, &words);

	if (!code)
		code = ctl_call("Export", NULL, &reply);
	if (code)
		return code;
	document = json_incref(json_object_get(reply, "document"));
	json_decref(reply);
	if (ctl_options.json)
		return ctl_print_json(document);
	ctl_print_document(document);
	json_decref(document);
	return CTL_OK;
}

static const struct ctl_column columns[] = {
	{"POOL", "pool", CTL_TEXT, NULL},     {"ALGORITHM", "algorithm", CTL_TEXT, NULL},
	{"SLOTS", "slots", CTL_NUMBER, NULL}, {"EPOCH", "epoch", CTL_NUMBER, NULL},
	{"DIGEST", "digest", CTL_TEXT, NULL}, {"HISTORY", "history", CTL_TEXT, NULL},
};

static const struct ctl_column head[] = {
	{"hash key", "key", CTL_TEXT, NULL},
	{"services", "services", CTL_TEXT, NULL},
};

int cmd_digests(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_words,
		.doc = "Prints the digests of all tables in force, of the services, and a fingerprint of the hash key: "
		       "equal on balancers that treat every packet alike. With -j it is what verify reads.",
		.children = children,
	};
	struct ctl_words words = {.names = none};
	json_t *reply;
	int code = ctl_parse(&argp, argc, argv, NULL, &words);

	if (!code)
		code = ctl_call("Digests", NULL, &reply);
	if (code)
		return code;
	if (ctl_options.json)
		return ctl_print_json(reply);
	ctl_print_object(reply, head, LENGTH(head));
	putchar('\n');
	ctl_print_table(json_object_get(reply, "pools"), columns, LENGTH(columns));
	json_decref(reply);
	return CTL_OK;
}

/* ---- verify ---- */

static const json_t *find_pool(const json_t *digests, const json_t *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(digests, "pools"), i, row)
		if (json_equal(json_object_get(row, "pool"), name))
			return row;
	return NULL;
}

static void differ(json_t *rows, const char *what, const json_t *here, const json_t *there)
{
	json_array_append_new(rows, json_pack("{s:s, s:O?, s:O?}", "what", what, "here", here, "there", there));
}

static void compare_pool(json_t *rows, const char *name, const json_t *here, const json_t *there)
{
	const json_t *a = json_object_get(here, "digest"), *b = json_object_get(there, "digest");
	char what[128];

	if (here && there && json_equal(a, b))
		return;
	snprintf(what, sizeof(what), "pool %.63s%s", name,
		 json_is_true(json_object_get(here ? here : there, "history")) ? " (builds on its history)" : "");
	differ(rows, what, a, b);
}

static json_t *compare(const json_t *here, const json_t *there)
{
	static const char *const members[] = {"key", "services"}, *const names[] = {"hash key", "services"};
	json_t *rows = json_array();
	const json_t *row;
	size_t i;

	for (i = 0; i < LENGTH(members); i++) {
		const json_t *a = json_object_get(here, members[i]), *b = json_object_get(there, members[i]);

		if (!json_equal(a, b))
			differ(rows, names[i], a, b);
	}
	json_array_foreach (json_object_get(here, "pools"), i, row)
		compare_pool(rows, json_string_value(json_object_get(row, "pool")), row,
			     find_pool(there, json_object_get(row, "pool")));
	json_array_foreach (json_object_get(there, "pools"), i, row) {
		const json_t *name = json_object_get(row, "pool");

		if (!find_pool(here, name))
			compare_pool(rows, json_string_value(name), NULL, row);
	}
	return rows;
}

static const struct ctl_column verify_columns[] = {
	{"WHAT", "what", CTL_TEXT, NULL}, {"HERE", "here", CTL_TEXT, NULL}, {"THERE", "there", CTL_TEXT, NULL}};

/* Takes the reference. */
static int print_verdict(json_t *rows)
{
	size_t n = json_array_size(rows);

	if (ctl_options.json) {
		ctl_print_json(json_pack("{s:b, s:o}", "equal", !n, "differences", rows));
		return n ? CTL_INVALID : CTL_OK;
	}
	if (n)
		ctl_print_table(rows, verify_columns, LENGTH(verify_columns));
	else
		puts("equal");
	json_decref(rows);
	return n ? CTL_INVALID : CTL_OK;
}

static bool are_digests(const json_t *there)
{
	const json_t *pools = json_object_get(there, "pools"), *row;
	size_t i;

	json_array_foreach (pools, i, row)
		if (!json_is_string(json_object_get(row, "pool")))
			return false;
	return json_is_array(pools) && json_is_string(json_object_get(there, "key")) &&
	       json_is_string(json_object_get(there, "services"));
}

/* What another balancer printed. */
static int load(const char *path, json_t **out)
{
	bool standard_input = !strcmp(path, "-");
	FILE *file = standard_input ? stdin : fopen(path, "re");
	json_error_t error;
	json_t *there;

	if (!file)
		return ctl_fail(CTL_INCOMPARABLE, "Invalid", "cannot read %s: %s", path, strerror(errno));
	there = json_loadf(file, 0, &error);
	if (!standard_input)
		fclose(file);
	if (are_digests(there)) {
		*out = there;
		return CTL_OK;
	}
	json_decref(there);
	return ctl_fail(CTL_INCOMPARABLE, "Invalid",
			"%s is not what \"shuntctl digests -j\" prints on another balancer%s%s",
			standard_input ? "standard input" : path, there ? "" : ": ", there ? "" : error.text);
}

int cmd_verify(int argc, char **argv)
{
	static const char *const names[] = {"FILE", NULL};
	static const struct argp argp = {
		.parser = parse_words,
		.args_doc = "FILE",
		.doc = "Compares with another balancer: FILE (\"-\": standard input) is what \"shuntctl digests -j\" "
		       "printed there. Exit 1 and a list of what is different, or \"equal\"; exit 6 where FILE is "
		       "something else.",
		.children = children,
	};
	struct ctl_words words = {.names = names, .required = 1};
	json_t *there = NULL, *here;
	int code = ctl_parse(&argp, argc, argv, NULL, &words);

	if (code)
		return code;
	code = load(words.value[0], &there);
	if (code)
		return code;
	code = ctl_call("Digests", NULL, &here);
	if (!code) {
		code = print_verdict(compare(here, there));
		json_decref(here);
	}
	json_decref(there);
	return code;
}
