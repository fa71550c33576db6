/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <bpf/bpf.h>

#include "flowtable.h"

#define NS_PER_MS 1000000ull
#define TRIES 8

const char *const flowtable_states[4] = {
	[SHUNT_FLOW_HALF] = "half-open",
	[SHUNT_FLOW_ADOPTED] = "adopted",
	[SHUNT_FLOW_LIVE] = "live",
	[SHUNT_FLOW_CLOSING] = "closing",
};

/* ---- the maps ---- */

static int map_array(int fd, size_t value_size, const void **out, uint32_t *entries)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);
	void *address;

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return -errno;
	address = mmap(NULL, (size_t)info.max_entries * value_size, PROT_READ, MAP_SHARED, fd, 0);
	if (address == MAP_FAILED)
		return -errno;
	*out = address;
	*entries = info.max_entries;
	return 0;
}

int flowtable_open(const struct maps *maps, struct flowtable *out)
{
	struct flowtable table = {.maps = maps};
	const void *address = NULL;
	int ret = map_array(maps->flows, sizeof(*table.buckets), &address, &table.n_buckets);

	if (ret)
		return ret;
	table.buckets = address;
	ret = map_array(maps->backends, sizeof(*table.backends), &address, &table.n_backends);
	if (ret) {
		flowtable_close(&table);
		return ret;
	}
	table.backends = address;
	*out = table;
	return 0;
}

void flowtable_close(struct flowtable *table)
{
	if (table->buckets)
		munmap((void *)table->buckets, (size_t)table->n_buckets * sizeof(*table->buckets));
	if (table->backends)
		munmap((void *)table->backends, (size_t)table->n_backends * sizeof(*table->backends));
	table->buckets = NULL;
	table->backends = NULL;
}

static bool same_table(const struct shunt_table *a, const struct shunt_table *b)
{
	return a->epoch == b->epoch && a->phase == b->phase && a->ranges == b->ranges && a->slots == b->slots;
}

int flowtable_pool(const struct flowtable *table, enum shunt_table_class class, uint32_t pool, struct published *out)
{
	for (int i = 0; i < TRIES; i++) {
		struct published first, second;
		int ret = published_read(table->maps, class, pool, &first);

		if (ret)
			return ret;
		/* Ranges are replaced in turn: those of two tables later have the place of these. */
		ret = published_read(table->maps, class, pool, &second);
		if (!ret) {
			transit_free(&second.transit);
			if (same_table(&first.header, &second.header)) {
				*out = first;
				return 0;
			}
		}
		transit_free(&first.transit);
		if (ret)
			return ret;
	}
	return -EAGAIN;
}

/* ---- entries ---- */

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void describe(const struct flowtable *table, const struct published *published, uint64_t word,
		     struct flowtable_entry *out)
{
	uint64_t limits = published->header.limits;
	uint32_t shift = SHUNT_FLOW_IS_UDP(word) ? SHUNT_LIMITS_UDP_SHIFT(limits) : SHUNT_LIMITS_TCP_SHIFT(limits);

	out->pool = published->header.pool;
	out->owner = published->transit.owner[out->slot] & SHUNT_BACKEND_NONE;
	out->base = published->transit.base[out->slot] & SHUNT_BACKEND_NONE;
	out->word = word;
	out->idle_ms = ((uint64_t)transit_age(word, limits, clock_ns()) << shift) / NS_PER_MS;
	out->stale = !transit_valid(word, table->backends, table->n_backends);
}

/* The entry at a place of the flow table, if there is one. */
static bool entry_at(const struct flowtable *table, const struct published *published, struct flowtable_entry *entry)
{
	uint64_t word;

	if (entry->bucket >= table->n_buckets)
		return false;
	word = __atomic_load_n(&table->buckets[entry->bucket].word[entry->place], __ATOMIC_RELAXED);
	if (!SHUNT_FLOW_FP(word))
		return false;
	describe(table, published, word, entry);
	return true;
}

static struct flowtable_entry own_place(const struct published *published, uint32_t slot)
{
	uint32_t number = published->transit.own + slot;

	return (struct flowtable_entry){
		.slot = slot, .bucket = number / SHUNT_FLOW_WAYS, .place = number % SHUNT_FLOW_WAYS};
}

static void each_of_slot(const struct flowtable *table, const struct published *published, uint32_t slot,
			 flowtable_fn *fn, void *arg)
{
	uint32_t range = published->transit.range[slot];
	struct flowtable_entry own = own_place(published, slot);
	bool has_own = published->transit.own && entry_at(table, published, &own);

	if (has_own && own.bucket < SHUNT_RANGE_START(range))
		fn(&own, arg);
	for (uint32_t i = 0; i < 1u << SHUNT_RANGE_LOG2(range); i++) {
		uint32_t bucket = SHUNT_RANGE_START(range) + i;

		for (uint32_t place = 0; place < SHUNT_FLOW_WAYS; place++) {
			struct flowtable_entry entry = {.slot = slot, .bucket = bucket, .place = place};

			if (entry_at(table, published, &entry))
				fn(&entry, arg);
		}
	}
	if (has_own && own.bucket > SHUNT_RANGE_START(range))
		fn(&own, arg);
}

static int each_of_pool(const struct flowtable *table, enum shunt_table_class class, uint32_t pool, flowtable_fn *fn,
			void *arg)
{
	struct published published;
	int ret = flowtable_pool(table, class, pool, &published);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	for (uint32_t slot = 0; slot < published.transit.slots; slot++)
		if (published.transit.range[slot])
			each_of_slot(table, &published, slot, fn, arg);
	transit_free(&published.transit);
	return 0;
}

int flowtable_each(const struct flowtable *table, flowtable_fn *fn, void *arg)
{
	int ret = 0;

	/* A pool has a table of one class; of two for the moment in which its size changes. */
	for (uint32_t pool = 0; pool < table->maps->meta.pools; pool++)
		for (int class = 0; class < SHUNT_NR_TABLE_CLASSES && !ret; class ++)
			if (maps_inner_exists(table->maps, (enum maps_inner) class, pool))
				ret = each_of_pool(table, (enum shunt_table_class) class, pool, fn, arg);
	return ret;
}

bool flowtable_find(const struct flowtable *table, const struct published *published, uint32_t slot, uint64_t hash,
		    bool udp, struct flowtable_entry *out)
{
	uint32_t range = published->transit.range[slot], fp = shunt_flow_fp(hash, udp);
	const uint32_t choices[] = {shunt_flow_first(hash, range), shunt_flow_second(hash, range)};

	struct flowtable_entry entry = own_place(published, slot);
	bool found = range && published->transit.own && entry_at(table, published, &entry) &&
		     SHUNT_FLOW_FP(entry.word) == fp;

	for (uint32_t i = 0; range && !found && i < 2 * SHUNT_FLOW_WAYS; i++) {
		entry = (struct flowtable_entry){
			.slot = slot, .bucket = choices[i / SHUNT_FLOW_WAYS], .place = i % SHUNT_FLOW_WAYS};
		found = entry_at(table, published, &entry) && SHUNT_FLOW_FP(entry.word) == fp;
	}
	if (found)
		*out = entry;
	return found;
}
