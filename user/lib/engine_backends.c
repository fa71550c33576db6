/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Backend entries: outer headers made ready, written before an id is named, withdrawn after. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <shunt/wire.h>

#include "addr.h"
#include "engine_internal.h"
#include "kernel.h"

#define IPV4_AT 12	   /* of an IPv4 address in union shunt_address */
#define SOURCE_BITS_MAX 32 /* that packets fill in */

_Static_assert(sizeof(struct iphdr) == 20 && sizeof(struct ipv6hdr) == 40, "outer headers without options");

/* One's complement sum (RFC 1071) of the 16-bit words as loaded, folded to 16 bits. */
static uint32_t sum16(const void *data, size_t length)
{
	uint32_t sum = 0;
	uint16_t word;

	for (size_t i = 0; i < length; i += sizeof(word)) {
		memcpy(&word, (const char *)data + i, sizeof(word));
		sum += word;
	}
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void outer_v4(const union shunt_address *source, const union shunt_address *destination,
		     struct shunt_backend *out)
{
	struct iphdr header = {.version = 4, .ihl = sizeof(header) / 4, .ttl = SHUNT_OUTER_TTL};

	memcpy(&header.saddr, source->byte + IPV4_AT, sizeof(header.saddr));
	memcpy(&header.daddr, destination->byte + IPV4_AT, sizeof(header.daddr));
	out->sum = sum16(&header, sizeof(header));
	memcpy(out->outer, &header, sizeof(header));
}

static void outer_v6(const union shunt_address *source, const union shunt_address *destination,
		     struct shunt_backend *out)
{
	struct ipv6hdr header = {.version = 6, .hop_limit = SHUNT_OUTER_TTL};

	memcpy(&header.saddr, source, sizeof(header.saddr));
	memcpy(&header.daddr, destination, sizeof(header.daddr));
	out->sum = sum16(&header.saddr, sizeof(header.saddr) + sizeof(header.daddr));
	memcpy(out->outer, &header, sizeof(header));
}

static enum shunt_encap encap_of(const struct model_pool *pool, bool v4)
{
	switch (pool->encapsulation) {
	case MODEL_GUE:
		return v4 ? SHUNT_ENCAP_GUE4 : SHUNT_ENCAP_GUE6;
	case MODEL_L2:
		return SHUNT_ENCAP_L2;
	default:
		return v4 ? SHUNT_ENCAP_IPIP4 : SHUNT_ENCAP_IPIP6;
	}
}

static bool is_outer4(const struct shunt_backend *entry)
{
	return entry->encap == SHUNT_ENCAP_IPIP4 || entry->encap == SHUNT_ENCAP_GUE4;
}

/* The outer source of an entry, if it is one address of the family. */
static bool source_of(const struct shunt_backend *entry, bool v4, union shunt_address *out)
{
	union shunt_address destination;

	if (!entry || entry->encap == SHUNT_ENCAP_NONE || entry->encap == SHUNT_ENCAP_L2 || entry->source_bits ||
	    is_outer4(entry) != v4)
		return false;
	engine_outer_addresses(entry, out, &destination);
	return true;
}

/*
 * The outer source is the configured one, else the host's preferred one, else what `old` has (the entry in force, or
 * NULL): after a start, before the ways are looked up again.  false where there is none.
 */
static bool choose_source(const struct model_source *configured, const struct way *way, const struct shunt_backend *old,
			  bool v4, union shunt_address *out)
{
	if (configured->given)
		memcpy(out->byte, configured->prefix.address, sizeof(out->byte));
	else if (!addr_is_unspecified(&way->nexthop.source) && addr_is_v4(&way->nexthop.source) == v4)
		*out = way->nexthop.source;
	else
		return source_of(old, v4, out);
	return true;
}

/* What goes in front of packets for a backend, but for the state word.  false where no outer source is known. */
bool engine_backend_entry(const struct model_pool *pool, const struct model_backend *backend, const struct way *way,
			  const struct shunt_backend *old, struct shunt_backend *out)
{
	bool v4 = addr_is_v4(&backend->address);
	const struct model_source *configured = v4 ? &pool->source4 : &pool->source6;
	union shunt_address source;

	*out = (struct shunt_backend){
		.encap = encap_of(pool, v4),
		.overhead = (uint16_t)model_overhead(pool, v4),
	};
	if (pool->encapsulation == MODEL_L2) {
		memcpy(out->outer, &backend->address, sizeof(backend->address));
		return true;
	}
	if (!choose_source(configured, way, old, v4, &source))
		return false;
	if (configured->given) {
		unsigned int bits = model_source_bits(configured);

		out->source_bits = (uint8_t)(bits < SOURCE_BITS_MAX ? bits : SOURCE_BITS_MAX);
	}
	if (v4)
		outer_v4(&source, &backend->address, out);
	else
		outer_v6(&source, &backend->address, out);
	if (pool->encapsulation == MODEL_GUE) {
		out->port = (SHUNT_FORCE __be16)htons(pool->gue_port ? pool->gue_port : SHUNT_GUE_PORT);
		if (!v4 && pool->udp6_checksum == MODEL_UDP6_ZERO)
			out->flags = SHUNT_BACKEND_UDP6_ZERO;
	}
	return true;
}

/* MAC addresses alone reach only who is on the link. */
bool engine_can_reach(const struct model_pool *pool, const struct way *way)
{
	return way && way->once && !(pool->encapsulation == MODEL_L2 && way->nexthop.gateway);
}

bool engine_same_destination(const struct shunt_backend *a, const struct shunt_backend *b)
{
	if (a->encap != b->encap || a->port != b->port || a->flags != b->flags)
		return false;
	if (a->encap == SHUNT_ENCAP_L2)
		return !memcmp(a->outer, b->outer, sizeof(union shunt_address));
	if (is_outer4(a))
		return !memcmp(a->outer + offsetof(struct iphdr, daddr), b->outer + offsetof(struct iphdr, daddr), 4);
	return !memcmp(a->outer + offsetof(struct ipv6hdr, daddr), b->outer + offsetof(struct ipv6hdr, daddr), 16);
}

static void store_state(struct shunt_backend *entry, uint64_t state)
{
	if (entry->state != state)
		__atomic_store_n(&entry->state, state, __ATOMIC_RELEASE);
}

/* The id is named by nothing yet: its entry may be written piece by piece. */
static int write_entry(struct engine *engine, const struct plan_backend *backend)
{
	struct shunt_backend *entry = &engine->pinned.backends[backend->ids->id];
	int ret;

	ret = maps_stats_clear(&engine->pinned.maps, engine->pinned.maps.backend_stats, backend->ids->id);
	if (ret)
		return ret;
	engine->pinned.paths[backend->ids->id] = (struct shunt_path){};
	memcpy((char *)entry + sizeof(entry->state), (const char *)&backend->entry + sizeof(entry->state),
	       sizeof(*entry) - sizeof(entry->state));
	return 0;
}

/*
 * Before the tables, so what is taken away stays as it is for now: a backend that drains or is down says so only when
 * no table names it as owner.
 */
static uint64_t bits_before(const struct shunt_backend *entry, const struct plan_backend *backend)
{
	uint64_t before = backend->written ? entry->state : 0, bits = SHUNT_BACKEND_PRESENT;

	if (!backend->ids->down || before & SHUNT_BACKEND_UP)
		bits |= SHUNT_BACKEND_UP;
	return bits | (backend->ids->draining ? before & SHUNT_BACKEND_DRAINING : 0);
}

void engine_take_bits(struct engine *engine, const struct plan *plan)
{
	for (size_t i = 0; i < plan->n_backends; i++) {
		const struct plan_backend *backend = &plan->backends[i];
		struct shunt_backend *entry;

		if (!backend->reached)
			continue;
		entry = &engine->pinned.backends[backend->ids->id];
		if (backend->ids->draining)
			store_state(entry, entry->state | SHUNT_BACKEND_DRAINING);
		if (backend->ids->down)
			store_state(entry, entry->state & ~SHUNT_BACKEND_UP);
	}
}

int engine_write_backends(struct engine *engine, const struct plan *plan, struct report *report)
{
	uint32_t *nexthop = calloc(plan->n_backends + 1, sizeof(*nexthop));
	int ret = nexthop ? engine_write_nexthops(engine, plan, nexthop, report) : -ENOMEM;
	bool given_back = false;

	for (size_t i = 0; i < plan->n_backends && !ret; i++) {
		const struct plan_backend *backend = &plan->backends[i];
		struct shunt_backend *entry;
		uint64_t bits;
		uint32_t mtu;

		if (!backend->reached)
			continue;
		entry = &engine->pinned.backends[backend->ids->id];
		bits = bits_before(entry, backend);
		given_back |= entry->state & SHUNT_BACKEND_DRAINING & ~bits;
		given_back |= backend->written && bits & SHUNT_BACKEND_UP & ~entry->state;
		if (!backend->written)
			ret = write_entry(engine, backend);
		if (ret) {
			kernel_error(report, ret, "cannot clear the counters of backend %s", backend->model->name);
			break;
		}
		mtu = engine_path_mtu(&engine->pinned, backend->ids->id, backend->way->nexthop.mtu);
		store_state(entry, SHUNT_BACKEND_STATE(bits, backend->ids->generation, nexthop[i], mtu));
	}
	free(nexthop);
	if (!ret && given_back) {
		ret = pinned_grace(&engine->pinned);
		if (ret)
			kernel_error(report, ret, "cannot wait until packets see that a backend is back");
	}
	return ret;
}

/* After a start: who was down when the maps were written last. */
void engine_seed_down(struct engine *engine)
{
	const struct model *model = engine->state.model;

	for (size_t i = 0; model && i < model->n_pools; i++) {
		for (size_t j = 0; j < model->pools[i].n_backends; j++) {
			struct state_backend *ids = &engine->state.pools[i].backends[j];
			uint64_t word;

			if (ids->id >= engine->pinned.maps.meta.backends)
				continue;
			word = engine->pinned.backends[ids->id].state;
			ids->down = (word & SHUNT_BACKEND_USABLE) == SHUNT_BACKEND_PRESENT &&
				    SHUNT_BACKEND_GENERATION(word) == ids->generation;
		}
	}
}

int engine_set_down(struct engine *engine, const char *pool_name, const char *name, enum engine_verdict verdict)
{
	struct model *model = engine->state.model;
	const struct model_pool *pool = model ? model_pool(model, pool_name) : NULL;
	const struct model_backend *backend = pool ? model_backend(pool, name) : NULL;
	struct state_backend *ids;

	if (!backend)
		return -ENOENT;
	ids = &engine->state.pools[pool - model->pools].backends[backend - pool->backends];
	ids->down = verdict == ENGINE_DOWN;
	ids->at_once = verdict == ENGINE_UP_AT_ONCE;
	return 0;
}

void engine_clear_backends(struct engine *engine)
{
	const struct state *state = &engine->state;
	struct pinned *pinned = &engine->pinned;
	bool *keep = calloc(pinned->maps.meta.backends + 1, sizeof(*keep));

	if (!keep)
		return; /* next time */
	for (size_t i = 0; i < state->model->n_pools; i++) {
		for (size_t j = 0; j < state->model->pools[i].n_backends; j++)
			keep[state->pools[i].backends[j].id] = true;
	}
	for (uint32_t id = 0; id < pinned->maps.meta.backends; id++) {
		uint64_t word = pinned->backends[id].state;

		if (keep[id] || !(word & SHUNT_BACKEND_PRESENT))
			continue;
		store_state(&pinned->backends[id], SHUNT_BACKEND_STATE(0, SHUNT_BACKEND_GENERATION(word), 0, 0));
		pinned->slots[id] = pinned->quotas[id] = pinned->bases[id] = pinned->entries[id] = 0;
		engine->scan_owed = engine->grace_owed = true;
	}
	free(keep);
}
