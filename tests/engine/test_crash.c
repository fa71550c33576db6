/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A daemon that is killed at any moment, 200 random changes long, with reboots in between.  What packets meet is
 * checked all the while; the next start has the last acknowledged model or the one in flight, and no epoch ever goes
 * back or names two tables.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "view.h"

#define CHANGES 200
#define SEEN_MAX 8192

struct seen {
	uint32_t pool; /* of struct want */
	uint64_t epoch, digest;
};

/* What outlives the killed. */
struct shared {
	uint32_t changes, starts;
	bool in_flight;
	struct want acknowledged, trying;
	struct seen seen[SEEN_MAX];
	uint32_t n_seen;
	char failure[256]; /* a child cannot fail the test by itself */
};

static struct shared *shared;

static void child_fails(const char *what)
{
	snprintf(shared->failure, sizeof(shared->failure), "change %u: %s", shared->changes, what);
	_exit(1);
}

/* ---- the daemon ---- */

static void record(struct fixture *f)
{
	for (uint32_t i = 0; i < WANT_POOLS; i++) {
		char name[8];
		struct engine_pool_info info;
		bool known = false;

		snprintf(name, sizeof(name), "p%u", i);
		if (engine_pool_info(f->engine, name, &info) || !info.published)
			continue;
		for (uint32_t j = 0; j < shared->n_seen; j++) {
			const struct seen *seen = &shared->seen[j];

			if (seen->pool != i)
				continue;
			if (seen->epoch > info.epoch)
				child_fails("an epoch went down");
			if (seen->epoch == info.epoch && seen->digest != info.digest)
				child_fails("an epoch was used for two tables");
			known |= seen->epoch == info.epoch;
		}
		if (known)
			continue;
		if (shared->n_seen == SEEN_MAX)
			child_fails("no room to remember epochs");
		shared->seen[shared->n_seen] = (struct seen){i, info.epoch, info.digest};
		__sync_synchronize();
		shared->n_seen++;
	}
}

static const char *const encapsulations[4] = {
	NULL,
	"type: ipip, source: [10.9.255.9]",
	"type: gue, source: [10.128.0.0/16]",
	"type: l2",
};

static void change_pool(struct want_pool *pool)
{
	static const uint32_t sizes[] = {251, 1021, 4093, 65537};
	struct want_backend *backend = &pool->backends[random_below(8)];

	switch (random_below(8)) {
	case 0:
		pool->slots = sizes[random_below(4)];
		break;
	case 1:
		pool->algorithm = random_below(2) ? "maglev" : "minimal";
		break;
	case 2:
		pool->encapsulation = encapsulations[random_below(4)];
		break;
	case 3:
		backend->address = random_below(1000) | random_below(2) << 31;
		break;
	case 4:
		backend->present = !backend->present;
		break;
	default:
		backend->weight = random_below(20);
	}
}

static void change(struct want *want)
{
	uint32_t i = random_below(WANT_POOLS);

	if (!want->pools[i].slots) { /* never was: fill it */
		want->pools[i] = want_simple(6).pools[0];
		for (int j = 0; j < 8; j++)
			want->pools[i].backends[j].address = random_below(1000);
	} else if (i && !random_below(5)) {
		want->pools[i].present = !want->pools[i].present;
	}
	for (uint32_t n = random_below(3) + 1; n; n--)
		change_pool(&want->pools[i]);
	want->services[i].pool = i;
	want->services[i].ports = random_below(4);
	want->services[i].present = want->pools[i].present && random_below(4);
}

static bool model_is(struct fixture *f, const struct want *want)
{
	struct model *model = model_of(want);
	json_t *a = model_json(model, MODEL_WITH_KEY), *b = model_json(engine_model(f->engine), MODEL_WITH_KEY);
	bool equal = json_equal(a, b);

	json_decref(a);
	json_decref(b);
	model_free(model);
	return equal;
}

/* The one acknowledged, or the one in flight. */
static void check_start(struct fixture *f)
{
	if (!engine_model(f->engine)) {
		if (shared->changes)
			child_fails("an acknowledged model is gone");
		return;
	}
	if (shared->in_flight && model_is(f, &shared->trying))
		shared->acknowledged = shared->trying;
	else if (!model_is(f, &shared->acknowledged))
		child_fails("neither the model acknowledged nor the one in flight");
	shared->in_flight = false;
}

