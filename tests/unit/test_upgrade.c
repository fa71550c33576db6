/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The snapshot for other capacities, and a whole set copied on the real kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <shunt/flow.h>

#include "addr.h"
#include "maps_internal.h"
#include "upgrade.h"

#define ADDRESSES 40u
#define SERVICES 120u

/* Three services for each address; pool i % 7, counter backwards. */
static void fill(struct snapshot_content *content)
{
	*content = (struct snapshot_content){.revision = 9, .n_addresses = ADDRESSES, .n_services = SERVICES};
	content->key.word[3] = 0x12345678;
	content->key.final = 42;
	content->addresses = calloc(ADDRESSES, sizeof(*content->addresses));
	content->services = calloc(SERVICES, sizeof(*content->services));
	for (uint32_t i = 0; i < ADDRESSES; i++) {
		char text[32];

		snprintf(text, sizeof(text), i % 2 ? "2001:db8::%x" : "192.0.2.%u", i + 1);
		assert_int_equal(addr_parse(text, &content->addresses[i].address), 0);
		content->addresses[i].flags = i % 3 ? 0 : SHUNT_ADDRESS_UNKNOWN_PASS;
	}
	for (uint32_t i = 0; i < SERVICES; i++)
		content->services[i] = (struct snapshot_service){
			.address = i % ADDRESSES,
			.port = i < ADDRESSES ? 0 : (uint16_t)(i + 1000),
			.protocol = i % 3 ? IPPROTO_TCP : IPPROTO_UDP,
			.table_class = i % SHUNT_NR_TABLE_CLASSES,
			.hash_mode = i % SHUNT_NR_HASH_MODES,
			.pool = (uint16_t)(i % 7),
			.counter = SERVICES - 1 - i,
		};
}

static void *build(const struct snapshot_capacity *capacity)
{
	struct snapshot_content content;
	void *value = calloc(1, snapshot_size(capacity));

	fill(&content);
	assert_int_equal(snapshot_build(&content, capacity, value, NULL), 0);
	snapshot_free(&content);
	return value;
}

static void same_content(const void *a, const struct snapshot_capacity *of_a, const void *b,
			 const struct snapshot_capacity *of_b)
{
	struct snapshot_content x, y;

	assert_int_equal(snapshot_read(a, of_a, &x), 0);
	assert_int_equal(snapshot_read(b, of_b, &y), 0);
	assert_int_equal(x.revision, y.revision);
	assert_memory_equal(&x.key, &y.key, sizeof(x.key));
	assert_int_equal(x.n_addresses, y.n_addresses);
	assert_int_equal(x.n_services, y.n_services);
	for (size_t i = 0; i < x.n_addresses; i++) {
		assert_true(addr_equal(&x.addresses[i].address, &y.addresses[i].address));
		assert_int_equal(x.addresses[i].flags, y.addresses[i].flags);
	}
	for (size_t i = 0; i < x.n_services; i++) {
		const struct snapshot_service *s = &x.services[i], *t = &y.services[i];

		assert_true(s->address == t->address && s->port == t->port && s->protocol == t->protocol);
		assert_true(s->pool == t->pool && s->counter == t->counter && s->table_class == t->table_class);
		assert_int_equal(s->hash_mode, t->hash_mode);
	}
	snapshot_free(&x);
	snapshot_free(&y);
}

static void a_snapshot_keeps_its_content(void **state)
{
	const struct snapshot_capacity old = {ADDRESSES, SERVICES};
	const struct snapshot_capacity sizes[] = {{ADDRESSES, SERVICES}, {41, 121}, {400, 5000}, {16384, 65536}};
	void *from = build(&old);

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *to = calloc(1, snapshot_size(&sizes[i])), *back = calloc(1, snapshot_size(&old));

		assert_int_equal(upgrade_snapshot(from, &old, to, &sizes[i], 7, NULL), 0);
		same_content(from, &old, to, &sizes[i]);
		assert_int_equal(upgrade_snapshot(to, &sizes[i], back, &old, 7, NULL), 0);
		assert_memory_equal(from, back, snapshot_size(&old)); /* there and back: the same bytes */
		free(to);
		free(back);
	}
	free(from);
}

