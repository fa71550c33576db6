/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is due: slots in transition come to rest, drains end, and path MTUs are restored. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "engine_internal.h"
#include "kernel.h"

#define SCAN_MIN_MS 1000u
#define SCAN_MAX_MS 60000u /* at most 60 units of age, which are a second or more */
#define SCAN_DRAIN_MS 5000u
#define SCANS_A_SETTLE 8
#define FORMER_MS 5000u
#define FORMER_MAX 64u /* as many wait for one grace period side by side */
#define NS_PER_MS 1000000ull

/* A round over all pools. */
struct tick {
	uint64_t now, next;
	bool *cut;	/* [TRANSIT_IDS]: backends whose drain took too long */
	uint32_t n_cut; /* slots of a pool that they were base of */
	bool draining;
	/* Ranges that nobody reads any more. */
	struct {
		enum maps_inner kind;
		uint32_t index;
	} former[FORMER_MAX];
	size_t n_former;
};

static void due_at(struct tick *tick, uint64_t at)
{
	if (at < tick->next)
		tick->next = at;
}

/* ---- what the packets of a pool did ---- */

int engine_pool_stats(const struct maps *maps, uint32_t index, struct shunt_pool_stats *out)
{
	struct shunt_pool_stats *cpu = calloc((size_t)maps->n_cpus, sizeof(*cpu)), sum = {};
	int ret = cpu ? 0 : -ENOMEM;

	if (!ret && bpf_map_lookup_elem(maps->pool_stats, &index, cpu))
		ret = -errno;
	for (int i = 0; i < maps->n_cpus && !ret; i++) {
		sum.inserted += cpu[i].inserted;
		sum.refused += cpu[i].refused;
		sum.replaced += cpu[i].replaced;
		sum.base += cpu[i].base;
		if (cpu[i].lost_at > sum.lost_at)
			sum.lost_at = cpu[i].lost_at;
	}
	free(cpu);
	if (!ret)
		*out = sum;
	return ret;
}

static int watch_stats(struct engine *engine, uint32_t index, uint64_t now, struct shunt_pool_stats *stats)
{
	struct watch *watch = &engine->pinned.watches[index];
	int ret = engine_pool_stats(&engine->pinned.maps, index, stats);

	if (ret)
		return ret;
	if (watch->base_at && now > watch->base_at && stats->base >= watch->base)
		watch->base_rate = 1000.0 * (double)(stats->base - watch->base) / (double)(now - watch->base_at);
	watch->base = stats->base;
	watch->base_at = now;
	return 0;
}

static uint32_t settle_ms(const struct model_pool *pool, uint64_t limits)
{
	uint64_t fits = transit_settle_ms(limits);

	/* In a transition units stay as they are, and entries do not live longer than they can tell. */
	return fits < pool->settle ? (uint32_t)fits : pool->settle;
}

struct transit_times engine_times(const struct model_pool *pool, const struct shunt_pool_stats *stats, uint64_t limits,
				  uint64_t now)
{
	uint32_t settle = settle_ms(pool, limits);

	return (struct transit_times){
		.now = (uint32_t)(now / ENGINE_T0_MS),
		.learn = pool->learn / ENGINE_T0_MS,
		.settle = settle / ENGINE_T0_MS,
		.blocked = stats->lost_at && now < stats->lost_at / NS_PER_MS + settle,
	};
}

/* ---- slots ---- */

static uint64_t scan_interval(const struct model_pool *pool, bool draining)
{
	uint64_t interval = pool->settle / SCANS_A_SETTLE, most = draining ? SCAN_DRAIN_MS : SCAN_MAX_MS;

	return interval < SCAN_MIN_MS ? SCAN_MIN_MS : interval > most ? most : interval;
}

static int rewrite(struct engine *engine, const struct model_pool *pool, const struct state_pool *ids,
		   struct published *published)
{
	enum shunt_table_class class = engine_table_class(pool->slots);
	struct shunt_table header = published->header;
	int ret;

	header.phase++;
	header.flags = transit_tracked(&published->transit) ? SHUNT_TABLE_IN_TRANSITION : 0;
	if (!header.flags)
		header.limits = 0;
	ret = engine_prepare_transit(&engine->pinned, class, &header, &published->transit, NULL);
	if (!ret)
		ret = engine_publish_transit(&engine->pinned, class, &header, &published->transit);
	if (ret)
		return ret;
	published->header = header;
	pinned_table(&engine->pinned, class, ids->index)->header = header;
	engine->copy_stale = true;
	engine_count_slots(&engine->pinned, ids, pool->n_backends, &published->transit);
	return 0;
}

