/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <linux/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel.h"
#include "probe.h"
#include "probe_net.h"
#include "program.h"
#include "rtnetlink.h"

#define ALIAS "shunt-probe "
#define NUMBER_SHIFT 16
#define MARK_MASK 0xffff0000u

struct probe {
	struct mnl_socket *socket;
	struct bpf_object *object;
	uint16_t *sizes; /* mapped: [SHUNT_BACKENDS_MAX] */
	size_t mapped;
	uint32_t number, ifindex;
	bool built, v4, v6;
	char name[IFNAMSIZ], peer[IFNAMSIZ];
};

static uint32_t base_mark(const struct probe *probe)
{
	return SHUNT_PROBE_MARK | probe->number << NUMBER_SHIFT;
}

/* FNV-1a: an instance begins its search at the same number each time. */
static uint32_t first_number(const char *instance)
{
	uint32_t hash = 2166136261u;

	for (; *instance; instance++)
		hash = (hash ^ (unsigned char)*instance) * 16777619u;
	return hash % PROBE_NUMBERS;
}

static void take_number(struct probe *probe, uint32_t number)
{
	probe->number = number;
	snprintf(probe->name, sizeof(probe->name), "shuntp%02x", number);
	snprintf(probe->peer, sizeof(probe->peer), "shuntq%02x", number);
}

/* Rules go one by one; routes go with their interface. */
static void remove_all(struct probe *probe)
{
	static const int families[] = {AF_INET, AF_INET6};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		while (!probe_net_rule(probe->socket, false, families[i], base_mark(probe), MARK_MASK,
				       PROBE_TABLE_FIRST + probe->number))
			;
	probe_net_delete(probe->socket, probe->name);
}

/* The pair of this number: ours, made anew.  -EEXIST: another instance's. */
static int try_number(struct probe *probe, const char *alias)
{
	char other[256];
	uint32_t ifindex;
	int ret = probe_net_find(probe->socket, probe->name, &ifindex, other, sizeof(other));

	if (!ret && strcmp(other, alias) != 0)
		return -EEXIST;
	if (ret && ret != -ENODEV)
		return ret;
	remove_all(probe);
	ret = probe_net_add_pair(probe->socket, probe->name, probe->peer, alias);
	if (!ret)
		ret = probe_net_find(probe->socket, probe->name, &probe->ifindex, other, sizeof(other));
	return ret;
}

static int make_pair(struct probe *probe, const char *instance, struct report *report)
{
	char alias[sizeof(ALIAS) + SHUNT_INSTANCE_MAX];
	uint32_t first = first_number(instance);
	int ret = -EEXIST;

	snprintf(alias, sizeof(alias), ALIAS "%s", instance);
	for (uint32_t i = 0; i < PROBE_NUMBERS && ret == -EEXIST; i++) {
		take_number(probe, (first + i) % PROBE_NUMBERS);
		ret = try_number(probe, alias);
	}
	probe->built = !ret;
	return ret ? kernel_error(report, ret, "cannot make the interfaces of health checks (%s)", probe->name) : 0;
}

/* A host without a family has no checks of it. */
static int make_routes(struct probe *probe, struct report *report)
{
	static const int families[] = {AF_INET, AF_INET6};
	int ret = 0;

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		uint32_t table = PROBE_TABLE_FIRST + probe->number;

		ret = probe_net_add_route(probe->socket, families[i], table, probe->ifindex);
		if (!ret)
			ret = probe_net_rule(probe->socket, true, families[i], base_mark(probe), MARK_MASK, table);
		if (!ret)
			*(families[i] == AF_INET ? &probe->v4 : &probe->v6) = true;
	}
	if (!probe->v4 && !probe->v6)
		return kernel_error(report, ret, "cannot route health checks to %s", probe->name);
	return 0;
}

static int attach_program(struct probe *probe, const struct maps *maps, struct report *report)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)probe->ifindex, .attach_point = BPF_TC_EGRESS);
	LIBBPF_OPTS(bpf_tc_opts, opts, .handle = 1, .priority = 1);
	struct bpf_map *map;
	int fd, ret = program_load(PROGRAM_PROBE, NULL, &(struct program_options){}, maps, &probe->object, &fd, report);

	if (ret)
		return ret;
	map = bpf_object__find_map_by_name(probe->object, ".bss");
	if (!map || bpf_map__value_size(map) < SHUNT_BACKENDS_MAX * sizeof(*probe->sizes))
		return report_error(report, -EUCLEAN,
				    "shunt_probe.bpf.o has no room for sizes: install program and objects of one "
				    "version");
	probe->mapped = bpf_map__value_size(map);
	probe->sizes = mmap(NULL, probe->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (probe->sizes == MAP_FAILED) {
		probe->sizes = NULL;
		return kernel_error(report, -errno, "cannot map the sizes of health checks");
	}
	opts.prog_fd = fd;
	ret = bpf_tc_hook_create(&hook);
	if (!ret || ret == -EEXIST)
		ret = bpf_tc_attach(&hook, &opts);
	return ret ? kernel_error(report, ret, "cannot attach shunt_probe to %s", probe->name) : 0;
}

int probe_open(const char *instance, const struct maps *maps, struct probe **out, struct report *report)
{
	struct probe *probe = calloc(1, sizeof(*probe));
	int ret = probe ? rtnetlink_open(&probe->socket) : -ENOMEM;

	if (!ret)
		ret = make_pair(probe, instance, report);
	/* Before anything is routed there. */
	if (!ret)
		ret = attach_program(probe, maps, report);
	if (!ret)
		ret = make_routes(probe, report);
	if (ret) {
		probe_close(probe);
		return ret;
	}
	*out = probe;
	return 0;
}

void probe_close(struct probe *probe)
{
	if (!probe)
		return;
	if (probe->built)
		remove_all(probe);
	if (probe->sizes)
		munmap(probe->sizes, probe->mapped);
	bpf_object__close(probe->object);
	if (probe->socket)
		mnl_socket_close(probe->socket);
	free(probe);
}

bool probe_has(const struct probe *probe, bool v4)
{
	return v4 ? probe->v4 : probe->v6;
}

uint32_t probe_mark(const struct probe *probe, uint32_t backend)
{
	return base_mark(probe) | backend;
}

void probe_set_size(struct probe *probe, uint32_t backend, uint16_t bytes)
{
	if (backend < SHUNT_BACKENDS_MAX)
		probe->sizes[backend] = bytes;
}
