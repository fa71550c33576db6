/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Connections through changes: what becomes of slots in the maps, in time, over restarts, and when backends drain. */
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <shunt/flow.h>

#include "view.h"

#define SETTLE (130 * 60000ull) /* milliseconds: the default */
#define LEARN 30000ull

static int64_t clock_is_set; /* seconds, for whoever asks time() */

time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += clock_is_set;
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* As if the time were `ms` later. */
static uint64_t tick(struct fixture *f, uint64_t ms)
{
	struct report report = {};
	const struct origin origin = {};
	uint64_t now = now_ms() + ms, next;
	size_t deleted;

	if (engine_tick(f->engine, now, &next, &report) || engine_delete_drained(f->engine, &origin, &deleted, &report))
		fail_msg("engine_tick: %s", report_text(&report));
	report_free(&report);
	assert_true(next == UINT64_MAX || next > now);
	return next == UINT64_MAX ? next : next - now;
}

static struct view look(struct fixture *f)
{
	struct view view;

	assert_true(view_read(f, &view));
	view_check(&view);
	return view;
}

static void start(struct fixture *f, uint32_t n)
{
	struct want want = want_simple(n);

	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	assert_int_equal(apply(f, &want), 0);
	tick(f, 2 * SETTLE); /* the first ways to be known moved slots */
	tick(f, 2 * SETTLE);
	assert_int_equal(pool_info(f, "p0").tracked, 0);
}

static struct shunt_flow_bucket *flows(struct fixture *f, struct view *view)
{
	size_t size = SHUNT_FLOW_BUCKETS((size_t)view->maps.meta.flows) * sizeof(struct shunt_flow_bucket);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, view->maps.flows, 0);

	(void)f;
	assert_true(at != MAP_FAILED);
	return at;
}

static uint32_t id_of(struct fixture *f, const char *name)
{
	return backend_info(f, "p0", name).id;
}

static uint32_t first_with_base(const struct view_table *table, uint32_t base)
{
	for (uint32_t i = 0; i < table->header.slots; i++)
		if (table->tracked[i] && table->base[i] == base && table->owner[i] != base)
			return i;
	fail_msg("no slot has base %u", base);
	return 0;
}

static void test_weight_moves_owners_alone(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct view before, after;
	const struct view_table *a, *b;
	uint32_t moved = 0;

	start(f, 4);
	before = look(f);
	want.pools[0].backends[0].weight = 3;
	assert_int_equal(apply(f, &want), 0);
	after = look(f);
	a = view_table(&before, 0);
	b = view_table(&after, 0);
	for (uint32_t i = 0; i < 251; i++) {
		assert_int_equal(b->tracked[i], a->owner[i] != b->owner[i]);
		assert_int_equal(b->base[i], a->owner[i]);
		assert_int_equal(b->learn[i], b->tracked[i]);
		assert_int_equal(b->range[i] != 0, b->tracked[i]);
		moved += b->tracked[i];
	}
	assert_true(moved > 60);
	assert_int_equal(pool_info(f, "p0").tracked, moved);
	assert_int_equal(pool_info(f, "p0").unsettled, moved);
	assert_int_equal(pool_info(f, "p0").without, 0);
	view_free(&before);
	view_free(&after);
}

static void test_comes_to_rest(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct engine_pool_info info;
	struct view view;
	uint64_t epoch;

	start(f, 4);
	want.pools[0].backends[0].weight = 3;
	assert_int_equal(apply(f, &want), 0);
	epoch = pool_info(f, "p0").epoch;
	assert_true(tick(f, 0) <= LEARN);
	view = look(f);
	assert_true(view_table(&view, 0)->learn[first_with_base(view_table(&view, 0), id_of(f, "b01"))]);
	view_free(&view);
	tick(f, LEARN + 1000);
	view = look(f);
	for (uint32_t i = 0; i < 251; i++)
		assert_false(view_table(&view, 0)->learn[i]);
	view_free(&view);
	tick(f, SETTLE - 10000);
	assert_true(pool_info(f, "p0").unsettled > 0);
	assert_int_equal(tick(f, SETTLE + 1000), UINT64_MAX);
	info = pool_info(f, "p0");
	assert_int_equal(info.tracked, 0);
	assert_int_equal(info.epoch, epoch); /* owners are as they were */
	assert_true(info.phase > 0);
	view = look(f);
	assert_null(view_table(&view, 0)->range);
	view_free(&view);
}

