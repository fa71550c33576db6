/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Random members, weights and sizes through every algorithm, from random previous tables: of another size, with
 * unknown names, with owners that are no member.  Whatever is refused is reported; whatever is built keeps the promises
 * of table.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/table.h"

#define MEMBERS 48
#define NAMES 96 /* few, so that some come twice and some are in both tables */

#define REQUIRE(condition)                                                                                             \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

/* 100 and 0 are refused. */
static const uint32_t sizes[] = {2, 3, 5, 7, 11, 23, 47, 53, 101, 251, 509, 1009, 100, 0};
#define SLOTS 1009

struct input {
	const uint8_t *data;
	size_t left;
};

struct membership {
	struct table_member members[MEMBERS];
	char names[MEMBERS][8];
	size_t n;
};

/* Past the end comes zero. */
static uint32_t number(struct input *in, int bytes)
{
	uint32_t value = 0;

	while (bytes-- && in->left) {
		value = value << 8 | *in->data++;
		in->left--;
	}
	return value;
}

static void read_membership(struct input *in, struct membership *out, bool light)
{
	static const char *const zones[] = {NULL, "a", "b", "c"};

	out->n = number(in, 1) % (MEMBERS + 1);
	for (size_t i = 0; i < out->n; i++) {
		uint32_t about = number(in, 1);

		snprintf(out->names[i], sizeof(out->names[i]), "%u", number(in, 1) % NAMES);
		out->members[i] = (struct table_member){
			.name = about == 255 ? "" : out->names[i],
			.weight = about & 1 ? 1 + (about >> 4) : number(in, 3) % 65540,
			.zone = zones[about >> 1 & 3],
		};
		if (light)
			out->members[i].weight %= 64;
	}
}

static uint32_t read_size(struct input *in)
{
	return sizes[number(in, 1) % (sizeof(sizes) / sizeof(sizes[0]))];
}

static size_t positive(const struct membership *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += m->members[i].weight > 0;
	return n;
}

static void check_shares(const struct table_algorithm *algorithm, const struct membership *m,
			 const struct table_params *params, const uint16_t *owner)
{
	bool exact = !strcmp(algorithm->name, "maglev") || !strcmp(algorithm->name, "minimal");
	bool capped =
		params->balance_percent && (!strcmp(algorithm->name, "ring") || !strcmp(algorithm->name, "rendezvous"));
	uint32_t count[MEMBERS] = {}, quota[MEMBERS], nobody = 0;

	for (uint32_t slot = 0; slot < params->slots; slot++) {
		REQUIRE(owner[slot] == TABLE_NONE || owner[slot] < m->n);
		if (owner[slot] == TABLE_NONE)
			nobody++;
		else
			count[owner[slot]]++;
	}
	REQUIRE(nobody == (positive(m) ? 0 : params->slots));
	for (size_t i = 0; i < m->n; i++)
		REQUIRE(m->members[i].weight || !count[i]);
	if (!exact && !capped)
		return;
	REQUIRE(!table_quotas(m->members, m->n, params->slots, quota, NULL));
	for (size_t i = 0; i < m->n; i++) {
		if (exact)
			REQUIRE(count[i] == quota[i] && (quota[i] || !m->members[i].weight));
		else
			REQUIRE(count[i] <= quota[i] + 1 ||
				count[i] * 100ull <= (uint64_t)quota[i] * params->balance_percent);
	}
}

static void check_order(const struct table_algorithm *algorithm, const struct membership *m,
			const struct table_params *params, const struct table *previous, const struct table *built)
{
	struct table_member reversed[MEMBERS];
	uint16_t owner[SLOTS];
	struct table other = {reversed, m->n, params->slots, owner};

	for (size_t i = 0; i < m->n; i++)
		reversed[i] = m->members[m->n - 1 - i];
	REQUIRE(!algorithm->build(reversed, m->n, params, previous, owner, NULL));
	REQUIRE(table_digest(&other) == table_digest(built));
}

static bool distinct(const struct table *table)
{
	for (size_t i = 1; i < table->n_members; i++) {
		for (size_t k = 0; k < i; k++) {
			if (!strcmp(table->members[i].name, table->members[k].name))
				return false;
		}
	}
	return true;
}

static void check_movement(const struct table_algorithm *algorithm, const struct table *previous,
			   const struct table *built)
{
	struct table_diff diff;
	uint32_t sum = 0;
	int err = table_diff(previous, built, &diff);

	REQUIRE(err == (previous->slots == built->slots ? 0 : -EINVAL));
	if (err)
		return;
	REQUIRE(diff.moved >= diff.minimum && diff.excess == diff.moved - diff.minimum && diff.moved <= diff.slots);
	for (size_t i = 0; i < diff.n_moves; i++)
		sum += diff.moves[i].slots;
	REQUIRE(sum == diff.moved);
	REQUIRE(!algorithm->history || !diff.excess || !distinct(previous));
	table_diff_free(&diff);
}

static void check_preference(const struct table *table, size_t k)
{
	struct table_preference *preference;
	uint16_t out[MEMBERS];

	REQUIRE(!table_preference_open(table, &preference));
	for (uint32_t slot = 0; slot < table->slots && slot < 8; slot++) {
		struct table_replicas r = table_preference_list(preference, slot, k, out);
		bool seen[MEMBERS] = {};

		REQUIRE(r.count <= k && r.zones <= r.count && r.under_replicated == (r.zones < k));
		REQUIRE(!r.count || out[0] == table->owner[slot]);
		for (size_t i = 0; i < r.count; i++) {
			REQUIRE(out[i] < table->n_members && table->members[out[i]].weight && !seen[out[i]]);
			seen[out[i]] = true;
		}
	}
	table_preference_close(preference);
}

static void check(const struct table_algorithm *algorithm, const struct membership *m,
		  const struct table_params *params, const struct table *previous, size_t k)
{
	struct report report = {};
	uint16_t owner[SLOTS];
	struct table built = {m->members, m->n, params->slots, owner};
	int err;

	(void)table_memory_peak();
	err = algorithm->build(m->members, m->n, params, previous, owner, &report);
	REQUIRE(!err || err == -EINVAL || err == -E2BIG);
	REQUIRE(!err == !report.errors);
	report_free(&report);
	if (err)
		return;
	REQUIRE(table_memory_peak() + 2 * params->slots <= 16 * params->slots + 256 * m->n + 256);
	check_shares(algorithm, m, params, owner);
	check_order(algorithm, m, params, previous, &built);
	if (previous)
		check_movement(algorithm, previous, &built);
	check_preference(&built, k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	const struct table_algorithm *algorithm = &table_algorithms[number(&in, 1) % table_n_algorithms];
	struct table_params params = {.slots = read_size(&in), .balance_percent = number(&in, 1) % 160};
	static struct membership now, before;
	uint16_t owner[SLOTS];
	struct table previous = {before.members, 0, read_size(&in), owner};
	bool ring = !strcmp(algorithm->name, "ring"), has_previous = number(&in, 1) % 4;
	size_t k = number(&in, 1) % MEMBERS;

	params.vnodes = ring ? 1 + number(&in, 1) % 32 : 0;
	read_membership(&in, &now, ring);
	read_membership(&in, &before, ring);
	previous.n_members = before.n;
	for (uint32_t slot = 0; slot < previous.slots; slot++)
		owner[slot] = (uint16_t)(in.left ? number(&in, 1) : slot % (MEMBERS + 1));
	check(algorithm, &now, &params, has_previous ? &previous : NULL, k);
	return 0;
}