static void what_does_not_fit_is_refused(void **state)
{
	const struct snapshot_capacity old = {ADDRESSES, SERVICES};
	const struct {
		struct snapshot_capacity size;
		uint32_t pools;
		const char *part;
	} cases[] = {
		{{ADDRESSES, SERVICES}, 6, "--pools is too small for what is in use: at least 7"},
		{{ADDRESSES, SERVICES - 1}, 7, "--services is too small for what is in use: at least 120"},
		{{ADDRESSES - 1, SERVICES}, 7, "--addresses is too small for what is in use: at least 40"},
	};
	void *from = build(&old);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		void *to = calloc(1, snapshot_size(&cases[i].size));
		struct report report = {};

		assert_int_equal(upgrade_snapshot(from, &old, to, &cases[i].size, cases[i].pools, &report), -ENOSPC);
		assert_int_equal(report.count, 1);
		assert_string_equal(report.entries[0].text, cases[i].part);
		report_free(&report);
		free(to);
	}
	free(from);
}

static void a_damaged_snapshot_is_refused(void **state)
{
	const struct snapshot_capacity old = {ADDRESSES, SERVICES};
	struct shunt_snapshot *from = build(&old);
	void *to = calloc(1, snapshot_size(&old));
	struct report report = {};

	(void)state;
	from->services++;
	assert_int_equal(upgrade_snapshot(from, &old, to, &old, 7, &report), -EUCLEAN);
	assert_int_equal(report.errors, 1);
	report_free(&report);
	free(from);
	free(to);
}

static void open_instance(const char *suffix, const struct maps_capacities *want, struct maps *out)
{
	char instance[32];

	snprintf(instance, sizeof(instance), "unit-up-%d-%s", getpid(), suffix);
	assert_int_equal(maps_open(instance, want, out, NULL), 0);
}

static void remove_instance(struct maps *maps)
{
	char path[PIN_PATH_MAX];

	maps_close(maps);
	snprintf(path, sizeof(path), SHUNT_PIN_ROOT "/%s", maps->instance);
	maps_remove_tree(path);
	snprintf(path, sizeof(path), "/run/shunt/%s.lock", maps->instance);
	unlink(path);
}

static void put(int fd, uint32_t index, const void *value)
{
	assert_int_equal(bpf_map_update_elem(fd, &index, value, BPF_ANY), 0);
}

