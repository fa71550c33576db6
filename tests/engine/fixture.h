/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An instance of its own with a state folder, and models for it. */
#ifndef TEST_ENGINE_FIXTURE_H
#define TEST_ENGINE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine.h"

struct fixture {
	char instance[SHUNT_INSTANCE_MAX + 1];
	char state_dir[64];
	struct maps_capacities capacities;
	struct engine *engine; /* NULL: not open */
};

/* For cmocka: makes the fixture and opens the engine with `initial` as capacities, if that is given. */
int fixture_setup(void **state);
int fixture_setup_small(void **state); /* 8 services, 4 addresses, 3 pools, 6 backends */
int fixture_teardown(void **state);

void fixture_open(struct fixture *f);
void fixture_close(struct fixture *f);
/* As a reboot: the pins are gone. */
void fixture_lose_pins(struct fixture *f);
char *fixture_read_state(const struct fixture *f, size_t *length);

/* ---- models ---- */

#define WANT_POOLS 4
#define WANT_BACKENDS 24
#define WANT_SERVICES 6

struct want_backend {
	bool present;
	uint32_t weight;
	uint32_t address; /* 0 ..: 10.9.x.y; with bit 31 set: fd00:9::x */
};

struct want_pool {
	bool present;
	const char *algorithm;
	uint32_t slots;
	const char *encapsulation; /* text of the mapping, or NULL */
	struct want_backend backends[WANT_BACKENDS];
};

struct want {
	struct want_pool pools[WANT_POOLS];
	struct {
		bool present;
		uint32_t pool, ports; /* ports 1 .. ports; 0: any */
	} services[WANT_SERVICES];
};

/* Pool 0 "p0": maglev, 251 slots, n backends b00 .. of weight 1; service 0 points at it. */
struct want want_simple(uint32_t n);
struct model *model_of(const struct want *want);
/* The same in another order of pools, backends and services. */
struct model *model_of_shuffled(const struct want *want);
struct model *model_of_text(const char *text);

int apply(struct fixture *f, const struct want *want);

/* Next hops: address a lies behind gateway a % 3, whose MAC is {2, 0, 0, epoch >> 8, epoch, gateway}. */
void know(struct fixture *f, uint32_t epoch);
struct engine_nexthop nexthop_of(const union shunt_address *address, uint32_t epoch);

struct engine_pool_info pool_info(struct fixture *f, const char *pool);
struct engine_backend_info backend_info(struct fixture *f, const char *pool, const char *backend);

uint32_t random_below(uint32_t n);
void random_seed(uint64_t seed);

#endif
