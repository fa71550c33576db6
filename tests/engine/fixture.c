/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "addr.h"
#include "document.h"
#include "fixture.h"

static uint64_t random_state = 1;

void random_seed(uint64_t seed)
{
	random_state = seed * 2 + 1;
	random_below(2);
}

uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((random_state >> 32) * n >> 32);
}

/* ---- the instance ---- */

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void fixture_lose_pins(struct fixture *f)
{
	char path[128];

	snprintf(path, sizeof(path), SHUNT_PIN_ROOT "/%s", f->instance);
	remove_tree(path);
	assert_int_equal(access(path, F_OK), -1);
}

static int setup_with(void **state, struct maps_capacities capacities)
{
	static unsigned int count;
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->instance, sizeof(f->instance), "t-engine-%d-%u", getpid(), count++);
	f->capacities = capacities;
	strcpy(f->state_dir, "/dev/shm/shunt-engine-XXXXXX");
	if (access("/dev/shm", W_OK))
		memcpy(f->state_dir, "/var/tmp", 8);
	if (!mkdtemp(f->state_dir))
		return -1;
	*state = f;
	fixture_open(f);
	return 0;
}

int fixture_setup(void **state)
{
	return setup_with(state, (struct maps_capacities){512, 128, 16, 256, 4000000});
}

int fixture_setup_small(void **state)
{
	return setup_with(state, (struct maps_capacities){8, 4, 3, 6, 1000});
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;
	char path[128];

	if (f->engine)
		fixture_close(f);
	fixture_lose_pins(f);
	remove_tree(f->state_dir);
	snprintf(path, sizeof(path), "/run/shunt/%s.lock", f->instance);
	unlink(path);
	free(f);
	return 0;
}

void fixture_open(struct fixture *f)
{
	const struct engine_options options = {
		.instance = f->instance, .state_dir = f->state_dir, .capacities = f->capacities};
	struct report report = {};
	int ret = engine_open(&options, &f->engine, &report);

	if (ret)
		fail_msg("engine_open: %s: %s", strerror(-ret), report_text(&report));
	report_free(&report);
}

void fixture_close(struct fixture *f)
{
	engine_close(f->engine);
	f->engine = NULL;
}

char *fixture_read_state(const struct fixture *f, size_t *length)
{
	char path[128], *text = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "%s/state.json", f->state_dir);
	file = fopen(path, "r");
	*length = 0;
	if (!file)
		return NULL;
	text = calloc(1, 1 << 20);
	*length = fread(text, 1, 1 << 20, file);
	fclose(file);
	return text;
}

/* ---- models ---- */

struct want want_simple(uint32_t n)
{
	struct want want = {};

	want.pools[0] = (struct want_pool){.present = true, .algorithm = "maglev", .slots = 251};
	for (uint32_t i = 0; i < n; i++)
		want.pools[0].backends[i] = (struct want_backend){true, 1, i};
	want.services[0].present = true;
	want.services[0].ports = 2;
	return want;
}

struct model *model_of_text(const char *text)
{
	struct report report = {};
	struct model *model;

	if (document_parse(text, strlen(text), &model, &report))
		fail_msg("%s\n%s", report_text(&report), text);
	report_free(&report);
	return model;
}

static void identity(uint32_t *order, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
}

static void shuffle(uint32_t *order, uint32_t n)
{
	identity(order, n);
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = random_below(i), t = order[i - 1];

		order[i - 1] = order[j];
		order[j] = t;
	}
}

static void write_pool(FILE *out, uint32_t number, const struct want_pool *pool, bool mixed)
{
	uint32_t order[WANT_BACKENDS];
	const char *comma = "";

	(mixed ? shuffle : identity)(order, WANT_BACKENDS);
	fprintf(out, "{name: p%u, table: {algorithm: %s, size: %u}, ", number, pool->algorithm, pool->slots);
	if (pool->encapsulation)
		fprintf(out, "encapsulation: {%s}, ", pool->encapsulation);
	fprintf(out, "backends: [");
	for (uint32_t i = 0; i < WANT_BACKENDS; i++) {
		const struct want_backend *backend = &pool->backends[order[i]];
		uint32_t a = backend->address & 0x7fffffff;

		if (!backend->present)
			continue;
		fprintf(out, "%s{name: b%02u, weight: %u, address: ", comma, order[i], backend->weight);
		if (backend->address >> 31)
			fprintf(out, "'fd00:9::%x'}", a + 1);
		else
			fprintf(out, "10.9.%u.%u}", a / 250, a % 250 + 1);
		comma = ", ";
	}
	fprintf(out, "]}");
}