/* An entry that disagrees keeps its slot tracked until it is idle; one of a settled owner does not. */
static void test_entries_keep_slots_tracked(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct shunt_flow_bucket *table;
	const struct view_table *t;
	uint32_t slot, base, other;
	uint64_t limits, *word;
	struct view view;

	start(f, 4);
	want.pools[0].backends[0].weight = 3;
	assert_int_equal(apply(f, &want), 0);
	view = look(f);
	t = view_table(&view, 0);
	table = flows(f, &view);
	base = id_of(f, "b01");
	slot = first_with_base(t, base);
	limits = t->header.limits;
	other = first_with_base(t, id_of(f, "b02"));
	word = (uint64_t *)&table[SHUNT_RANGE_START(t->range[slot])].word[3];
	*word = shunt_flow_word(78, 0, (uint32_t)((now_ms() + SETTLE) * 1000000 >> SHUNT_LIMITS_TCP_SHIFT(limits)),
				SHUNT_FLOW_LIVE, SHUNT_BACKEND_GENERATION(view.backends[base].state), base);
	table[SHUNT_RANGE_START(t->range[other])].word[0] = shunt_flow_word(
		80, 0, (uint32_t)((now_ms() + SETTLE) * 1000000 >> SHUNT_LIMITS_TCP_SHIFT(limits)), SHUNT_FLOW_LIVE,
		SHUNT_BACKEND_GENERATION(view.backends[t->owner[other]].state), t->owner[other]);
	tick(f, SETTLE + 1000);
	assert_int_equal(pool_info(f, "p0").tracked, 1);
	assert_int_equal(pool_info(f, "p0").unsettled, 0);
	assert_int_equal(backend_info(f, "p0", "b01").entries, 1);
	assert_true(*word != 0);
	tick(f, 2 * SETTLE + 3 * 69000);
	assert_int_equal(*word, 0);
	assert_int_equal(pool_info(f, "p0").tracked, 0);
	munmap(table, SHUNT_FLOW_BUCKETS((size_t)view.maps.meta.flows) * sizeof(*table));
	view_free(&view);
}

static void same_slots(const struct view *a, const struct view *b)
{
	const struct view_table *x = view_table(a, 0), *y = view_table(b, 0);

	assert_memory_equal(x->owner, y->owner, 2 * 251);
	assert_memory_equal(x->base, y->base, 2 * 251);
	assert_memory_equal(x->tracked, y->tracked, 251);
	assert_memory_equal(x->learn, y->learn, 251);
}

static void test_restart_goes_on(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct view before, after;

	start(f, 4);
	want.pools[0].backends[0].weight = 3;
	assert_int_equal(apply(f, &want), 0);
	before = look(f);
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	after = look(f);
	assert_true(view_equal(&before, &after));
	assert_memory_equal(view_table(&before, 0)->range, view_table(&after, 0)->range, 4 * 251);
	assert_memory_equal(view_table(&before, 0)->t0, view_table(&after, 0)->t0, 4 * 251);
	view_free(&after);
	fixture_close(f);
	fixture_lose_pins(f); /* a reboot */
	fixture_open(f);
	know(f, 0);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	after = look(f);
	same_slots(&before, &after);
	for (uint32_t i = 0; i < 251; i++) {
		uint32_t ages = view_table(&before, 0)->t0[i] - view_table(&after, 0)->t0[i];

		assert_true(ages + 20 <= 40); /* seconds at most, by a clock of seconds */
	}
	tick(f, SETTLE + 3000);
	assert_int_equal(pool_info(f, "p0").tracked, 0);
	view_free(&before);
	view_free(&after);
}

