/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "addr.h"
#include "model_check.h"
#include "suggest.h"
#include "table/table.h"

static void check_algorithm(const struct model_pool *pool, struct report *report)
{
	const struct table_algorithm *algorithm = table_algorithm(pool->algorithm);
	char names[160] = "", hint[SUGGEST_TEXT_MAX];
	struct suggestion near = {};
	size_t length = 0;

	if (algorithm && !algorithm->simulator_only)
		return;
	for (size_t i = 0; i < table_n_algorithms; i++) {
		if (table_algorithms[i].simulator_only)
			continue;
		suggest(&near, pool->algorithm, table_algorithms[i].name);
		length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s", length ? ", " : "",
					   table_algorithms[i].name);
	}
	complain(report, pool->algorithm_place, "pool \"%s\": \"%.40s\" is not a table algorithm%s: use one of: %s",
		 pool->name, pool->algorithm, suggest_text(&near, hint), names);
}

/* Options that the algorithm has not, and a ring beyond what its builder takes. */
static void check_options(const struct model_pool *pool, struct report *report)
{
	bool ring = !strcmp(pool->algorithm, "ring"), capped = ring || !strcmp(pool->algorithm, "rendezvous");
	uint64_t sum = 0, vnodes = pool->vnodes ? pool->vnodes : TABLE_VNODES_DEFAULT;

	if (pool->balance_percent && !capped)
		complain(report, pool->balance_place,
			 "pool \"%s\": balance is for the algorithms rendezvous and ring: leave it out, or use one of "
			 "them",
			 pool->name);
	if (pool->vnodes && !ring)
		complain(report, pool->vnodes_place,
			 "pool \"%s\": vnodes is for the algorithm ring: leave it out, or use that", pool->name);
	for (size_t i = 0; i < pool->n_backends; i++)
		sum += pool->backends[i].weight;
	if (ring && sum * vnodes > TABLE_TOKENS_MAX)
		complain(report, pool->vnodes ? pool->vnodes_place : pool->algorithm_place,
			 "pool \"%s\": a ring of %llu virtual nodes, %llu for each of %llu units of weight: at most %u "
			 "are "
			 "possible, use smaller weights or fewer vnodes",
			 pool->name, (unsigned long long)(sum * vnodes), (unsigned long long)vnodes,
			 (unsigned long long)sum, TABLE_TOKENS_MAX);
}

static void check_slots(const struct model_pool *pool, struct report *report)
{
	uint32_t below, above;

	if (table_is_prime(pool->slots) && pool->slots <= SHUNT_SLOTS_L)
		return;
	table_nearest_primes(pool->slots, &below, &above);
	if (below && above)
		complain(report, pool->slots_place,
			 "pool \"%s\": table size %u is not a prime: the nearest are %u and %u", pool->name,
			 pool->slots, below, above);
	else
		complain(report, pool->slots_place,
			 "pool \"%s\": table size %u is out of range: use a prime from 2 to %u, the nearest is %u",
			 pool->name, pool->slots, SHUNT_SLOTS_L, below ? below : above);
}

/* At least one slot for each backend of positive weight. */
static void check_room(const struct model_pool *pool, struct report *report)
{
	uint32_t positive = 0, below, above;

	if (pool->n_backends > TABLE_MEMBERS_MAX) {
		complain(report, pool->place,
			 "pool \"%s\" has %zu backends: at most %u are possible, make it two pools", pool->name,
			 pool->n_backends, TABLE_MEMBERS_MAX);
		return;
	}
	for (size_t i = 0; i < pool->n_backends; i++)
		positive += pool->backends[i].weight != 0;
	if (positive <= pool->slots || pool->slots < 2)
		return;
	table_nearest_primes(positive - 1, &below, &above);
	complain(report, pool->slots_place,
		 "pool \"%s\" has %u backends of positive weight and a table of only %u slots: use size %u or more; "
		 "100 slots for each backend keep shares within 1 %%",
		 pool->name, positive, pool->slots, above);
}

static void check_backend(const struct model_pool *pool, const struct model_backend *backend, struct report *report)
{
	char text[ADDR_TEXT_MAX];

	model_check_name("backend", backend->name, backend->place, report);
	if (!addr_is_unicast(&backend->address))
		complain(report, backend->address_place,
			 "backend \"%s/%s\": %s cannot be a backend's address: give a unicast address that routers can "
			 "reach",
			 pool->name, backend->name, addr_format(&backend->address, text));
	if (backend->weight > MODEL_WEIGHT_MAX)
		complain(report, backend->weight_place, "backend \"%s/%s\": weight %u is out of range: use 0 to %u",
			 pool->name, backend->name, backend->weight, MODEL_WEIGHT_MAX);
}

static int by_address(const void *a, const void *b)
{
	const struct model_backend *x = *(const struct model_backend *const *)a;
	const struct model_backend *y = *(const struct model_backend *const *)b;
	int order = addr_compare(&x->address, &y->address);

	if (order)
		return order;
	return model_place_before(x->place, y->place) ? -1 : model_place_before(y->place, x->place);
}

static int check_addresses(const struct model_pool *pool, struct report *report)
{
	const struct model_backend **sorted = calloc(pool->n_backends + 1, sizeof(*sorted));
	char text[ADDR_TEXT_MAX], where[PLACE_TEXT_MAX];

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < pool->n_backends; i++)
		sorted[i] = &pool->backends[i];
	qsort(sorted, pool->n_backends, sizeof(*sorted), by_address);
	for (size_t i = 1; i < pool->n_backends; i++) {
		const struct model_backend *before = sorted[i - 1], *backend = sorted[i];

		if (addr_equal(&before->address, &backend->address))
			complain(report, backend->address_place,
				 "backend \"%s/%s\" has the address %s of backend \"%s\"%s: give each backend of a "
				 "pool its own address, or one backend the sum of the weights",
				 pool->name, backend->name, addr_format(&backend->address, text), before->name,
				 model_place_text(before->address_place, where));
	}
	free(sorted);
	return 0;
}

/* A base that settles while datagrams are still learnt would end the learning. */
static void check_times(const struct model_pool *pool, struct report *report)
{
	if (pool->learn > pool->settle)
		complain(report, pool->learn_place,
			 "pool \"%s\": learn is longer than settle: make it shorter, or settle longer", pool->name);
}

static int check_pool(const struct model *model, const struct model_pool *pool, struct report *report)
{
	model_check_name("pool", pool->name, pool->place, report);
	check_algorithm(pool, report);
	check_options(pool, report);
	check_slots(pool, report);
	check_room(pool, report);
	check_times(pool, report);
	model_check_encapsulation(model, pool, report);
	model_check_health(model, pool, report);
	for (size_t i = 0; i < pool->n_backends; i++) {
		const struct model_backend *backend = &pool->backends[i];

		check_backend(pool, backend, report);
		if (i && strcmp(backend[-1].name, backend->name) == 0)
			model_check_duplicate("backend", backend->name, backend[-1].place, backend->place, report);
	}
	return check_addresses(pool, report);
}

int model_check_pools(const struct model *model, struct report *report)
{
	for (size_t i = 0; i < model->n_pools; i++) {
		const struct model_pool *pool = &model->pools[i];
		int ret = check_pool(model, pool, report);

		if (ret)
			return ret;
		if (i && strcmp(pool[-1].name, pool->name) == 0)
			model_check_duplicate("pool", pool->name, pool[-1].place, pool->place, report);
	}
	return 0;
}
