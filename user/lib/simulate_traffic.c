/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keys, requests and bytes, and how they spread over backends. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "simulate_internal.h"

/* Sizes of a key's requests: 512 bytes to 128 KiB, each power of two alike. */
#define SIZE_LEAST 512u
#define SIZE_KINDS 9u

int traffic_make(struct traffic *t, const struct simulate_options *o)
{
	uint64_t random = o->seed ^ 0x6b657973ull;

	*t = (struct traffic){.slots = o->params.slots};
	if (!o->keys)
		return 0;
	t->keys = calloc(t->slots, sizeof(*t->keys));
	t->requests = calloc(t->slots, sizeof(*t->requests));
	t->bytes = calloc(t->slots, sizeof(*t->bytes));
	if (!t->keys || !t->requests || !t->bytes) {
		traffic_free(t);
		return -ENOMEM;
	}
	for (uint32_t key = 0; key < o->keys; key++) {
		uint64_t hash = simulate_random(&random);
		uint32_t slot = (uint32_t)((unsigned __int128)hash * t->slots >> 64);
		double requests = o->zipf > 0 ? pow(key + 1.0, -o->zipf) : 1;
		uint64_t own = hash;
		double size = (double)(SIZE_LEAST << simulate_below(&own, SIZE_KINDS));

		if (!key) {
			t->hot_slot = slot;
			t->hot_requests = requests;
		}
		t->keys[slot]++;
		t->requests[slot] += requests;
		t->bytes[slot] += requests * size;
		t->all_requests += requests;
	}
	return 0;
}

void traffic_free(struct traffic *t)
{
	free(t->keys);
	free(t->requests);
	free(t->bytes);
	*t = (struct traffic){};
}

void traffic_ratios(const struct course *c, const double *amount, struct simulate_load *out)
{
	double weights = 0, sum = 0, ratios = 0, squares = 0;
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		weights += c->members[i].weight;
		sum += amount[i];
		n += c->members[i].weight > 0;
	}
	*out = (struct simulate_load){.min_over_mean = INFINITY};
	for (size_t i = 0; i < c->n; i++) {
		double ratio = amount[i] / sum * weights / c->members[i].weight;

		if (!c->members[i].weight)
			continue;
		out->max_over_mean = fmax(out->max_over_mean, ratio);
		out->min_over_mean = fmin(out->min_over_mean, ratio);
		ratios += ratio;
		squares += ratio * ratio;
	}
	ratios /= (double)n;
	out->cv = sqrt(fmax(squares / (double)n - ratios * ratios, 0)) / ratios;
}

int traffic_load(const struct course *c, const uint16_t *owner, uint32_t slots, const double *each,
		 struct simulate_load *out)
{
	double *amount = calloc(c->n + 1, sizeof(*amount));

	if (!amount)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < slots; slot++)
		amount[owner[slot]] += each ? each[slot] : 1;
	traffic_ratios(c, amount, out);
	free(amount);
	return 0;
}