/* As packets do where there is no room, `ms` after now. */
static void refuse(struct fixture *f, uint64_t ms)
{
	struct view view = look(f);
	struct shunt_pool_stats *cpu = calloc((size_t)view.maps.n_cpus, sizeof(*cpu));
	uint32_t index = pool_info(f, "p0").index;

	assert_non_null(cpu);
	assert_int_equal(bpf_map_lookup_elem(view.maps.pool_stats, &index, cpu), 0);
	cpu[view.maps.n_cpus - 1].refused++;
	cpu[view.maps.n_cpus - 1].lost_at = (now_ms() + ms) * 1000000;
	assert_int_equal(bpf_map_update_elem(view.maps.pool_stats, &index, cpu, BPF_ANY), 0);
	free(cpu);
	view_free(&view);
}

static void restart(struct fixture *f)
{
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
}

/* Settling waits for a whole settle time after the last refusal, whatever became of the daemon meanwhile. */
static void test_refusals_hold_up_settling(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	uint32_t unsettled;

	start(f, 4);
	want.pools[0].backends[0].weight = 3;
	assert_int_equal(apply(f, &want), 0);
	unsettled = pool_info(f, "p0").unsettled;
	assert_false(pool_info(f, "p0").blocked);
	refuse(f, SETTLE / 2);
	assert_true(tick(f, SETTLE / 2) < SETTLE);
	assert_true(pool_info(f, "p0").blocked);
	for (int restarts = 0; restarts < 2; restarts++) {
		tick(f, SETTLE + 1000);
		assert_int_equal(pool_info(f, "p0").unsettled, unsettled);
		tick(f, SETTLE + SETTLE / 2 - 5000);
		assert_int_equal(pool_info(f, "p0").unsettled, unsettled);
		restart(f);
		assert_true(pool_info(f, "p0").blocked);
	}
	/* Neither restart began the time anew: that would be up to 2 x settle. */
	tick(f, SETTLE + SETTLE / 2 + 5000);
	assert_int_equal(pool_info(f, "p0").unsettled, 0);
	assert_int_equal(pool_info(f, "p0").forced, 0);
	/* Old refusals say nothing of the next transition, after a restart either. */
	tick(f, 3 * SETTLE);
	want.pools[0].backends[0].weight = 1;
	restart(f);
	assert_int_equal(apply(f, &want), 0);
	assert_true(pool_info(f, "p0").unsettled > 0);
}

/* Refused again and again: at most four times as long, and then it is told. */
static void test_refusals_hold_up_settling_no_longer_than_the_cap(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct shunt_flow_bucket *table;
	const struct view_table *t;
	uint32_t unsettled, base;
	uint64_t *word;
	struct view view;

	start(f, 4);
	want.pools[0].backends[0].weight = 3;
	assert_int_equal(apply(f, &want), 0);
	unsettled = pool_info(f, "p0").unsettled;
	for (uint64_t ms = SETTLE / 2; ms < 4 * SETTLE - 5000; ms += SETTLE / 2) {
		refuse(f, ms);
		tick(f, ms);
		assert_int_equal(pool_info(f, "p0").unsettled, unsettled);
	}
	/* An entry that disagrees keeps its slot in transition, so that what happened can still be told. */
	view = look(f);
	t = view_table(&view, 0);
	table = flows(f, &view);
	base = id_of(f, "b01");
	word = (uint64_t *)&table[SHUNT_RANGE_START(t->range[first_with_base(t, base)])].word[3];
	*word = shunt_flow_word(
		78, 0, (uint32_t)((now_ms() + 4 * SETTLE) * 1000000 >> SHUNT_LIMITS_TCP_SHIFT(t->header.limits)),
		SHUNT_FLOW_LIVE, SHUNT_BACKEND_GENERATION(view.backends[base].state), base);
	refuse(f, 4 * SETTLE);
	tick(f, 4 * SETTLE - 5000);
	assert_int_equal(pool_info(f, "p0").unsettled, unsettled);
	assert_int_equal(pool_info(f, "p0").forced, 0);
	tick(f, 4 * SETTLE + 1000);
	assert_int_equal(pool_info(f, "p0").unsettled, 0);
	assert_int_equal(pool_info(f, "p0").forced, unsettled);
	assert_int_equal(pool_info(f, "p0").tracked, 1);
	munmap(table, SHUNT_FLOW_BUCKETS((size_t)view.maps.meta.flows) * sizeof(*table));
	view_free(&view);
}