static struct model *render(const struct want *want, bool mixed)
{
	uint32_t pools[WANT_POOLS], services[WANT_SERVICES];
	const char *comma = "";
	struct model *model;
	size_t length;
	char *text;
	FILE *out = open_memstream(&text, &length);

	(mixed ? shuffle : identity)(pools, WANT_POOLS);
	(mixed ? shuffle : identity)(services, WANT_SERVICES);
	fprintf(out, "{version: 1, hash-key: 00112233445566778899aabbccddeeff, pools: [");
	for (uint32_t i = 0; i < WANT_POOLS; i++) {
		if (!want->pools[pools[i]].present)
			continue;
		fprintf(out, "%s", comma);
		write_pool(out, pools[i], &want->pools[pools[i]], mixed);
		comma = ", ";
	}
	fprintf(out, "], services: [");
	comma = "";
	for (uint32_t i = 0; i < WANT_SERVICES; i++) {
		uint32_t s = services[i], ports = want->services[s].ports;

		if (!want->services[s].present)
			continue;
		fprintf(out, "%s{name: s%u, address: 192.0.2.%u, protocol: tcp, pool: p%u, ports: ", comma, s, s + 1,
			want->services[s].pool);
		if (ports)
			fprintf(out, "[1-%u]}", ports);
		else
			fprintf(out, "any}");
		comma = ", ";
	}
	fprintf(out, "]}\n");
	fclose(out);
	model = model_of_text(text);
	free(text);
	return model;
}

struct model *model_of(const struct want *want)
{
	return render(want, false);
}

struct model *model_of_shuffled(const struct want *want)
{
	return render(want, true);
}

int apply(struct fixture *f, const struct want *want)
{
	struct model *model = model_of(want);
	struct report report = {};
	int ret = engine_apply(f->engine, model, NULL, &report);

	if (ret)
		model_free(model);
	else
		assert_int_equal(report.errors, 0);
	report_free(&report);
	return ret;
}

/* ---- next hops ---- */

struct engine_nexthop nexthop_of(const union shunt_address *address, uint32_t epoch)
{
	uint8_t gateway = (uint8_t)(address->byte[15] % 3);
	struct engine_nexthop nexthop = {
		.known = true,
		.ifindex = 100u + gateway,
		.mac = {2, 0, 0, (uint8_t)(epoch >> 8), (uint8_t)epoch, gateway},
		.source_mac = {2, 1, 0, 0, 0, gateway},
		.mtu = 1500,
	};

	addr_parse(addr_is_v4(address) ? "10.9.255.1" : "fd00:9::ffff:1", &nexthop.source);
	return nexthop;
}

struct knowing {
	struct engine *engine;
	uint32_t epoch;
};

static void know_one(const union shunt_address *address, void *arg)
{
	const struct knowing *knowing = arg;
	struct engine_nexthop nexthop = nexthop_of(address, knowing->epoch);

	assert_int_equal(engine_set_nexthop(knowing->engine, address, &nexthop), 0);
}

void know(struct fixture *f, uint32_t epoch)
{
	struct knowing knowing = {f->engine, epoch};

	engine_addresses(f->engine, know_one, &knowing);
	assert_int_equal(engine_publish(f->engine, NULL), 0);
}

struct engine_pool_info pool_info(struct fixture *f, const char *pool)
{
	struct engine_pool_info info;

	assert_int_equal(engine_pool_info(f->engine, pool, &info), 0);
	return info;
}

struct engine_backend_info backend_info(struct fixture *f, const char *pool, const char *backend)
{
	struct engine_backend_info info;

	assert_int_equal(engine_backend_info(f->engine, pool, backend, &info), 0);
	return info;
}