/* Backends first, last and across pieces of a copy; next hops, interfaces, a table of each class, counters. */
static void a_whole_set_is_copied(void **state)
{
	const struct maps_capacities small = {
		.services = 130, .addresses = 41, .pools = 8, .backends = 3000, .flows = 9};
	const struct maps_capacities large = {
		.services = 131, .addresses = 50, .pools = 9, .backends = 5000, .flows = 9};
	const uint32_t ids[] = {0, 1, 1023, 1024, 1025, 2047, 2048, 2999};
	const struct snapshot_capacity old = {41, 130}, new = {50, 131};
	struct shunt_backend backend = {.overhead = 20}, found;
	struct shunt_iface iface = {.ifindex = 5}, found_iface;
	struct shunt_path path = {.lowered = 5}, found_path;
	struct shunt_prefix prefix = {.length = 120};
	struct shunt_endpoint endpoint = {.count = 1}, found_endpoint;
	union shunt_address address = {};
	struct shunt_stats *cpu, sum;
	struct maps from, to;
	uint64_t hop;
	uint8_t one = 1;
	void *value, *back;

	(void)state;
	open_instance("from", &small, &from);
	open_instance("to", &large, &to);
	cpu = calloc(from.n_cpus, sizeof(*cpu));
	for (int i = 0; i < from.n_cpus; i++)
		cpu[i].packets = 10 + i;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		backend.state = ids[i] + 1;
		hop = ids[i] + 7;
		put(from.backends, ids[i], &backend);
		put(from.nexthops, ids[i], &hop);
		put(from.backend_stats, ids[i], cpu);
		path.errors = ids[i] + 1;
		put(from.backend_path, ids[i], &path);
		memcpy(address.byte, &ids[i], sizeof(ids[i]));
		endpoint.id[0] = (uint16_t)ids[i];
		assert_int_equal(bpf_map_update_elem(from.endpoints, &address, &endpoint, BPF_ANY), 0);
		memcpy(prefix.address, &address, sizeof(prefix.address));
		assert_int_equal(bpf_map_update_elem(from.outer_sources, &prefix, &one, BPF_ANY), 0);
	}
	put(from.ifaces, 255, &iface);
	value = build(&old);
	assert_int_equal(maps_inner_publish(&from, MAPS_SNAPSHOT, 0, value), 0);
	free(value);
	for (enum maps_inner kind = MAPS_TABLE_S; kind <= MAPS_TABLE_M; kind++) {
		value = calloc(1, maps_inner_size(&from, kind));
		((struct shunt_table *)value)->epoch = 77 + kind;
		assert_int_equal(maps_inner_publish(&from, kind, 7, value), 0);
		free(value);
	}

	assert_int_equal(upgrade_copy(&from, &to, NULL), 0);

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		assert_int_equal(bpf_map_lookup_elem(to.backends, &ids[i], &found), 0);
		assert_true(found.state == ids[i] + 1 && found.overhead == 20);
		assert_int_equal(bpf_map_lookup_elem(to.nexthops, &ids[i], &hop), 0);
		assert_int_equal(hop, ids[i] + 7);
		assert_int_equal(maps_stats_read(&to, to.backend_stats, ids[i], &sum), 0);
		assert_int_equal(sum.packets, 10 * from.n_cpus + from.n_cpus * (from.n_cpus - 1) / 2);
		assert_int_equal(bpf_map_lookup_elem(to.backend_path, &ids[i], &found_path), 0);
		assert_true(found_path.lowered == 5 && found_path.errors == ids[i] + 1);
		memcpy(address.byte, &ids[i], sizeof(ids[i]));
		assert_int_equal(bpf_map_lookup_elem(to.endpoints, &address, &found_endpoint), 0);
		assert_true(found_endpoint.count == 1 && found_endpoint.id[0] == ids[i]);
		memcpy(prefix.address, &address, sizeof(prefix.address));
		assert_int_equal(bpf_map_lookup_elem(to.outer_sources, &prefix, &one), 0);
	}
	assert_int_equal(bpf_map_lookup_elem(to.ifaces, &(uint32_t){255}, &found_iface), 0);
	assert_int_equal(found_iface.ifindex, 5);
	for (enum maps_inner kind = MAPS_TABLE_S; kind <= MAPS_TABLE_M; kind++) {
		value = calloc(1, maps_inner_size(&to, kind));
		assert_int_equal(maps_inner_read(&to, kind, 7, value), 0);
		assert_int_equal(((struct shunt_table *)value)->epoch, 77 + kind);
		assert_int_equal(maps_inner_read(&to, kind, 6, value), -ENOENT);
		free(value);
	}
	value = calloc(1, snapshot_size(&old));
	back = calloc(1, snapshot_size(&new));
	assert_int_equal(maps_inner_read(&from, MAPS_SNAPSHOT, 0, value), 0);
	assert_int_equal(maps_inner_read(&to, MAPS_SNAPSHOT, 0, back), 0);
	same_content(value, &old, back, &new);
	free(value);
	free(back);
	free(cpu);
	remove_instance(&from);
	remove_instance(&to);
}

static uint64_t word_of(const struct maps *maps, uint32_t number)
{
	struct shunt_flow_bucket bucket;

	assert_int_equal(bpf_map_lookup_elem(maps->flows, &(uint32_t){number / SHUNT_FLOW_WAYS}, &bucket), 0);
	return bucket.word[number % SHUNT_FLOW_WAYS];
}

