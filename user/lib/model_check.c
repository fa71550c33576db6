/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model_check.h"

const char *model_place_text(struct model_place place, char out[static PLACE_TEXT_MAX])
{
	out[0] = '\0';
	if (place.line)
		snprintf(out, PLACE_TEXT_MAX, " (line %u)", place.line);
	return out;
}

bool model_place_before(struct model_place a, struct model_place b)
{
	return a.line != b.line ? a.line < b.line : a.column < b.column;
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

void model_check_name(const char *kind, const char *name, struct model_place place, struct report *report)
{
	size_t length = strlen(name);

	if (length > MODEL_NAME_MAX) {
		complain(report, place, "%s name \"%.20s...\" has %zu characters: use at most %d", kind, name, length,
			 MODEL_NAME_MAX);
		return;
	}
	for (size_t i = 0; i < length; i++) {
		if (!is_alnum(name[i]) && (i == 0 || !strchr("._-", name[i]))) {
			complain(
				report, place,
				"%s name \"%s\" is not allowed: use letters, digits, \".\", \"_\" and \"-\", and begin "
				"with a letter or digit",
				kind, name);
			return;
		}
	}
	if (!length)
		complain(report, place, "the %s has an empty name: give it one", kind);
}

void model_check_duplicate(const char *kind, const char *name, struct model_place first, struct model_place second,
			   struct report *report)
{
	char text[PLACE_TEXT_MAX];

	complain(report, second, "%s \"%s\" is already defined%s: names are unique, rename or remove one of them", kind,
		 name, model_place_text(first, text));
}

int model_check(const struct model *model, const struct model_local *locals, size_t n_locals, struct report *report)
{
	struct report found = {};
	size_t errors;
	int ret;

	if (!model->has_key)
		complain(&found, model->key_place,
			 "there is no hash key: make one with \"shuntctl keygen\" and name its file in "
			 "\"hash-key-file\", the same on every load balancer of the fleet");
	ret = model_check_pools(model, &found);
	if (!ret)
		ret = model_check_services(model, locals, n_locals, &found);
	errors = found.errors;
	report_move(report, &found);
	if (ret)
		return ret;
	return errors ? -EINVAL : 0;
}

static bool says(const struct report *report, const char *text)
{
	for (size_t i = 0; i < report->count; i++) {
		if (strcmp(report->entries[i].text, text) == 0)
			return true;
	}
	return false;
}

int model_check_change(const struct model *model, const struct model *in_force, const struct model_local *locals,
		       size_t n_locals, struct report *report)
{
	struct report found = {}, before = {};
	int ret = model_check(model, locals, n_locals, &found);

	if (ret == -EINVAL && in_force && model_check(in_force, locals, n_locals, &before) == -EINVAL) {
		for (size_t i = 0; i < found.count; i++) {
			struct report_entry *entry = &found.entries[i];

			if (entry->level != REPORT_ERROR || !says(&before, entry->text))
				continue;
			entry->level = REPORT_WARNING;
			found.errors--;
		}
		ret = found.errors ? -EINVAL : 0;
	}
	report_free(&before);
	report_move(report, &found);
	return ret;
}
