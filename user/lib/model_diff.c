/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Compares the models' documents in JSON, so that a member that is added to the document is compared too. */
#include <stdio.h>
#include <string.h>

#include "model_diff.h"

#define NAME_MAX_BYTES 256

/* Whether memory ran out shows in `failed`. */
struct differ {
	json_t *changes;
	int failed;
};

/* ---- members ---- */

static void add_member(struct differ *differ, json_t *members, const char *name, json_t *from, json_t *to)
{
	json_t *member = json_pack("{s:s, s:O?, s:O?}", "member", name, "from", from, "to", to);

	differ->failed |= !member || json_array_append_new(members, member);
}

static bool has_own_rows(const char *key)
{
	return !strcmp(key, "name") || !strcmp(key, "backends") || !strcmp(key, "pools") || !strcmp(key, "services") ||
	       !strcmp(key, "hash-key");
}

static void compare_members(struct differ *differ, json_t *members, const char *prefix, json_t *from, json_t *to);

static void compare_member(struct differ *differ, json_t *members, const char *name, json_t *from, json_t *to)
{
	if ((from && to && json_equal(from, to)) || (!from && !to))
		return;
	if (json_is_object(from) || json_is_object(to))
		compare_members(differ, members, name, from, to);
	else
		add_member(differ, members, name, from, to);
}

/* Either side may be NULL. */
static void compare_members(struct differ *differ, json_t *members, const char *prefix, json_t *from, json_t *to)
{
	char name[NAME_MAX_BYTES];
	const char *key;
	json_t *value;

	json_object_foreach (from, key, value) {
		if (has_own_rows(key))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", key);
		compare_member(differ, members, name, value, json_object_get(to, key));
	}
	json_object_foreach (to, key, value) {
		if (has_own_rows(key) || json_object_get(from, key))
			continue;
		snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "." : "", key);
		compare_member(differ, members, name, NULL, value);
	}
}

/* ---- things with names ---- */

static void compare_things(struct differ *differ, const char *kind, const char *name, json_t *from, json_t *to)
{
	const char *change = !from ? "added" : !to ? "removed" : "changed";
	json_t *members = json_array(), *row;

	compare_members(differ, members, "", from, to);
	if (from && to && !json_array_size(members)) {
		json_decref(members);
		return;
	}
	row = json_pack("{s:s, s:s, s:s, s:o}", "change", change, "kind", kind, "name", name, "members", members);
	differ->failed |= !row || json_array_append_new(differ->changes, row);
}

static const char *name_at(const json_t *array, size_t i)
{
	return json_string_value(json_object_get(json_array_get(array, i), "name"));
}

typedef void pair_fn(struct differ *differ, const char *name, json_t *from, json_t *to, const char *pool);

/* Both arrays are sorted by name. */
static void walk(struct differ *differ, const json_t *from, const json_t *to, pair_fn *fn, const char *pool)
{
	size_t i = 0, j = 0;

	while (i < json_array_size(from) || j < json_array_size(to)) {
		const char *a = name_at(from, i), *b = name_at(to, j);
		int order = !a ? 1 : !b ? -1 : strcmp(a, b);

		fn(differ, order <= 0 ? a : b, order <= 0 ? json_array_get(from, i) : NULL,
		   order >= 0 ? json_array_get(to, j) : NULL, pool);
		i += order <= 0;
		j += order >= 0;
	}
}

static void pair_of_services(struct differ *differ, const char *name, json_t *from, json_t *to, const char *pool)
{
	(void)pool;
	compare_things(differ, "service", name, from, to);
}

static void pair_of_backends(struct differ *differ, const char *name, json_t *from, json_t *to, const char *pool)
{
	char full[NAME_MAX_BYTES];

	snprintf(full, sizeof(full), "%s/%s", pool, name);
	compare_things(differ, "backend", full, from, to);
}

static void pair_of_pools(struct differ *differ, const char *name, json_t *from, json_t *to, const char *pool)
{
	(void)pool;
	compare_things(differ, "pool", name, from, to);
	walk(differ, json_object_get(from, "backends"), json_object_get(to, "backends"), pair_of_backends, name);
}

static bool same_key(const struct model *from, const struct model *to)
{
	return from->has_key == to->has_key && !memcmp(from->key, to->key, sizeof(from->key));
}

static void compare_documents(struct differ *differ, const struct model *from, const struct model *to, json_t *x,
			      json_t *y)
{
	json_t *members = json_array(), *row;

	compare_members(differ, members, "", x, y);
	if (!same_key(from, to))
		add_member(differ, members, "hash-key", NULL, NULL);
	if (!json_array_size(members)) {
		json_decref(members);
		return;
	}
	row = json_pack("{s:s, s:s, s:s, s:o}", "change", "changed", "kind", "document", "name", "document", "members",
			members);
	differ->failed |= !row || json_array_append_new(differ->changes, row);
}

json_t *model_diff(const struct model *from, const struct model *to)
{
	json_t *x = from ? model_json(from, MODEL_WITHOUT_KEY) : json_object(), *y = model_json(to, MODEL_WITHOUT_KEY);
	struct differ differ = {.changes = json_array()};

	if (x && y && differ.changes) {
		if (from)
			compare_documents(&differ, from, to, x, y);
		walk(&differ, json_object_get(x, "services"), json_object_get(y, "services"), pair_of_services, NULL);
		walk(&differ, json_object_get(x, "pools"), json_object_get(y, "pools"), pair_of_pools, NULL);
	} else {
		differ.failed = 1;
	}
	json_decref(x);
	json_decref(y);
	if (!differ.failed)
		return differ.changes;
	json_decref(differ.changes);
	return NULL;
}