/* Base of slots whose base took too long to drain becomes the owner. */
static uint32_t cut_bases(const struct tick *tick, const struct state_pool *ids, size_t n, struct transit *transit)
{
	uint32_t changed = 0;

	for (size_t i = 0; i < n; i++)
		if (tick->cut[ids->backends[i].id])
			changed += transit_removed(transit, ids->backends[i].id);
	return changed;
}

/* Scan, and let slots come to rest that are clean. */
static int scan_and_untrack(struct engine *engine, const struct model_pool *pool, const struct state_pool *ids,
			    struct published *published, const struct tick *tick)
{
	const struct scan_options options = {.now = tick->now, .cut = tick->cut};
	bool *dirty = calloc(published->transit.slots + 1ul, sizeof(*dirty));
	int ret = dirty ? 0 : -ENOMEM;

	for (size_t i = 0; i < pool->n_backends && !ret; i++)
		engine->pinned.entries[ids->backends[i].id] = 0;
	if (!ret) {
		engine_scan_pool(engine, ids->index, published, &options, dirty);
		if (transit_untrack(&published->transit, dirty))
			ret = rewrite(engine, pool, ids, published);
	}
	free(dirty);
	return ret;
}

/* The pool is at rest: whatever is left of entries, no packet reads it. */
static void forget_entries(struct engine *engine, const struct model_pool *pool, const struct state_pool *ids)
{
	struct watch *watch = &engine->pinned.watches[ids->index];

	for (size_t i = 0; i < pool->n_backends; i++)
		engine->pinned.entries[ids->backends[i].id] = 0;
	memset(watch->entries, 0, sizeof(watch->entries));
	watch->forced = 0;
	watch->scanned = 0;
	watch->base_at = 0;
	watch->base_rate = 0;
}

/*
 * The ranges of the table before: nobody reads them, and they are as large as those in force.  They go when no change
 * has come for a while: who waits for one should not wait for a grace period more.
 */
static void find_former_ranges(struct pinned *pinned, const struct published *published, struct tick *tick)
{
	enum maps_inner kind = published_ranges(engine_table_class(published->transit.slots));
	const struct shunt_table *header = &published->header;
	struct watch *watch = &pinned->watches[header->pool];
	uint32_t former = header->ranges ^ 1;

	if (!maps_inner_exists(&pinned->maps, kind, former))
		return;
	if (watch->former_epoch != header->epoch || watch->former_phase != header->phase || !watch->former) {
		watch->former = tick->now;
		watch->former_epoch = header->epoch;
		watch->former_phase = header->phase;
	}
	if (tick->now < watch->former + FORMER_MS) {
		due_at(tick, watch->former + FORMER_MS);
	} else if (tick->n_former == FORMER_MAX) {
		due_at(tick, tick->now + SCAN_MIN_MS);
	} else {
		tick->former[tick->n_former].kind = kind;
		tick->former[tick->n_former++].index = former;
	}
}

struct removing {
	const struct maps *maps;
	const struct tick *tick;
};

static int remove_step(void *arg, size_t i)
{
	const struct removing *removing = arg;

	return maps_inner_remove(removing->maps, removing->tick->former[i].kind, removing->tick->former[i].index);
}

static int remove_former_ranges(const struct maps *maps, const struct tick *tick, struct report *report)
{
	struct removing removing = {maps, tick};
	size_t failed;
	int ret = engine_side_by_side(tick->n_former, tick->n_former, remove_step, &removing, &failed);

	return ret ? kernel_error(report, ret, "cannot remove the ranges of a table that was replaced") : 0;
}

static int work_on(struct engine *engine, const struct model_pool *pool, const struct state_pool *ids,
		   struct published *published, struct tick *tick)
{
	struct watch *watch = &engine->pinned.watches[ids->index];
	uint64_t interval = scan_interval(pool, tick->draining);
	struct transit_times times;
	struct transit_done done;
	uint32_t due;
	struct shunt_pool_stats stats;
	int ret = watch_stats(engine, ids->index, tick->now, &stats);

