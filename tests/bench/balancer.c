/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Balancers for the benchmark: the product's engine, maps and program, each on an instance of its own. */
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <shunt/flow.h>

#include "addr.h"
#include "document.h"
#include "live.h"
#include "program.h"

#define HOSTS 200 /* backends that differ in the last byte alone */

static unsigned int opened; /* instances of this process */

static void instance_name(unsigned int number, char name[SHUNT_INSTANCE_MAX + 1])
{
	snprintf(name, SHUNT_INSTANCE_MAX + 1, "bench-%d-%u", getpid(), number);
}

static void die_report(const char *what, const struct report *report)
{
	char *text = report_text(report);

	fprintf(stderr, "path: %s:\n%s", what, text ? text : "");
	exit(1);
}

/* ---- documents ---- */

static void write_pool(FILE *out, const struct setup *setup, unsigned int pool, bool changed)
{
	const char *encapsulation = setup->encapsulation ?: "ipip";

	fprintf(out, "- name: pool%u\n  encapsulation: {type: %s}\n  backends:\n", pool, encapsulation);
	for (unsigned int i = 0; setup->transition && i < setup->backends; i++)
		fprintf(out, "  - {name: old%u, address: 10.200.%u.%u, weight: %d}\n", i, PATH_LEAVING,
			PATH_FIRST_HOST + i, !changed);
	for (unsigned int i = 0; (changed || !setup->transition) && i < setup->backends; i++)
		fprintf(out, "  - {name: a%u, address: 10.200.%u.%u}\n", i, pool + i / HOSTS,
			PATH_FIRST_HOST + i % HOSTS);
	fprintf(out, "- name: six%u\n  encapsulation: {type: %s}\n  backends:\n", pool, encapsulation);
	for (unsigned int i = 0; i < setup->backends; i++)
		fprintf(out, "  - {name: b%u, address: \"fd00:c8::%x:%x\"}\n", i, pool, i + 1);
}

static char *write_document(const struct setup *setup, bool changed)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	fprintf(out, "version: 1\nhash-key: \"000102030405060708090a0b0c0d0e0f\"\npools:\n");
	for (unsigned int i = 0; i < setup->pools; i++)
		write_pool(out, setup, i, changed);
	fprintf(out, "services:\n");
	for (unsigned int i = 0; i < setup->services; i++) {
		unsigned int address = 1 + i / PATH_SERVICES_SIDE, port = 1 + i % PATH_SERVICES_SIDE;

		fprintf(out, "- {name: s%u, address: 192.0.2.%u, protocol: tcp, ports: [%u], pool: pool%u}\n", i,
			address, port, i % setup->pools);
		fprintf(out, "- {name: t%u, address: \"2001:db8::%x\", protocol: tcp, ports: [%u], pool: six%u}\n", i,
			address, port, i % setup->pools);
	}
	fclose(out);
	return text;
}

bool knows_encapsulation(const struct setup *setup)
{
	char *text = write_document(setup, false);
	struct report report = {};
	struct model *model;
	int error = document_parse(text, strlen(text), &model, &report);

	if (error)
		printf("%s: not measured, documents do not know it\n", setup->encapsulation ?: "");
	else
		model_free(model);
	free(text);
	return !error;
}

static void apply(struct engine *engine, const struct setup *setup, bool changed)
{
	char *text = write_document(setup, changed);
	struct report report = {};
	struct model *model;

	if (document_parse(text, strlen(text), &model, &report) || engine_apply(engine, model, NULL, &report))
		die_report("document", &report);
	free(text);
}

/* ---- ways ---- */

struct ways {
	struct engine *engine;
	struct engine_nexthop nexthop;
};

static void set_way(const union shunt_address *address, void *arg)
{
	struct ways *ways = arg;

	addr_parse(addr_is_v4(address) ? "10.200.255.1" : "fd00:c8::ffff", &ways->nexthop.source);
	engine_set_nexthop(ways->engine, address, &ways->nexthop);
}

/* Those that come are known before the document that names them is applied. */
static void change_backends(struct ways *ways, const struct setup *setup)
{
	for (unsigned int i = 0; i < setup->backends && i < HOSTS; i++) {
		union shunt_address address;
		char text[32];

		snprintf(text, sizeof(text), "10.200.0.%u", PATH_FIRST_HOST + i);
		addr_parse(text, &address);
		set_way(&address, ways);
	}
	apply(ways->engine, setup, true);
}

