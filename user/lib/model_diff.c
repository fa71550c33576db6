/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Compares in JSON, so that a member that is added to the document is compared too; pools, services and backends, of
 * which there are many, only where they differ.
 */
#include <stdio.h>
#include <string.h>

#include "model_diff.h"
#include "model_parts.h"

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
	return !strcmp(key, "name") || !strcmp(key, "hash-key");
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

/* Takes the objects: NULL where the thing is not, or no memory. */
static void compare_things(struct differ *differ, const char *kind, const char *name, json_t *from, json_t *to)
{
	const char *change = !from ? "added" : !to ? "removed" : "changed";
	json_t *members = json_array(), *row = NULL;

	compare_members(differ, members, "", from, to);
	if (!from || !to || json_array_size(members)) {
		row = json_pack("{s:s, s:s, s:s, s:O}", "change", change, "kind", kind, "name", name, "members",
				members);
		differ->failed |= !row || json_array_append_new(differ->changes, row);
	}
	json_decref(members);
	json_decref(from);
	json_decref(to);
}

/* As JSON; NULL stays NULL, and shows in `failed` where it was something. */
#define json_of(differ, thing, json) ((thing) ? made(differ, json(thing)) : NULL)

static json_t *made(struct differ *differ, json_t *object)
{
	differ->failed |= !object;
	return object;
}

/* Two arrays of structs of `size` bytes, whose first member is the name that they are sorted by. */
struct pairs {
	size_t size;
	const void *from, *to;
	size_t n_from, n_to;
	const void *a, *b; /* the pair: of the same name, or one is NULL */
};

static const char *name_of(const void *thing)
{
	return *(const char *const *)thing;
}

static bool next_pair(struct pairs *pairs)
{
	const void *a = pairs->n_from ? pairs->from : NULL, *b = pairs->n_to ? pairs->to : NULL;
	int order = !a ? 1 : !b ? -1 : strcmp(name_of(a), name_of(b));

	if (!a && !b)
		return false;
	pairs->a = order <= 0 ? a : NULL;
	pairs->b = order >= 0 ? b : NULL;
	if (pairs->a) {
		pairs->from = (const char *)pairs->from + pairs->size;
		pairs->n_from--;
	}
	if (pairs->b) {
		pairs->to = (const char *)pairs->to + pairs->size;
		pairs->n_to--;
	}
	return true;
}

static void diff_services(struct differ *differ, const struct model *from, const struct model *to)
{
	struct pairs pairs = {.size = sizeof(*to->services),
			      .from = from ? from->services : NULL,
			      .to = to->services,
			      .n_from = from ? from->n_services : 0,
			      .n_to = to->n_services};

	while (next_pair(&pairs)) {
		const struct model_service *a = pairs.a, *b = pairs.b;

		if (a && b && model_same_service(a, b))
			continue;
		compare_things(differ, "service", a ? a->name : b->name, json_of(differ, a, model_service_json),
			       json_of(differ, b, model_service_json));
	}
}

static void diff_backends(struct differ *differ, const char *pool, const struct model_pool *from,
			  const struct model_pool *to)
{
	struct pairs pairs = {.size = sizeof(struct model_backend),
			      .from = from ? from->backends : NULL,
			      .to = to ? to->backends : NULL,
			      .n_from = from ? from->n_backends : 0,
			      .n_to = to ? to->n_backends : 0};
	char name[NAME_MAX_BYTES];

	while (next_pair(&pairs)) {
		const struct model_backend *a = pairs.a, *b = pairs.b;

		if (a && b && model_same_backend(a, b))
			continue;
		snprintf(name, sizeof(name), "%s/%s", pool, a ? a->name : b->name);
		compare_things(differ, "backend", name, json_of(differ, a, model_backend_json),
			       json_of(differ, b, model_backend_json));
	}
}

/* Backends apart. */
static bool same_pool(const struct model_pool *a, const struct model_pool *b, struct text scratch[static 2])
{
	scratch[0].length = scratch[1].length = 0;
	model_write_pool(a, &scratch[0]);
	model_write_pool(b, &scratch[1]);
	return !scratch[0].failed && !scratch[1].failed && scratch[0].length == scratch[1].length &&
	       !memcmp(scratch[0].at, scratch[1].at, scratch[0].length);
}

static void diff_pools(struct differ *differ, const struct model *from, const struct model *to)
{
	struct pairs pairs = {.size = sizeof(*to->pools),
			      .from = from ? from->pools : NULL,
			      .to = to->pools,
			      .n_from = from ? from->n_pools : 0,
			      .n_to = to->n_pools};
	struct text scratch[2] = {};

	while (next_pair(&pairs)) {
		const struct model_pool *a = pairs.a, *b = pairs.b;
		const char *name = a ? a->name : b->name;

		if (!a || !b || !same_pool(a, b, scratch))
			compare_things(differ, "pool", name, json_of(differ, a, model_pool_json),
				       json_of(differ, b, model_pool_json));
		diff_backends(differ, name, a, b);
	}
	text_free(&scratch[0]);
	text_free(&scratch[1]);
}

static bool same_key(const struct model *from, const struct model *to)
{
	return from->has_key == to->has_key && !memcmp(from->key, to->key, sizeof(from->key));
}

static void diff_heads(struct differ *differ, const struct model *from, const struct model *to)
{
	json_t *x = made(differ, model_head_json(from, MODEL_WITHOUT_KEY));
	json_t *y = made(differ, model_head_json(to, MODEL_WITHOUT_KEY));
	json_t *members = json_array(), *row;

	compare_members(differ, members, "", x, y);
	if (!same_key(from, to))
		add_member(differ, members, "hash-key", NULL, NULL);
	if (json_array_size(members)) {
		row = json_pack("{s:s, s:s, s:s, s:O}", "change", "changed", "kind", "document", "name", "document",
				"members", members);
		differ->failed |= !row || json_array_append_new(differ->changes, row);
	}
	json_decref(members);
	json_decref(x);
	json_decref(y);
}

json_t *model_diff(const struct model *from, const struct model *to)
{
	struct differ differ = {.changes = json_array()};

	if (from)
		diff_heads(&differ, from, to);
	diff_services(&differ, from, to);
	diff_pools(&differ, from, to);
	if (!differ.failed)
		return differ.changes;
	json_decref(differ.changes);
	return NULL;
}