/* Of five slots in transition that have own words from 80 on, and no ranges: entries keep their places. */
static void own_words_are_copied_where_they_were(void **state)
{
	const struct maps_capacities old = {.services = 1, .addresses = 1, .pools = 2, .backends = 1, .flows = 100};
	const struct maps_capacities more = {.services = 1, .addresses = 1, .pools = 2, .backends = 1, .flows = 200};
	const struct maps_capacities less = {.services = 1, .addresses = 1, .pools = 2, .backends = 1, .flows = 20};
	const uint64_t first = shunt_flow_word(2, 0, 0, SHUNT_FLOW_LIVE, 0, 1);
	const uint64_t second = shunt_flow_word(4, 0, 0, SHUNT_FLOW_LIVE, 0, 2);
	const uint64_t third = shunt_flow_word(6, 0, 0, SHUNT_FLOW_LIVE, 0, 3);
	struct shunt_flow_bucket bucket = {.word = {first, second, 0, SHUNT_FLOW_USED}};
	struct report report = {};
	struct maps from, to, small;
	struct shunt_table *table;
	uint16_t *owner;

	(void)state;
	open_instance("from", &old, &from);
	open_instance("more", &more, &to);
	open_instance("less", &less, &small);
	table = calloc(1, maps_inner_size(&from, MAPS_TABLE_S));
	owner = (uint16_t *)((char *)table + SHUNT_TABLE_OWNER(SHUNT_SLOTS_S));
	*table = (struct shunt_table){.slots = 5, .pool = 1, .own = 80, .flags = SHUNT_TABLE_IN_TRANSITION};
	for (int i = 0; i < 5; i++)
		owner[i] = SHUNT_SLOT_TRACKED;
	assert_int_equal(maps_inner_publish(&from, MAPS_TABLE_S, 1, table), 0);
	put(from.flows, 10, &bucket);

	assert_int_equal(upgrade_copy(&from, &to, NULL), 0);
	assert_true(word_of(&to, 80) == first && word_of(&to, 81) == second);
	/* Where there is none, packets that use the new one leave the place to what may come into the old one
	 * meanwhile. */
	assert_true(word_of(&to, 82) == SHUNT_FLOW_LOCKED && word_of(&to, 83) == SHUNT_FLOW_LOCKED);
	/* Then: what the new one has is newer, what it lacks comes to the same place. */
	put(to.flows, 10, &(struct shunt_flow_bucket){.word = {third, second, SHUNT_FLOW_LOCKED, SHUNT_FLOW_LOCKED}});
	bucket.word[2] = third;
	put(from.flows, 10, &bucket);
	assert_int_equal(upgrade_update_flows(&from, &to, true, NULL), 0);
	assert_true(word_of(&to, 80) == third && word_of(&to, 81) == second && word_of(&to, 82) == third);
	assert_true(word_of(&to, 83) == SHUNT_FLOW_USED && word_of(&to, 84) == SHUNT_FLOW_USED);

	assert_int_equal(upgrade_copy(&from, &small, &report), -ENOSPC);
	assert_int_equal(report.count, 1);
	report_free(&report);
	free(table);
	remove_instance(&from);
	remove_instance(&to);
	remove_instance(&small);
}

static void a_table_beyond_the_pools_is_refused(void **state)
{
	const struct maps_capacities many = {.services = 1, .addresses = 1, .pools = 4, .backends = 1, .flows = 1};
	const struct maps_capacities few = {.services = 1, .addresses = 1, .pools = 3, .backends = 1, .flows = 1};
	struct report report = {};
	struct maps from, to;
	void *value;

	(void)state;
	open_instance("many", &many, &from);
	open_instance("few", &few, &to);
	value = calloc(1, maps_inner_size(&from, MAPS_TABLE_S));
	assert_int_equal(maps_inner_publish(&from, MAPS_TABLE_S, 3, value), 0);
	assert_int_equal(upgrade_copy(&from, &to, &report), -ENOSPC);
	assert_int_equal(report.count, 1);
	assert_string_equal(report.entries[0].text, "--pools is too small for what is in use: at least 4");
	report_free(&report);
	free(value);
	remove_instance(&from);
	remove_instance(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_snapshot_keeps_its_content),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(a_damaged_snapshot_is_refused),
		cmocka_unit_test(a_whole_set_is_copied),
		cmocka_unit_test(a_table_beyond_the_pools_is_refused),
		cmocka_unit_test(own_words_are_copied_where_they_were),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
