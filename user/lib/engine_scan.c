/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Scans of the flow table, and the copy of transitions in the state directory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine_internal.h"

#define NS_PER_MS 1000000ull

void engine_scan_pool(struct engine *engine, uint32_t index, const struct published *published,
		      const struct scan_options *options, bool *dirty)
{
	struct pinned *pinned = &engine->pinned;
	struct watch *watch = &pinned->watches[index];
	const struct transit_scan scan = {
		.buckets = pinned->flows,
		.backends = pinned->backends,
		.n_backends = pinned->maps.meta.backends,
		.limits = published->header.limits,
		.clock = options->now * NS_PER_MS,
		.called = options->called,
		.cut = options->cut,
		.of_backend = pinned->entries,
		.of_status = watch->entries,
	};

	memset(watch->entries, 0, sizeof(watch->entries));
	watch->scanned = options->now;
	transit_scan(&published->transit, &scan, dirty);
}

typedef int live_fn(struct engine *engine, uint32_t index, const struct published *published, void *arg);

/* Each table of which slots are in transition, read back. */
static int each_in_transition(struct engine *engine, live_fn *fn, void *arg)
{
	const struct pinned *pinned = &engine->pinned;
	uint32_t pools = pinned->maps.meta.pools;
	int ret = 0;

	for (size_t i = 0; i < (size_t)SHUNT_NR_TABLE_CLASSES * pools && !ret; i++) {
		struct published published;

		if (!engine_in_transition(&pinned->tables[i]))
			continue;
		ret = published_read(&pinned->maps, (enum shunt_table_class)(i / pools), (uint32_t)(i % pools),
				     &published);
		if (ret)
			break;
		ret = fn(engine, (uint32_t)(i % pools), &published, arg);
		transit_free(&published.transit);
	}
	return ret;
}

static int scan_one(struct engine *engine, uint32_t index, const struct published *published, void *arg)
{
	engine_scan_pool(engine, index, published, arg, NULL);
	return 0;
}

int engine_scan_all(struct engine *engine, const struct scan_options *options)
{
	struct pinned *pinned = &engine->pinned;

	memset(pinned->entries, 0, pinned->maps.meta.backends * sizeof(*pinned->entries));
	return each_in_transition(engine, scan_one, (void *)options);
}

int engine_pay_scan(struct engine *engine)
{
	const struct scan_options options = {.now = engine_clock_ms()};
	bool needed = false;
	int ret;

	if (!engine->scan_owed)
		return 0;
	for (size_t i = 0; i < (size_t)SHUNT_NR_TABLE_CLASSES * engine->pinned.maps.meta.pools; i++)
		needed |= engine_in_transition(&engine->pinned.tables[i]);
	/* A packet that read the state of before may still leave an entry; not one of before this process. */
	ret = needed && engine->grace_owed ? pinned_grace(&engine->pinned) : 0;
	if (ret)
		return ret;
	engine->grace_owed = false;
	if (needed)
		ret = engine_scan_all(engine, &options);
	engine->scan_owed = ret;
	return ret;
}

/* ---- the copy ---- */

static int copy_one(struct engine *engine, uint32_t index, const struct published *published, void *arg)
{
	(void)engine;
	return transit_copy_add(arg, index, &published->transit, engine_clock_ms());
}

int engine_save_copy(struct engine *engine)
{
	struct transit_copy *copy;
	int ret;

	if (!engine->copy_stale || !engine->state_dir)
		return 0;
	ret = transit_copy_new(&copy);
	if (ret)
		return ret;
	ret = each_in_transition(engine, copy_one, copy);
	if (!ret)
		ret = transit_copy_save(copy, engine->state_dir);
	transit_copy_free(copy);
	engine->copy_stale = ret;
	return ret;
}