/* A reboot takes the entries, so that the connections of base are known by their base alone: settle begins anew. */
static void test_reboot_holds_up_settling(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	uint32_t unsettled;

	start(f, 4);
	want.pools[0].backends[0].weight = 3;
	assert_int_equal(apply(f, &want), 0);
	unsettled = pool_info(f, "p0").unsettled;
	sleep(4); /* t0 comes back by a clock of seconds */
	fixture_close(f);
	fixture_lose_pins(f);
	fixture_open(f);
	know(f, 0);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	assert_true(pool_info(f, "p0").blocked);
	restart(f);
	tick(f, SETTLE - 1000);
	assert_int_equal(pool_info(f, "p0").unsettled, unsettled);
	tick(f, SETTLE + 1000);
	assert_int_equal(pool_info(f, "p0").unsettled, 0);
}

static void test_drain_and_undrain(void **state)
{
	struct fixture *f = *state;
	struct view view;
	uint32_t slots, id;

	start(f, 4);
	id = id_of(f, "b02");
	slots = backend_info(f, "p0", "b02").slots;
	assert_true(slots > 50);
	assert_int_equal(engine_drain(f->engine, "p0", "b02", ENGINE_DRAIN, NULL, NULL), 0);
	assert_int_equal(backend_info(f, "p0", "b02").slots, 0);
	assert_int_equal(backend_info(f, "p0", "b02").bases, slots);
	assert_true(backend_info(f, "p0", "b02").draining > 1600000000);
	view = look(f);
	assert_int_equal(view.backends[id].state & 7, 7);
	view_free(&view);
	/* It is an operator's decision: neither a restart nor another document takes it back. */
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	assert_true(backend_info(f, "p0", "b02").draining);
	assert_int_equal(backend_info(f, "p0", "b02").bases, slots);
	assert_int_equal(engine_drain(f->engine, "p0", "b02", ENGINE_UNDRAIN, NULL, NULL), 0);
	assert_int_equal(backend_info(f, "p0", "b02").slots, slots);
	assert_int_equal(backend_info(f, "p0", "b02").bases, 0);
	view = look(f);
	assert_int_equal(view.backends[id].state & 7, 3);
	view_free(&view);
	/* A -> B -> A: tracked until a scan finds nothing. */
	assert_true(pool_info(f, "p0").tracked >= slots);
	assert_int_equal(pool_info(f, "p0").unsettled, 0);
	tick(f, 61000);
	assert_int_equal(pool_info(f, "p0").tracked, 0);
	assert_int_equal(engine_drain(f->engine, "p0", "nobody", ENGINE_DRAIN, NULL, NULL), -2);
}

/* A clock that is set, by hand or when the network comes up, ends no drain, nor does it keep one from ending. */
static void test_the_clock_is_set_during_a_drain(void **state)
{
	const int64_t day = 86400;
	struct fixture *f = *state;
	uint32_t slots;

	start(f, 4);
	slots = backend_info(f, "p0", "b02").slots;
	assert_int_equal(engine_drain(f->engine, "p0", "b02", ENGINE_DRAIN, NULL, NULL), 0);
	tick(f, 0);
	for (int64_t set = -2; set <= 2; set++) {
		clock_is_set = set * day;
		tick(f, 0);
		assert_int_equal(backend_info(f, "p0", "b02").bases, slots);
	}
	/* Over a restart it is all there is: what is past is past, what is to come began now. */
	clock_is_set = -2 * day;
	restart(f);
	tick(f, 0);
	assert_int_equal(backend_info(f, "p0", "b02").bases, slots);
	clock_is_set = 2 * day;
	restart(f);
	tick(f, 0);
	assert_int_equal(backend_info(f, "p0", "b02").bases, 0);
	clock_is_set = 0;
}

static void test_leaves_when_drained(void **state)
{
	struct fixture *f = *state;
	struct view view;
	uint32_t id;

	start(f, 4);
	id = id_of(f, "b02");
	assert_int_equal(engine_drain(f->engine, "p0", "b02", ENGINE_LEAVE, NULL, NULL), 0);
	tick(f, SETTLE - 5000);
	assert_true(backend_info(f, "p0", "b02").leaving);
	tick(f, SETTLE + 1000);
	assert_null(model_backend(model_pool(engine_model(f->engine), "p0"), "b02"));
	view = look(f);
	assert_int_equal(view.backends[id].state & 7, 0);
	view_free(&view);
}