struct balancer open_balancer(const struct setup *setup, const char *dir, unsigned int ifindex)
{
	struct ways ways = {.nexthop = {.known = true,
					.ifindex = ifindex,
					.mac = {2, 0, 0, 0, 0, 1},
					.source_mac = {2, 0, 0, 0, 0, 2},
					.mtu = 1500}};
	char name[SHUNT_INSTANCE_MAX + 1];
	struct engine_options options = {.instance = name};
	struct balancer balancer = {};
	struct engine_pool_info info;
	struct report report = {};
	struct bpf_object *object;

	instance_name(opened++, name);
	if (engine_open(&options, &ways.engine, &report))
		die_report(name, &report);
	apply(ways.engine, setup, false);
	engine_addresses(ways.engine, set_way, &ways);
	if (engine_publish(ways.engine, &report) ||
	    program_load(PROGRAM_LB, dir, &(struct program_options){}, engine_maps(ways.engine), &object,
			 &balancer.program, &report))
		die_report(name, &report);
	if (setup->transition)
		change_backends(&ways, setup);
	if (engine_pool_info(ways.engine, "pool0", &info) || !!info.unsettled != setup->transition)
		die("slots in transition", EINVAL);
	balancer.engine = ways.engine;
	return balancer;
}

static int remove_pin(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void remove_instances(void)
{
	char path[128], name[SHUNT_INSTANCE_MAX + 1];

	for (unsigned int i = 0; i < opened; i++) {
		instance_name(i, name);
		snprintf(path, sizeof(path), SHUNT_PIN_ROOT "/%s", name);
		nftw(path, remove_pin, 8, FTW_DEPTH | FTW_PHYS);
		snprintf(path, sizeof(path), "/run/shunt/%s.lock", name);
		unlink(path);
	}
}

void close_balancer(struct balancer *balancer)
{
	engine_close(balancer->engine);
	free(balancer->used);
}

/* ---- the flow table ---- */

static struct shunt_flow_bucket *map_flows(const struct maps *maps, size_t *n)
{
	struct shunt_flow_bucket *buckets;

	*n = SHUNT_FLOW_BUCKETS((size_t)maps->meta.flows);
	buckets = mmap(NULL, *n * sizeof(*buckets), PROT_READ | PROT_WRITE, MAP_SHARED, maps->flows, 0);
	if (buckets == MAP_FAILED)
		die("flow table", errno);
	return buckets;
}

static bool is_empty(const struct shunt_flow_bucket *bucket)
{
	uint64_t any = 0;

	for (int i = 0; i < SHUNT_FLOW_WAYS; i++)
		any |= bucket->word[i];
	return !any;
}

/* The same flows leave their entries in the same buckets each time. */
static void find_used(struct balancer *balancer, const struct shunt_flow_bucket *buckets, size_t n)
{
	balancer->used = malloc(n * sizeof(*balancer->used));
	if (!balancer->used)
		die("buckets", ENOMEM);
	for (size_t i = 0; i < n; i++)
		if (!is_empty(&buckets[i]))
			balancer->used[balancer->n_used++] = (uint32_t)i;
}

void wipe_flows(struct balancer *balancer)
{
	size_t n;
	struct shunt_flow_bucket *buckets = map_flows(engine_maps(balancer->engine), &n);

	if (!balancer->n_used) {
		free(balancer->used);
		find_used(balancer, buckets, n);
	}
	for (size_t i = 0; i < balancer->n_used; i++)
		memset(&buckets[balancer->used[i]], 0, sizeof(*buckets));
	munmap(buckets, n * sizeof(*buckets));
}

struct shunt_pool_stats flow_stats(const struct balancer *balancer)
{
	const struct maps *maps = engine_maps(balancer->engine);
	struct shunt_pool_stats *cpus = calloc((size_t)maps->n_cpus, sizeof(*cpus)), sum = {};
	struct engine_pool_info info;

	if (engine_pool_info(balancer->engine, "pool0", &info) || !cpus ||
	    bpf_map_lookup_elem(maps->pool_stats, &info.index, cpus))
		die("counters of the pool", EINVAL);
	for (int i = 0; i < maps->n_cpus; i++) {
		sum.inserted += cpus[i].inserted;
		sum.refused += cpus[i].refused;
	}
	free(cpus);
	return sum;
}