static void be_daemon(struct fixture *f)
{
	random_seed(shared->changes * 1000003ull + shared->starts++);
	fixture_open(f);
	check_start(f);
	if (engine_publish(f->engine, NULL))
		child_fails("cannot adopt");
	record(f);
	know(f, 0);
	record(f);
	while (shared->changes < CHANGES) {
		struct want want = shared->acknowledged;

		change(&want);
		shared->trying = want;
		__sync_synchronize();
		shared->in_flight = true;
		__sync_synchronize();
		if (apply(f, &want))
			child_fails("refused");
		record(f);
		shared->acknowledged = want;
		__sync_synchronize();
		shared->in_flight = false;
		shared->changes++;
		know(f, shared->changes / 8);
		record(f);
	}
	_exit(0);
}

/* ---- packets ---- */

static uint32_t inner_id(int outer, uint32_t index)
{
	uint32_t id;

	return bpf_map_lookup_elem(outer, &index, &id) ? 0 : id;
}

/*
 * One look at one table, as long as a packet takes: its owners are there while it is in force.  Returns whether it
 * was in force all the time.
 */
static bool look(const struct maps *maps, int class, uint32_t pool, void *value)
{
	static struct shunt_backend backends[VIEW_BACKENDS];
	uint32_t zero = 0, id = inner_id(maps->tables[class], pool);
	const struct shunt_table *header = value;
	const uint16_t *owner = (const uint16_t *)(header + 1), *base = owner + ((SHUNT_SLOTS_S + 3) & ~3u);
	int fd = id ? bpf_map_get_fd_by_id(id) : -1;
	bool read = fd >= 0 && !bpf_map_lookup_elem(fd, &zero, value);

	if (fd >= 0)
		close(fd);
	if (!read)
		return false;
	for (uint32_t i = 0; i < maps->meta.backends; i++)
		bpf_map_lookup_elem(maps->backends, &i, &backends[i]);
	if (inner_id(maps->tables[class], pool) != id)
		return false;
	for (uint32_t i = 0; i < header->slots; i++) {
		const uint32_t named[] = {owner[i] & SHUNT_BACKEND_NONE, base[i] & SHUNT_BACKEND_NONE};

		/* After a reboot the way to base may not be known yet. */
		for (int j = 0; j < 2; j++)
			if (named[j] != SHUNT_BACKEND_NONE && (backends[named[j]].state & 3) != 3 &&
			    (!j || backends[named[j]].state))
				fail_msg("pool %u, epoch %lu: slot %u names %u, which is not there", pool,
					 (unsigned long)header->epoch, i, named[j]);
	}
	return true;
}

static uint32_t watch(const struct fixture *f, uint32_t microseconds, void *value)
{
	struct timespec now, end;
	struct maps maps;
	uint32_t looks = 0;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += (long)microseconds * 1000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	if (maps_open_existing(f->instance, &maps, NULL)) {
		usleep(microseconds);
		return 0;
	}
	do {
		for (uint32_t pool = 0; pool < 6; pool++)
			looks += look(&maps, SHUNT_TABLE_S, pool, value);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	maps_close(&maps);
	return looks;
}

static void check_dead(const struct fixture *f)
{
	struct view view;

	if (!view_read(f, &view))
		return;
	view_check(&view);
	view_free(&view);
}

static void test_killed_any_time(void **state)
{
	struct fixture *f = *state;
	void *value = malloc(SHUNT_TABLE_SIZE(SHUNT_SLOTS_S));
	uint32_t kills = 0, looks = 0;
	struct view view;
	int status;

	fixture_close(f);
	shared->acknowledged = want_simple(6);
	for (;;) {
		pid_t child = fork();

		if (!child)
			be_daemon(f);
		random_seed(kills);
		looks += watch(f, 20000 + random_below(300000), value);
		if (waitpid(child, &status, WNOHANG) != child) {
			assert_int_equal(kill(child, SIGKILL), 0);
			assert_int_equal(waitpid(child, &status, 0), child);
		}
		if (shared->failure[0])
			fail_msg("%s", shared->failure);
		check_dead(f);
		if (WIFEXITED(status))
			break;
		kills++;
		if (kills % 9 == 8)
			fixture_lose_pins(f); /* and the power too */
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(shared->changes, CHANGES);
	assert_true(kills >= 20);
	assert_true(looks >= 200);
	print_message("# %u kills, %u looks, %u epochs\n", kills, looks, shared->n_seen);

	fixture_open(f);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
	know(f, 0);
	assert_true(view_read(f, &view));
	view_check(&view);
	view_check_state(f, &view);
	view_free(&view);
	free(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_killed_any_time, fixture_setup, fixture_teardown),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
