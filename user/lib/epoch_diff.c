/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "epoch_diff.h"
#include "table/table.h"

/* ---- the table of an epoch, again ---- */

struct side {
	struct table_member *members;
	size_t n;
	uint16_t *owner; /* NULL: it cannot be computed again */
	uint32_t slots;
};

static uint32_t number_in(const json_t *object, const char *key)
{
	return (uint32_t)json_integer_value(json_object_get(object, key));
}

static int read_members(const json_t *epoch, struct side *side)
{
	const json_t *members = json_object_get(epoch, "members"), *member;
	size_t i;

	side->slots = number_in(epoch, "slots");
	side->members = calloc(json_array_size(members) + 1, sizeof(*side->members));
	if (!side->members)
		return -ENOMEM;
	json_array_foreach (members, i, member) {
		const char *name = json_string_value(json_array_get(member, 0));

		if (!name)
			break;
		side->members[side->n++] = (struct table_member){
			.name = name, .weight = (uint32_t)json_integer_value(json_array_get(member, 1))};
	}
	return 0;
}

static bool is_digest(const json_t *epoch, uint64_t digest)
{
	const char *text = json_string_value(json_object_get(epoch, "digest"));
	char mine[17];

	snprintf(mine, sizeof(mine), "%016" PRIx64, digest);
	return text && !strcmp(text, mine);
}

static void build(const json_t *epoch, struct side *side)
{
	const char *name = json_string_value(json_object_get(epoch, "algorithm"));
	const struct table_algorithm *algorithm = name ? table_algorithm(name) : NULL;
	const struct table_params params = {.slots = side->slots,
					    .balance_percent = number_in(epoch, "balance_percent"),
					    .vnodes = number_in(epoch, "vnodes")};
	uint16_t *owner = side->slots && side->slots <= TABLE_SLOTS_MAX ? calloc(side->slots, sizeof(*owner)) : NULL;
	struct table table = {side->members, side->n, side->slots, owner};
	bool right = owner && algorithm && !algorithm->history;

	if (right && side->n)
		right = !algorithm->build(side->members, side->n, &params, NULL, owner, NULL);
	else if (right)
		memset(owner, 0xff, side->slots * sizeof(*owner));
	if (right && is_digest(epoch, table_digest(&table))) {
		side->owner = owner;
		return;
	}
	free(owner);
}

static void side_free(struct side *side)
{
	free(side->members);
	free(side->owner);
}

/* ---- the difference ---- */

static json_t *row_of(const json_t *from, const json_t *to)
{
	json_t *row = json_object();

	json_object_set(row, "backend", json_array_get(from ? from : to, 0));
	json_object_set_new(row, "weight_from", from ? json_incref(json_array_get(from, 1)) : json_null());
	json_object_set_new(row, "weight_to", to ? json_incref(json_array_get(to, 1)) : json_null());
	json_object_set_new(row, "slots_from", from ? json_incref(json_array_get(from, 2)) : json_null());
	json_object_set_new(row, "slots_to", to ? json_incref(json_array_get(to, 2)) : json_null());
	return row;
}

/* Both lists are sorted by name.  *kept: slots that both can have in common. */
static json_t *rows_of(const json_t *from, const json_t *to, uint64_t *kept, uint64_t *had, uint64_t *has)
{
	json_t *rows = json_array();
	size_t i = 0, j = 0;

	*kept = *had = *has = 0;
	while (i < json_array_size(from) || j < json_array_size(to)) {
		const json_t *a = json_array_get(from, i), *b = json_array_get(to, j);
		int order =
			!a   ? 1
			: !b ? -1
			     : strcmp(json_string_value(json_array_get(a, 0)), json_string_value(json_array_get(b, 0)));
		uint64_t x = order <= 0 ? (uint64_t)json_integer_value(json_array_get(a, 2)) : 0;
		uint64_t y = order >= 0 ? (uint64_t)json_integer_value(json_array_get(b, 2)) : 0;

		*had += x;
		*has += y;
		*kept += x < y ? x : y;
		json_array_append_new(rows, row_of(order <= 0 ? a : NULL, order >= 0 ? b : NULL));
		i += order <= 0;
		j += order >= 0;
	}
	return rows;
}

static json_t *moved_between(const json_t *from, const json_t *to)
{
	struct side a = {}, b = {};
	struct table_diff diff;
	json_t *moved = json_null();

	if (!read_members(from, &a) && !read_members(to, &b) && a.slots == b.slots) {
		build(from, &a);
		build(to, &b);
		if (a.owner && b.owner &&
		    !table_diff(&(struct table){a.members, a.n, a.slots, a.owner},
				&(struct table){b.members, b.n, b.slots, b.owner}, &diff)) {
			moved = json_integer(diff.moved);
			table_diff_free(&diff);
		}
	}
	side_free(&a);
	side_free(&b);
	return moved;
}

json_t *epoch_diff(const json_t *from, const json_t *to)
{
	uint64_t kept, had, has, slots = number_in(to, "slots");
	json_t *rows = rows_of(json_object_get(from, "members"), json_object_get(to, "members"), &kept, &had, &has);
	uint64_t none = slots - had < slots - has ? slots - had : slots - has;
	bool same_size = number_in(from, "slots") == slots;

	return json_pack("{s:O, s:O, s:O, s:I, s:o, s:o, s:o}", "pool", json_object_get(to, "pool"), "from",
			 json_object_get(from, "epoch"), "to", json_object_get(to, "epoch"), "slots", (json_int_t)slots,
			 "moved", moved_between(from, to), "minimum",
			 same_size ? json_integer((json_int_t)(slots - kept - none)) : json_null(), "rows", rows);
}