	if (ret)
		return ret;
	times = engine_times(pool, &stats, published->header.limits, tick->now);
	done = transit_pass(&published->transit, &times);
	watch->forced += done.forced;
	tick->n_cut = cut_bases(tick, ids, pool->n_backends, &published->transit);
	if (done.learned || done.settled || tick->n_cut)
		ret = rewrite(engine, pool, ids, published);
	if (!ret && (done.settled || tick->n_cut || !watch->scanned || tick->now >= watch->scanned + interval))
		ret = scan_and_untrack(engine, pool, ids, published, tick);
	if (!ret && !published->header.flags)
		forget_entries(engine, pool, ids);
	if (ret || !published->header.flags)
		return ret;
	find_former_ranges(&engine->pinned, published, tick);
	due = transit_due(&published->transit, &times);
	if (due != UINT32_MAX)
		due_at(tick, tick->now + (due ? due : 1) * (uint64_t)ENGINE_T0_MS);
	due_at(tick, watch->scanned + interval);
	return 0;
}

static int work_on_pool(struct engine *engine, size_t at, struct tick *tick, struct report *report)
{
	const struct model_pool *pool = &engine->state.model->pools[at];
	const struct state_pool *ids = &engine->state.pools[at];
	enum shunt_table_class class = engine_table_class(pool->slots);
	struct published published;
	int ret;

	if (ids->index >= engine->pinned.maps.meta.pools ||
	    !engine_in_transition(pinned_table(&engine->pinned, class, ids->index)))
		return 0;
	ret = published_read(&engine->pinned.maps, class, ids->index, &published);
	if (!ret) {
		ret = published.transit.slots == pool->slots ? work_on(engine, pool, ids, &published, tick) : 0;
		transit_free(&published.transit);
	}
	if (!ret && tick->n_cut)
		report_add(report, REPORT_WARNING, 0, 0,
			   "pool %s: drain-timeout is over: %u slots go to their owners with the connections that are "
			   "left, which break",
			   pool->name, tick->n_cut);
	tick->n_cut = 0;
	return ret ? kernel_error(report, ret, "cannot go on with the transition of pool %s", pool->name) : 0;
}

/* ---- drains ---- */

/*
 * When a drain began.  What is kept over a restart is by CLOCK_REALTIME, which is looked at once: when that clock is
 * set later, connections neither lose their time nor get more.
 */
static int64_t drain_began(struct state_backend *ids, uint64_t now)
{
	uint64_t realtime = (uint64_t)time(NULL);

	if (ids->drain_seen != ids->draining) {
		ids->drain_seen = ids->draining;
		ids->drain_began = (int64_t)now;
		if (realtime > ids->draining)
			ids->drain_began -= (int64_t)(realtime - ids->draining) * 1000;
	}
	return ids->drain_began;
}

/* Marks what took too long. */
static void look_at_drains(struct engine *engine, struct tick *tick)
{
	const struct model *model = engine->state.model;

	for (size_t i = 0; i < model->n_pools; i++) {
		for (size_t j = 0; j < model->pools[i].n_backends; j++) {
			struct state_backend *ids = &engine->state.pools[i].backends[j];
			int64_t end;

			if (!ids->draining)
				continue;
			tick->draining = true;
			if (ids->maintenance)
				continue;
			end = drain_began(ids, tick->now) + (int64_t)model->pools[i].drain_timeout;
			if ((int64_t)tick->now >= end)
				tick->cut[ids->id] = true;
			else
				due_at(tick, (uint64_t)end);
		}
	}
}

static int tick_pools(struct engine *engine, struct tick *tick, struct report *report)
{
	int ret = 0, lock = engine_lock(engine, report);

	if (lock < 0)
		return lock;
	due_at(tick, engine_restore_paths(engine, tick->now));
	if (!engine->scan_owed || !engine_pay_scan(engine)) {
		for (size_t i = 0; i < engine->state.model->n_pools && !ret; i++)
			ret = work_on_pool(engine, i, tick, report);
	}
	if (!ret && tick->n_former)
		ret = remove_former_ranges(&engine->pinned.maps, tick, report);
	close(lock);
	return ret;
}

int engine_tick(struct engine *engine, uint64_t now, uint64_t *next, struct report *report)
{
	struct tick tick = {.now = now, .next = UINT64_MAX, .cut = calloc(TRANSIT_IDS, sizeof(bool))};
	int ret = tick.cut ? 0 : -ENOMEM;

	if (!ret && engine->state.model) {
		look_at_drains(engine, &tick);
		ret = tick_pools(engine, &tick, report);
		if (!ret)
			engine_save_copy(engine);
	}
	free(tick.cut);
	*next = ret ? now + SCAN_MIN_MS : tick.next;
	return ret;
}
