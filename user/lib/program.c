/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "kernel.h"
#include "maps_internal.h"
#include "program.h"

#define CONFIG_SECTION ".rodata.config"
#define PROGRAM_MAPS_MAX 64u
#define LOG_SIZE (16u << 20) /* of the verifier's log: the most that every kernel takes */
#define LOG_LINES 4	     /* of its end, in the report */

static const struct {
	const char *object, *function;
	const struct set_range *range;
} roles[] = {
	[PROGRAM_LB] = {"shunt.bpf.o", "shunt", &set_lb},
	[PROGRAM_DECAP] = {"shunt_decap.bpf.o", "shunt_decap", &set_decap},
	[PROGRAM_EXPLAIN] = {"shunt_explain.bpf.o", "shunt", &set_lb},
	[PROGRAM_PROBE] = {"shunt_probe.bpf.o", "shunt_probe", &set_lb},
};

const char *program_function(enum program_role role)
{
	return roles[role].function;
}

/* libbpf tells some reasons only to its print callback: the last one is kept for the report. */
static __thread char last_warning[256];

static int keep_warning(enum libbpf_print_level level, const char *format, va_list args)
{
	char text[sizeof(last_warning)];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	if (!strstr(text, "BEGIN PROG LOAD LOG"))
		memcpy(last_warning, text, sizeof(text));
	return 0;
}

/* The end of a log: its last `lines` lines, on one. */
static const char *log_tail(char *log, unsigned int lines)
{
	size_t length = strlen(log);
	char *start;

	while (length && log[length - 1] == '\n')
		log[--length] = '\0';
	for (start = log + length; start > log; start--) {
		if (start[-1] != '\n')
			continue;
		if (!--lines)
			break;
		start[-1] = ' ';
	}
	return start;
}

static bool try_object(const char *dir, enum program_role role, char *path, size_t size)
{
	return (size_t)snprintf(path, size, "%s/%s", dir, roles[role].object) < size && !access(path, R_OK);
}

static int find_object(const char *dir, enum program_role role, char *path, size_t size, struct report *report)
{
	char self[512] = "", beside[600];
	ssize_t length;

	if (!dir)
		dir = getenv("SHUNT_OBJECT_DIR");
	if (dir)
		return try_object(dir, role, path, size)
			       ? 0
			       : report_error(report, -ENOENT, "%s: no readable %s there", dir, roles[role].object);
	length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length > 0 && strrchr(self, '/'))
		*strrchr(self, '/') = '\0';
	if (try_object(self, role, path, size))
		return 0;
	snprintf(beside, sizeof(beside), "%s/../lib/shunt", self);
	if (try_object(beside, role, path, size))
		return 0;
	return report_error(report, -ENOENT,
			    "%s is neither in %s nor in %s: run `make install`, or name its folder in SHUNT_OBJECT_DIR",
			    roles[role].object, self, beside);
}

static int set_config(struct bpf_object *object, const struct program_options *options, const struct maps *maps,
		      struct report *report)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, CONFIG_SECTION);
	struct shunt_config config = {.frags = options->frags,
				      .gue_port = (SHUNT_FORCE __be16)htons(options->gue_port)};
	int error;

	if (!map)
		return report_error(report, -EUCLEAN,
				    "the object has no section " CONFIG_SECTION ": install program and objects of one "
				    "version");
	config.address_buckets = SHUNT_ADDRESS_BUCKETS(maps->meta.addresses);
	config.service_buckets = SHUNT_SERVICE_BUCKETS(maps->meta.services);
	error = bpf_map__set_initial_value(map, &config, sizeof(config));
	if (error)
		return report_error(report, error,
				    "the object's section " CONFIG_SECTION " is not what this program writes: install "
				    "program and objects of one version");
	return 0;
}

static int reuse_maps(struct bpf_object *object, enum program_role role, const struct maps *maps, struct report *report)
{
	const struct set_range *range = roles[role].range;
	struct maps fds = *maps;
	struct bpf_map *map;

	for (enum set_map i = range->first; i <= range->last; i++) {
		int error;

		map = bpf_object__find_map_by_name(object, maps_spec(i, &maps->meta).name);
		if (!map)
			continue;
		error = bpf_map__reuse_fd(map, *maps_set_fd(&fds, i));
		if (error)
			return kernel_error(report, error, "cannot use the pinned map '%s'", bpf_map__name(map));
	}
	bpf_object__for_each_map(map, object)
	{
		/* Scratch maps and tail calls are the program's own. */
		if (!bpf_map__is_internal(map) && bpf_map__fd(map) < 0 &&
		    bpf_map__type(map) != BPF_MAP_TYPE_PROG_ARRAY &&
		    strncmp(bpf_map__name(map), "scratch_", strlen("scratch_")) != 0)
			return report_error(report, -EUCLEAN,
					    "the object has a map '%s' that ABI %u does not know: install program and "
					    "objects of one version",
					    bpf_map__name(map), SHUNT_ABI);
	}
	return 0;
}

