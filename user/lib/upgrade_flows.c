/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Slots in transition take their ranges and entries along into maps of other capacities. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <shunt/flow.h>

#include "kernel.h"
#include "maps_internal.h"
#include "published.h"
#include "upgrade.h"

/* Both flow tables, mapped; NULL if the sets share one. */
struct flows {
	struct shunt_flow_bucket *from, *to;
	size_t from_size, to_size;
	bool live; /* packets use the new one already: only what it lacks */
};

static int map_flows(const struct maps *maps, struct shunt_flow_bucket **out, size_t *size)
{
	void *at;

	*size = SHUNT_FLOW_BUCKETS((size_t)maps->meta.flows) * sizeof(struct shunt_flow_bucket);
	at = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED, maps->flows, 0);
	if (at == MAP_FAILED)
		return -errno;
	*out = at;
	return 0;
}

static bool has(const struct shunt_flow_bucket *bucket, uint32_t fp)
{
	for (int i = 0; i < SHUNT_FLOW_WAYS; i++)
		if (SHUNT_FLOW_FP(__atomic_load_n(&bucket->word[i], __ATOMIC_RELAXED)) == fp)
			return true;
	return false;
}

/* An entry that is there already is newer; one that finds no place is lost, as if it had been refused. */
static void merge_word(struct shunt_flow_bucket *to, uint64_t word)
{
	if (!word || has(to, SHUNT_FLOW_FP(word)))
		return;
	for (int i = 0; i < SHUNT_FLOW_WAYS; i++) {
		__u64 empty = 0;

		if (__atomic_compare_exchange_n(&to->word[i], &empty, word, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return;
	}
}

static void transfer_range(const struct flows *flows, uint32_t range)
{
	uint32_t start = SHUNT_RANGE_START(range), n = 1u << SHUNT_RANGE_LOG2(range);

	if (!flows->live) {
		memcpy(&flows->to[start], &flows->from[start], n * sizeof(*flows->to));
		return;
	}
	for (uint32_t i = start; i < start + n; i++)
		for (int j = 0; j < SHUNT_FLOW_WAYS; j++)
			merge_word(&flows->to[i], __atomic_load_n(&flows->from[i].word[j], __ATOMIC_RELAXED));
}

static int no_room(const struct maps *to, struct report *report)
{
	return report_error(report, -ENOSPC,
			    "--flows %u is too small while slots are in transition: wait until they have settled "
			    "(shuntctl pool list), or give more",
			    to->meta.flows);
}

static int transfer_ranges(const struct flows *flows, const uint32_t *range, size_t n, const struct maps *to,
			   struct report *report)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t end;

		if (!range[i] || !flows->from || !flows->to)
			continue;
		end = (uint64_t)SHUNT_RANGE_START(range[i]) + (1u << SHUNT_RANGE_LOG2(range[i]));
		if (end * sizeof(struct shunt_flow_bucket) > flows->to_size)
			return no_room(to, report);
		if (end * sizeof(struct shunt_flow_bucket) <= flows->from_size)
			transfer_range(flows, range[i]);
	}
	return 0;
}

/*
 * A slot's own word keeps its place.  Until the new table has all, no packet may take the place of an entry that is to
 * come; and it never says that the slot has no entry at all.
 */
static void transfer_word(const struct flows *flows, uint64_t number)
{
	uint64_t word = __atomic_load_n(shunt_flow_place(flows->from, number), __ATOMIC_RELAXED), there;
	__u64 *to = shunt_flow_place(flows->to, number);
	bool entry = SHUNT_FLOW_FP(word);

	if (!flows->live) {
		__atomic_store_n(to, entry ? word : SHUNT_FLOW_LOCKED, __ATOMIC_RELAXED);
		return;
	}
	there = __atomic_load_n(to, __ATOMIC_RELAXED);
	while (!SHUNT_FLOW_FP(there) &&
	       !__atomic_compare_exchange_n(to, (__u64 *)&there, entry ? word : SHUNT_FLOW_USED, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

static int transfer_own(const struct flows *flows, const struct transit *transit, const struct maps *to,
			struct report *report)
{
	uint64_t end = transit->own + (uint64_t)transit_own_buckets(transit) * SHUNT_FLOW_WAYS;

	if (end == transit->own || !flows->from || !flows->to)
		return 0;
	if (end * sizeof(uint64_t) > flows->to_size)
		return no_room(to, report);
	for (uint64_t i = transit->own; i < end && end * sizeof(uint64_t) <= flows->from_size; i++)
		transfer_word(flows, i);
	return 0;
}

/* The own words of all tables of a class. */
static int transfer_own_words(const struct flows *flows, const struct maps *from, const struct maps *to,
			      enum shunt_table_class class, struct report *report)
{
	int error = 0;

	for (uint32_t pool = 0; pool < from->meta.pools && flows->from && !error; pool++) {
		struct published published;

		if (!maps_inner_exists(from, (enum maps_inner) class, pool))
			continue;
		error = published_read(from, class, pool, &published);
		if (error)
			return error;
		error = transfer_own(flows, &published.transit, to, report);
		transit_free(&published.transit);
	}
	return error;
}

/* All ranges of a class.  publish: make the same ranges in the new set, too. */
static int transfer_class(const struct flows *flows, const struct maps *from, const struct maps *to,
			  enum maps_inner kind, bool publish, struct report *report)
{
	size_t size = maps_inner_size(from, kind);
	uint32_t *value = malloc(size);
	int error = value ? 0 : -ENOMEM;

	for (uint32_t index = 0; index < SHUNT_RANGES_INDEX(from->meta.pools, 0) && !error; index++) {
		error = maps_inner_read(from, kind, index, value);
		if (error == -ENOENT) {
			error = 0;
			continue;
		}
		if (!error)
			error = transfer_ranges(flows, value, size / 2 / sizeof(*value), to, report);
		if (!error && publish && index < SHUNT_RANGES_INDEX(to->meta.pools, 0))
			error = maps_inner_publish(to, kind, index, value);
	}
	free(value);
	return error;
}

static int transfer(const struct maps *from, const struct maps *to, bool publish, bool live, struct report *report)
{
	bool shared = maps_id(from->flows) == maps_id(to->flows);
	struct flows flows = {.live = live};
	int error = shared ? 0 : map_flows(from, &flows.from, &flows.from_size);

	if (shared && !publish)
		return 0;
	if (!error && !shared)
		error = map_flows(to, &flows.to, &flows.to_size);
	/* Own words first: they say whether there may be entries in ranges. */
	for (int class = 0; class < SHUNT_NR_TABLE_CLASSES && !error; class ++)
		error = transfer_own_words(&flows, from, to, (enum shunt_table_class) class, report);
	for (enum maps_inner kind = MAPS_RANGES_S; kind <= MAPS_RANGES_L && !error; kind++)
		error = transfer_class(&flows, from, to, kind, publish, report);
	if (flows.from)
		munmap(flows.from, flows.from_size);
	if (flows.to)
		munmap(flows.to, flows.to_size);
	if (error && error != -ENOSPC)
		kernel_error(report, error, "cannot copy the flow table");
	return error;
}

int upgrade_copy_flows(const struct maps *from, const struct maps *to, struct report *report)
{
	return transfer(from, to, true, false, report);
}

int upgrade_update_flows(const struct maps *from, const struct maps *to, bool live, struct report *report)
{
	return transfer(from, to, false, live, report);
}
