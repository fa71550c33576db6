/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters, and what the maps cost. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "maps_internal.h"

int maps_stats_read(const struct maps *maps, int fd, uint32_t index, struct shunt_stats *out)
{
	struct shunt_stats *cpu = calloc(maps->n_cpus, sizeof(*cpu)), sum = {};
	int error = 0;

	if (!cpu)
		return -ENOMEM;
	if (bpf_map_lookup_elem(fd, &index, cpu))
		error = -errno;
	for (int i = 0; i < maps->n_cpus; i++) {
		sum.packets += cpu[i].packets;
		sum.bytes += cpu[i].bytes;
	}
	free(cpu);
	if (!error)
		*out = sum;
	return error;
}

int maps_stats_clear(const struct maps *maps, int fd, uint32_t index)
{
	struct shunt_stats *cpu = calloc(maps->n_cpus, sizeof(*cpu));
	int error = 0;

	if (!cpu)
		return -ENOMEM;
	if (bpf_map_update_elem(fd, &index, cpu, BPF_ANY))
		error = -errno;
	free(cpu);
	return error;
}

int maps_reasons_read(int fd, int n_cpus, uint64_t out[SHUNT_NR_REASONS])
{
	struct shunt_reasons *cpu = calloc(n_cpus, sizeof(*cpu));
	uint32_t zero = 0;
	int error = 0;

	if (!cpu)
		return -ENOMEM;
	if (bpf_map_lookup_elem(fd, &zero, cpu))
		error = -errno;
	for (int reason = 0; reason < SHUNT_NR_REASONS && !error; reason++) {
		out[reason] = 0;
		for (int i = 0; i < n_cpus; i++)
			out[reason] += cpu[i].packets[reason];
	}
	free(cpu);
	return error;
}

int maps_fd_memory(int fd, uint64_t *bytes)
{
	unsigned long long value;
	int error = -ENODATA;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (error && fgets(line, sizeof(line), file))
		if (sscanf(line, "memlock: %llu", &value) == 1)
			error = 0;
	fclose(file);
	if (!error)
		*bytes += value;
	return error;
}

static int pin_memory(const char *path, uint64_t *bytes)
{
	int error, fd = bpf_obj_get(path);

	if (fd < 0)
		return 0; /* replaced meanwhile */
	error = maps_fd_memory(fd, bytes);
	close(fd);
	return error;
}

/* All of a kind are of one size: the first that is found is asked for it. */
static int inner_memory(const struct maps *maps, uint64_t *bytes)
{
	uint64_t of_kind[MAPS_NR_INNER] = {};
	char path[PIN_PATH_MAX + NAME_MAX];
	struct dirent *entry;
	enum maps_inner kind;
	uint32_t index;
	int error = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/" PIN_INNER, maps->dir);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!error && (entry = readdir(dir))) {
		if (!maps_inner_parse(entry->d_name, &kind, &index))
			continue;
		snprintf(path, sizeof(path), "%s/" PIN_INNER "/%s", maps->dir, entry->d_name);
		if (!of_kind[kind])
			error = pin_memory(path, &of_kind[kind]);
		*bytes += of_kind[kind];
	}
	closedir(dir);
	return error;
}

int maps_memory(const struct maps *maps, uint64_t *bytes, uint64_t *per_cpu_bytes)
{
	uint64_t common = 0, per_cpu = 0;
	int error = inner_memory(maps, &common);

	for (enum set_map i = set_lb.first; i <= set_lb.last && !error; i++) {
		struct map_spec spec = maps_spec(i, &maps->meta);
		struct maps copy = *maps;

		error = maps_fd_memory(*maps_set_fd(&copy, i),
				       spec.type == BPF_MAP_TYPE_PERCPU_ARRAY ? &per_cpu : &common);
	}
	if (error)
		return error;
	*bytes = common;
	*per_cpu_bytes = per_cpu;
	return 0;
}