static int prepare(struct bpf_object *object, enum program_role role, const struct program_options *options,
		   const struct maps *maps, struct bpf_program **out, struct report *report)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, roles[role].function), *other;
	int error;

	if (!program)
		return report_error(report, -EUCLEAN, "%s has no program '%s'", roles[role].object,
				    roles[role].function);
	error = set_config(object, options, maps, report);
	if (!error)
		error = reuse_maps(object, role, maps, report);
	/* All of them: a program and what it tail calls must agree. */
	bpf_object__for_each_program(other, object)
	{
		if (!error && options->frags)
			error = bpf_program__set_flags(other, bpf_program__flags(other) | BPF_F_XDP_HAS_FRAGS);
	}
	if (!error)
		*out = program;
	return error;
}

static int report_load(int error, const char *path, char *log, struct report *report)
{
	const char *why = *log ? log_tail(log, LOG_LINES) : last_warning;

	return kernel_error(report, error, "the kernel refused to load %s (%s)", path, *why ? why : "no log");
}

static int load(const char *path, enum program_role role, const struct program_options *options,
		const struct maps *maps, char *log, struct bpf_object **out, int *program_fd, struct report *report)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_buf = log, .kernel_log_size = LOG_SIZE);
	struct bpf_object *object = bpf_object__open_file(path, &opts);
	struct bpf_program *program = NULL;
	int error;

	if (!object)
		return report_error(report, -EINVAL, "%s is no BPF object (%s): install it again", path, last_warning);
	error = prepare(object, role, options, maps, &program, report);
	if (!error) {
		error = bpf_object__load(object);
		if (error)
			report_load(error, path, log, report);
	}
	if (error) {
		bpf_object__close(object);
		return error;
	}
	*out = object;
	*program_fd = bpf_program__fd(program);
	return 0;
}

int program_load(enum program_role role, const char *dir, const struct program_options *options,
		 const struct maps *maps, struct bpf_object **out, int *program_fd, struct report *report)
{
	libbpf_print_fn_t print;
	char path[700], *log;
	int error;

	error = find_object(dir, role, path, sizeof(path), report);
	if (error)
		return error;
	log = calloc(1, LOG_SIZE); /* untouched pages cost nothing */
	if (!log)
		return -ENOMEM;
	*last_warning = '\0';
	print = libbpf_set_print(keep_warning);
	error = load(path, role, options, maps, log, out, program_fd, report);
	libbpf_set_print(print);
	free(log);
	return error;
}

/* The load-time constants in a map of a program, if it is theirs. */
static int read_config(uint32_t map_id, struct shunt_config *out)
{
	struct bpf_map_info info = {};
	__u32 size = sizeof(info), zero = 0;
	int fd = bpf_map_get_fd_by_id(map_id), error;

	if (fd < 0)
		return -errno;
	error = bpf_obj_get_info_by_fd(fd, &info, &size) ? -errno : 0;
	if (!error && (strcmp(info.name, CONFIG_SECTION) != 0 || info.value_size != sizeof(*out)))
		error = -ENOENT;
	if (!error && bpf_map_lookup_elem(fd, &zero, out))
		error = -errno;
	close(fd);
	return error;
}

/* How many maps it uses, or -errno. */
static int maps_of(uint32_t program_id, __u32 ids[static PROGRAM_MAPS_MAX])
{
	struct bpf_prog_info info = {.nr_map_ids = PROGRAM_MAPS_MAX, .map_ids = (uintptr_t)ids};
	int fd = bpf_prog_get_fd_by_id(program_id), error;
	__u32 size = sizeof(info);

	if (fd < 0)
		return -errno;
	error = bpf_obj_get_info_by_fd(fd, &info, &size) ? -errno : 0;
	close(fd);
	if (error)
		return error;
	return (int)(info.nr_map_ids < PROGRAM_MAPS_MAX ? info.nr_map_ids : PROGRAM_MAPS_MAX);
}

int program_uses_map(uint32_t program_id, uint32_t map_id)
{
	__u32 ids[PROGRAM_MAPS_MAX] = {};
	int n = maps_of(program_id, ids);

	for (int i = 0; i < n; i++)
		if (ids[i] == map_id)
			return 1;
	return n < 0 ? n : 0;
}

int program_gue_port(uint32_t program_id)
{
	__u32 ids[PROGRAM_MAPS_MAX] = {};
	int n = maps_of(program_id, ids), error = n < 0 ? n : -ENOENT;
	struct shunt_config config = {};

	for (int i = 0; error == -ENOENT && i < n; i++)
		error = read_config(ids[i], &config);
	return error ? error : ntohs((SHUNT_FORCE uint16_t)config.gue_port);
}