/* Removal without a drain: what it was base of goes to the owners, and entries that name it are deleted. */
static int note_connections(const struct engine_pool_change *pools, size_t n, void *arg, struct report *report)
{
	uint64_t *connections = arg;

	(void)report;
	for (size_t i = 0; i < n; i++)
		*connections += pools[i].connections;
	return 0;
}

/* A plan says how many recorded connections the slots have that move: of their owners, not of others. */
static void test_plan_counts_connections(void **state)
{
	uint64_t connections = 0;
	const struct engine_change plan = {.dry_run = true, .judge = note_connections, .judge_arg = &connections};
	struct fixture *f = *state;
	struct shunt_flow_bucket *table;
	const struct view_table *t;
	struct view view;
	uint32_t slot, owner, other;
	uint64_t limits;

	start(f, 4);
	other = id_of(f, "b02");
	assert_int_equal(engine_drain(f->engine, "p0", "b02", ENGINE_DRAIN, NULL, NULL), 0);
	view = look(f);
	t = view_table(&view, 0);
	limits = t->header.limits;
	slot = first_with_base(t, other);
	owner = t->owner[slot];
	table = flows(f, &view);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t id = i < 2 ? owner : other;

		table[SHUNT_RANGE_START(t->range[slot])].word[i] =
			shunt_flow_word(78 + i, 0, (uint32_t)(now_ms() * 1000000 >> SHUNT_LIMITS_TCP_SHIFT(limits)),
					SHUNT_FLOW_LIVE, SHUNT_BACKEND_GENERATION(view.backends[id].state), id);
	}
	for (uint32_t i = 0; i < 4; i++) {
		char name[8];

		snprintf(name, sizeof(name), "b%02u", i);
		connections = 0;
		if (i == 2)
			continue;
		assert_int_equal(engine_drain(f->engine, "p0", name, ENGINE_DRAIN, &plan, NULL), 0);
		assert_int_equal(connections, id_of(f, name) == owner ? 2 : 0);
	}
	munmap(table, SHUNT_FLOW_BUCKETS((size_t)view.maps.meta.flows) * sizeof(*table));
	view_free(&view);
}

static void test_removed_at_once(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct shunt_flow_bucket *table;
	struct view view;
	uint32_t id, slot;
	uint64_t *word;

	start(f, 4);
	id = id_of(f, "b02");
	assert_int_equal(engine_drain(f->engine, "p0", "b02", ENGINE_DRAIN, NULL, NULL), 0);
	view = look(f);
	slot = first_with_base(view_table(&view, 0), id);
	table = flows(f, &view);
	word = (uint64_t *)&table[SHUNT_RANGE_START(view_table(&view, 0)->range[slot])].word[0];
	*word = shunt_flow_word(
		78, 0, (uint32_t)(now_ms() * 1000000 >> SHUNT_LIMITS_TCP_SHIFT(view_table(&view, 0)->header.limits)),
		SHUNT_FLOW_LIVE, SHUNT_BACKEND_GENERATION(view.backends[id].state), id);
	view_free(&view);
	want.pools[0].backends[2].present = false;
	assert_int_equal(apply(f, &want), 0);
	assert_int_equal(*word, 0);
	view = look(f);
	for (uint32_t i = 0; i < 251; i++) {
		assert_true(view_table(&view, 0)->base[i] != id);
		assert_true(view_table(&view, 0)->owner[i] != id);
	}
	munmap(table, SHUNT_FLOW_BUCKETS((size_t)view.maps.meta.flows) * sizeof(*table));
	view_free(&view);
	tick(f, 61000);
	assert_int_equal(pool_info(f, "p0").tracked, pool_info(f, "p0").unsettled);
	assert_true(pool_info(f, "p0").tracked < 20); /* what maglev moves besides */
}

