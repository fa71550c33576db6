/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Next hops: one word each, shared by all backends that go the same way, so that a gateway's new MAC is one store.
 * A word may be replaced when all that use it want the same other one; otherwise backends change to another entry.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>

#include "engine_internal.h"
#include "kernel.h"

#define NOT_FOUND UINT32_MAX

/* From a word to the entry in use that holds it: open addressing, at most half full. */
struct by_word {
	uint64_t *word; /* 0: empty */
	uint32_t *index;
	uint32_t mask;
};

struct hops {
	struct pinned *pinned;
	uint32_t *users; /* of each entry: backends present in the map */
	struct by_word by_word;
	uint32_t search; /* for a free entry: first among those never used, then among the others */
	bool grace;	 /* no packet in flight uses what is free */
};

static uint32_t *word_slot(const struct by_word *map, uint64_t word)
{
	uint32_t at = (uint32_t)((word * 0x9e3779b97f4a7c15ull) >> 32) & map->mask;

	while (map->word[at] && map->word[at] != word)
		at = (at + 1) & map->mask;
	return &map->index[at];
}

/* The entry that holds the word now. */
static uint32_t find_word(const struct hops *hops, uint64_t word)
{
	const struct by_word *map = &hops->by_word;
	const uint32_t *slot = word_slot(map, word);

	if (map->word[slot - map->index] != word || hops->pinned->nexthops[*slot] != word)
		return NOT_FOUND;
	return *slot;
}

static void put_word(struct by_word *map, uint64_t word, uint32_t index)
{
	uint32_t *slot = word_slot(map, word);

	map->word[slot - map->index] = word;
	*slot = index;
}

/* Both the words before and after a change are put, hence room for twice the entries, half full. */
static int by_word_init(struct by_word *map, uint32_t entries)
{
	uint32_t size = 4;

	while (size < 4 * entries)
		size *= 2;
	map->mask = size - 1;
	map->word = calloc(size, sizeof(*map->word));
	map->index = calloc(size, sizeof(*map->index));
	return map->word && map->index ? 0 : -ENOMEM;
}

static int wait_once(struct hops *hops)
{
	int ret = hops->grace ? 0 : pinned_grace(hops->pinned);

	hops->grace = !ret;
	return ret;
}

/* ---- interfaces ---- */

static bool iface_is(const struct shunt_iface *iface, const struct engine_nexthop *nexthop)
{
	return iface->ifindex == nexthop->ifindex && !memcmp(iface->mac, nexthop->source_mac, sizeof(iface->mac));
}

/* An entry that was never used, or that no next hop in use names. */
static int free_iface(struct hops *hops, uint32_t *out)
{
	bool named[SHUNT_IFACES] = {};

	for (uint32_t i = 0; i < SHUNT_IFACES; i++) {
		if (hops->pinned->ifaces[i].ifindex)
			continue;
		*out = i;
		return 0;
	}
	for (uint32_t i = 0; i < hops->pinned->n_nexthops; i++) {
		uint32_t iface = SHUNT_NEXTHOP_IFACE(hops->pinned->nexthops[i]);

		if (hops->pinned->nexthops[i] && hops->users[i] && iface < SHUNT_IFACES)
			named[iface] = true;
	}
	for (uint32_t i = 0; i < SHUNT_IFACES; i++) {
		if (named[i])
			continue;
		*out = i;
		return wait_once(hops);
	}
	return -ENOSPC;
}

static int iface_of(struct hops *hops, const struct engine_nexthop *nexthop, uint32_t *out, struct report *report)
{
	struct shunt_iface iface = {.ifindex = nexthop->ifindex};
	uint32_t at;
	int ret;

	for (at = 0; at < SHUNT_IFACES; at++) {
		if (!iface_is(&hops->pinned->ifaces[at], nexthop))
			continue;
		*out = at;
		return 0;
	}
	ret = free_iface(hops, &at);
	if (ret == -ENOSPC)
		return report_error(report, ret,
				    "next hops lie behind more than %u egress interfaces: send some of the routes out "
				    "of other interfaces",
				    SHUNT_IFACES);
	if (ret)
		return kernel_error(report, ret, "cannot wait for packets in flight");
	memcpy(iface.mac, nexthop->source_mac, sizeof(iface.mac));
	iface.mtu = (uint16_t)(nexthop->mtu < UINT16_MAX ? nexthop->mtu : UINT16_MAX);
	if (bpf_map_update_elem(hops->pinned->maps.ifaces, &at, &iface, BPF_ANY))
		return kernel_error(report, -errno, "cannot write the map '%s'", SHUNT_MAP_IFACES);
	hops->pinned->ifaces[at] = iface;
	*out = at;
	return 0;
}

/* ---- next hops ---- */

static void store_word(struct hops *hops, uint32_t index, uint64_t word)
{
	__atomic_store_n(&hops->pinned->nexthops[index], word, __ATOMIC_RELEASE);
	put_word(&hops->by_word, word, index);
}

