/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flows and keys for the tests of the flow hash.  Random numbers come from fixed seeds: what passes once passes always.
 */
#ifndef TESTS_UNIT_FLOWHASH_FIXTURE_H
#define TESTS_UNIT_FLOWHASH_FIXTURE_H

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <shunt/flowhash.h>

#include "hashkey.h"

/* ---- numbers: splitmix64 ---- */

static inline uint64_t random64(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline struct shunt_hash_key random_key(uint64_t *state)
{
	uint64_t key[2] = {random64(state), random64(state)};
	struct shunt_hash_key out;

	hashkey_expand((const uint8_t *)key, &out);
	return out;
}

/* ---- flows ---- */

struct flow {
	union shunt_address source, destination;
	uint32_t ports, mode;
	uint8_t protocol;
	int ipv6;
};

static inline uint64_t flow_hash(const struct shunt_hash_key *key, const struct flow *flow)
{
	return shunt_flow_hash(key, flow->mode, flow->ipv6, &flow->source, &flow->destination, flow->ports,
			       flow->protocol);
}

static inline uint32_t ports_word(unsigned int source, unsigned int destination)
{
	uint8_t bytes[4] = {source >> 8, source & 0xff, destination >> 8, destination & 0xff};

	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline union shunt_address address4(uint32_t host_order)
{
	union shunt_address out = {.byte = {[10] = 0xff, [11] = 0xff}};

	out.word[3] = htonl(host_order);
	return out;
}

static inline union shunt_address address6(uint64_t high, uint64_t low)
{
	union shunt_address out;

	for (int i = 0; i < 8; i++) {
		out.byte[i] = (uint8_t)(high >> (56 - 8 * i));
		out.byte[8 + i] = (uint8_t)(low >> (56 - 8 * i));
	}
	return out;
}

static inline struct flow random_flow(int ipv6, uint64_t *state)
{
	struct flow flow = {.ipv6 = ipv6, .ports = (uint32_t)random64(state), .protocol = (uint8_t)random64(state)};

	if (ipv6) {
		flow.source = address6(random64(state), random64(state));
		flow.destination = address6(random64(state), random64(state));
	} else {
		flow.source = address4((uint32_t)random64(state));
		flow.destination = address4((uint32_t)random64(state));
	}
	return flow;
}

#endif