static uint64_t *own_word(struct shunt_flow_bucket *table, const struct view_table *t, uint32_t slot)
{
	return (uint64_t *)shunt_flow_place(table, t->header.own + slot);
}

/* Used `ms` from now. */
static uint64_t live_entry(const struct view *view, const struct view_table *t, uint32_t backend, uint64_t ms)
{
	uint32_t shift = SHUNT_LIMITS_TCP_SHIFT(t->header.limits);

	return shunt_flow_word(78, 0, (uint32_t)((now_ms() + ms) * 1000000 >> shift), SHUNT_FLOW_LIVE,
			       SHUNT_BACKEND_GENERATION(view->backends[backend].state), backend);
}

/* A slot's own word is scanned and counted as its range is, and empty when the slot comes to be tracked again. */
static void test_own_words(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct shunt_flow_bucket *table;
	const struct view_table *t;
	struct view view, again;
	uint32_t kept, other, base;
	uint64_t entry;

	start(f, 4);
	want.pools[0].backends[0].weight = 3;
	assert_int_equal(apply(f, &want), 0);
	view = look(f);
	t = view_table(&view, 0);
	assert_true(t->header.own && t->header.own % SHUNT_FLOW_WAYS == 0);
	table = flows(f, &view);
	base = id_of(f, "b01");
	kept = first_with_base(t, base);
	other = first_with_base(t, id_of(f, "b02"));
	assert_int_equal(*own_word(table, t, kept), 0);
	*own_word(table, t, kept) = live_entry(&view, t, base, SETTLE);
	tick(f, SETTLE + 1000);
	assert_int_equal(pool_info(f, "p0").tracked, 1);
	assert_int_equal(pool_info(f, "p0").range_buckets, 32 + (1 << SHUNT_RANGE_LOG2(t->range[kept])));
	assert_int_equal(backend_info(f, "p0", "b01").entries, 1);
	entry = live_entry(&view, t, base, 0);
	*own_word(table, t, kept) = entry;
	*own_word(table, t, other) = entry; /* as if of long ago */
	want.pools[0].backends[0].weight = 1;
	assert_int_equal(apply(f, &want), 0);
	again = look(f);
	assert_int_equal(view_table(&again, 0)->header.own, t->header.own);
	assert_true(view_table(&again, 0)->tracked[other]);
	assert_int_equal(*own_word(table, t, other), 0);
	assert_int_equal(*own_word(table, t, kept), entry);
	tick(f, 2 * SETTLE + 3 * 69000);
	tick(f, 2 * SETTLE + 3 * 69000);
	assert_int_equal(*own_word(table, t, kept), SHUNT_FLOW_USED);
	assert_int_equal(pool_info(f, "p0").tracked, 0);
	assert_int_equal(pool_info(f, "p0").range_buckets, 0);
	munmap(table, SHUNT_FLOW_BUCKETS((size_t)view.maps.meta.flows) * sizeof(*table));
	view_free(&again);
	view_free(&view);
}

static bool has_ranges(const struct view *view, uint32_t turn)
{
	return maps_inner_exists(&view->maps, MAPS_RANGES_S, SHUNT_RANGES_INDEX(0, turn));
}

/* The ranges of the table before are not kept for as long as slots are in transition. */
static void test_former_ranges_go(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct view view;
	uint32_t turn;

	start(f, 4);
	want.pools[0].backends[0].weight = 3;
	assert_int_equal(apply(f, &want), 0);
	tick(f, 0);
	want.pools[0].backends[0].weight = 5;
	assert_int_equal(apply(f, &want), 0);
	assert_true(tick(f, 0) <= 5000);
	view = look(f);
	turn = view_table(&view, 0)->header.ranges & 1;
	assert_true(has_ranges(&view, turn) && has_ranges(&view, turn ^ 1));
	tick(f, 5000);
	assert_true(has_ranges(&view, turn) && !has_ranges(&view, turn ^ 1));
	view_free(&view);
	/* And a change goes on as before. */
	want.pools[0].backends[0].weight = 1;
	assert_int_equal(apply(f, &want), 0);
	view = look(f);
	assert_int_equal(view_table(&view, 0)->header.ranges & 1, turn ^ 1);
	view_free(&view);
}