static int wanted_words(struct hops *hops, const struct plan *plan, uint64_t *words, struct report *report)
{
	for (size_t i = 0; i < plan->n_backends; i++) {
		const struct plan_backend *backend = &plan->backends[i];
		uint32_t iface = 0;
		int ret;

		if (!backend->reached)
			continue;
		ret = iface_of(hops, &backend->way->nexthop, &iface, report);
		if (ret)
			return ret;
		memcpy(&words[i], backend->way->nexthop.mac, sizeof(backend->way->nexthop.mac));
		words[i] |= (uint64_t)iface << 48;
	}
	return 0;
}

static uint32_t entry_of(const struct hops *hops, const struct plan_backend *backend)
{
	uint32_t index = SHUNT_BACKEND_NEXTHOP(hops->pinned->backends[backend->ids->id].state);

	return backend->reached && backend->written && index < hops->pinned->n_nexthops ? index : NOT_FOUND;
}

/* One store for all users of an entry, where they agree and no other entry has the word already. */
static int move_together(struct hops *hops, const struct plan *plan, const uint64_t *words)
{
	uint32_t n = hops->pinned->n_nexthops;
	uint64_t *wanted = calloc(n, sizeof(*wanted));
	bool *differ = calloc(n, sizeof(*differ));
	int ret = wanted && differ ? 0 : -ENOMEM;

	for (size_t i = 0; i < plan->n_backends && !ret; i++) {
		uint32_t entry = entry_of(hops, &plan->backends[i]);

		if (entry == NOT_FOUND)
			continue;
		differ[entry] |= wanted[entry] && wanted[entry] != words[i];
		wanted[entry] = words[i];
	}
	for (uint32_t i = 0; i < n && !ret; i++) {
		if (wanted[i] && !differ[i] && wanted[i] != hops->pinned->nexthops[i] &&
		    find_word(hops, wanted[i]) == NOT_FOUND)
			store_word(hops, i, wanted[i]);
	}
	free(wanted);
	free(differ);
	return ret;
}

static int take_free(struct hops *hops, uint32_t *out)
{
	uint32_t n = hops->pinned->n_nexthops;

	for (; hops->search < 2 * n; hops->search++) {
		uint32_t i = hops->search % n;

		if (hops->users[i] || (hops->search < n && hops->pinned->nexthops[i]))
			continue;
		hops->users[i] = 1;
		*out = i;
		return hops->pinned->nexthops[i] ? wait_once(hops) : 0;
	}
	return -ENOSPC;
}

static int assign(struct hops *hops, const struct plan *plan, const uint64_t *words, uint32_t *index,
		  struct report *report)
{
	int ret = 0;

	for (size_t i = 0; i < plan->n_backends && !ret; i++) {
		uint32_t entry = entry_of(hops, &plan->backends[i]);

		if (!plan->backends[i].reached)
			continue;
		if (entry == NOT_FOUND || hops->pinned->nexthops[entry] != words[i])
			entry = find_word(hops, words[i]);
		if (entry == NOT_FOUND) {
			ret = take_free(hops, &entry);
			if (!ret)
				store_word(hops, entry, words[i]);
		}
		index[i] = entry;
	}
	if (ret == -ENOSPC)
		return report_error(report, ret,
				    "none of %u next-hop entries is free while the old next hops are still in use: "
				    "grow them with `shunt-loader upgrade --backends N%s%s`",
				    hops->pinned->n_nexthops, maps_instance_option(hops->pinned->maps.instance),
				    maps_instance_name(hops->pinned->maps.instance));
	return ret ? kernel_error(report, ret, "cannot wait for packets in flight") : 0;
}

/* Who uses what, as the map has it: leaving backends too, whose ids tables may still name. */
static int hops_init(struct hops *hops, struct pinned *pinned)
{
	*hops = (struct hops){.pinned = pinned, .users = calloc(pinned->n_nexthops, sizeof(*hops->users))};
	if (!hops->users || by_word_init(&hops->by_word, pinned->n_nexthops))
		return -ENOMEM;
	for (uint32_t id = 0; id < pinned->maps.meta.backends; id++) {
		uint64_t state = pinned->backends[id].state;
		uint32_t index = SHUNT_BACKEND_NEXTHOP(state);

		if (!(state & SHUNT_BACKEND_PRESENT) || index >= pinned->n_nexthops)
			continue;
		if (!hops->users[index]++ && pinned->nexthops[index])
			put_word(&hops->by_word, pinned->nexthops[index], index);
	}
	return 0;
}

int engine_write_nexthops(struct engine *engine, const struct plan *plan, uint32_t *index, struct report *report)
{
	uint64_t *words = calloc(plan->n_backends + 1, sizeof(*words));
	struct hops hops;
	int ret = hops_init(&hops, &engine->pinned);

	if (!words)
		ret = -ENOMEM;
	if (!ret)
		ret = wanted_words(&hops, plan, words, report);
	if (!ret)
		ret = move_together(&hops, plan, words);
	if (!ret)
		ret = assign(&hops, plan, words, index, report);
	free(words);
	free(hops.users);
	free(hops.by_word.word);
	free(hops.by_word.index);
	return ret;
}