/*
 * They are given while slots are in transition already, when there was no room for them before: to those slots they say
 * that there may be entries.
 */
static void test_own_words_that_come_later(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct shunt_flow_bucket *table;
	const struct view_table *before, *after;
	struct view view, again;
	uint32_t fresh = 0;

	want.pools[1] = want_simple(1).pools[0];
	assert_int_equal(apply(f, &want), 0);
	know(f, 0);
	assert_int_equal(apply(f, &want), 0);
	tick(f, 2 * SETTLE);
	tick(f, 2 * SETTLE);
	want.pools[0].backends[0].weight = 2;
	assert_int_equal(apply(f, &want), 0);
	view = look(f);
	before = view_table(&view, 0);
	assert_true(pool_info(f, "p0").tracked && !before->header.own);
	want.pools[1].present = false;
	want.pools[0].backends[0].weight = 4;
	assert_int_equal(apply(f, &want), 0);
	again = look(f);
	after = view_table(&again, 0);
	table = flows(f, &again);
	assert_true(after->header.own);
	for (uint32_t i = 0; i < 251; i++) {
		bool came = after->tracked[i] && !before->tracked[i];

		assert_int_equal(*own_word(table, after, i), came ? 0 : SHUNT_FLOW_USED);
		fresh += came;
	}
	assert_true(fresh);
	munmap(table, SHUNT_FLOW_BUCKETS((size_t)again.maps.meta.flows) * sizeof(*table));
	view_free(&again);
	view_free(&view);
}

/* Another outer source: other ids for the same servers; neither slots nor entries lose their connections. */
static void test_other_ids_same_servers(void **state)
{
	struct fixture *f = *state;
	struct want want = want_simple(4);
	struct shunt_flow_bucket *table;
	struct view view;
	uint32_t slot, before, after;
	uint64_t *word;

	start(f, 4);
	want.pools[0].backends[0].weight = 3;
	assert_int_equal(apply(f, &want), 0);
	view = look(f);
	before = id_of(f, "b01");
	slot = first_with_base(view_table(&view, 0), before);
	table = flows(f, &view);
	word = (uint64_t *)&table[SHUNT_RANGE_START(view_table(&view, 0)->range[slot])].word[0];
	*word = shunt_flow_word(
		78, 5, (uint32_t)(now_ms() * 1000000 >> SHUNT_LIMITS_TCP_SHIFT(view_table(&view, 0)->header.limits)),
		SHUNT_FLOW_LIVE, SHUNT_BACKEND_GENERATION(view.backends[before].state), before);
	view_free(&view);
	want.pools[0].encapsulation = "type: ipip, source: [10.9.255.9]";
	assert_int_equal(apply(f, &want), 0);
	after = id_of(f, "b01");
	assert_true(after != before);
	view = look(f);
	assert_int_equal(view_table(&view, 0)->base[slot], after);
	assert_true(view_table(&view, 0)->tracked[slot]);
	assert_int_equal(SHUNT_FLOW_BACKEND(*word), after);
	assert_int_equal(SHUNT_FLOW_GENERATION(*word), SHUNT_BACKEND_GENERATION(view.backends[after].state));
	assert_int_equal(SHUNT_FLOW_ISN(*word), 5);
	munmap(table, SHUNT_FLOW_BUCKETS((size_t)view.maps.meta.flows) * sizeof(*table));
	view_free(&view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
		TEST(test_weight_moves_owners_alone),
		TEST(test_comes_to_rest),
		TEST(test_entries_keep_slots_tracked),
		TEST(test_own_words),
		TEST(test_former_ranges_go),
		cmocka_unit_test_setup_teardown(test_own_words_that_come_later, fixture_setup_small, fixture_teardown),
		TEST(test_restart_goes_on),
		TEST(test_refusals_hold_up_settling),
		TEST(test_refusals_hold_up_settling_no_longer_than_the_cap),
		TEST(test_reboot_holds_up_settling),
		TEST(test_drain_and_undrain),
		TEST(test_the_clock_is_set_during_a_drain),
		TEST(test_leaves_when_drained),
		TEST(test_plan_counts_connections),
		TEST(test_removed_at_once),
		TEST(test_other_ids_same_servers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
