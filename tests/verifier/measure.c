/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * measure OBJECT...: loads each and prints, a line a program, tab-separated:
 *   object  program  instructions  jited-bytes  stack-bytes  verified-instructions  states
 * instructions: as the verifier left them; stack: the deepest chain of calls; states: explored in all.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <shunt/types.h>

#define LOG_SIZE (1u << 20)
#define PROGRAMS_MAX 4 /* of an object */
#define LOG_STATS 4    /* BPF_LOG_STATS: only the summary */

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

/* "stack depth 160+0+88": functions, of which the deepest chain is at most their sum. */
static unsigned int stack_of(const char *log)
{
	const char *at = strstr(log, "stack depth ");
	unsigned int sum = 0;
	char *end;

	for (at = at ? at + strlen("stack depth ") : NULL; at; at = *end == '+' ? end + 1 : NULL)
		sum += (unsigned int)strtoul(at, &end, 10);
	return sum;
}

static unsigned int number_after(const char *log, const char *words)
{
	const char *at = strstr(log, words);

	return at ? (unsigned int)strtoul(at + strlen(words), NULL, 10) : 0;
}

/* Options that add code; the verifier takes out what a constant of 0 makes dead. */
static int set_options(struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object)
	{
		struct shunt_config config = {.gue_port = htons(SHUNT_GUE_PORT)};

		if (strstr(bpf_map__name(map), ".rodata.config"))
			return bpf_map__set_initial_value(map, &config, sizeof(config));
	}
	return 0;
}

/* A row of a program that was loaded with this log. */
static int print_row(const char *name, const struct bpf_program *program, const char *log)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size))
		return 1;
	printf("%s\t%s\t%u\t%u\t%u\t%u\t%u\n", name, bpf_program__name(program),
	       (unsigned int)(info.xlated_prog_len / sizeof(struct bpf_insn)), info.jited_prog_len, stack_of(log),
	       info.verified_insns, number_after(log, "total_states "));
	return 0;
}

/* Each program has a log of its own. */
static int measure_object(struct bpf_object *object, const char *name, char (*logs)[LOG_SIZE])
{
	struct bpf_program *program;
	int n = 0, error;

	bpf_object__for_each_program(program, object)
	{
		if (n == PROGRAMS_MAX)
			return 1;
		bpf_program__set_log_level(program, LOG_STATS);
		bpf_program__set_log_buf(program, logs[n++], LOG_SIZE);
	}
	error = set_options(object) ?: bpf_object__load(object);
	n = 0;
	bpf_object__for_each_program(program, object)
	{
		if (!error)
			error = print_row(name, program, logs[n++]);
	}
	return error;
}

static int measure(const char *path)
{
	char(*logs)[LOG_SIZE] = calloc(PROGRAMS_MAX, LOG_SIZE); /* untouched pages cost nothing */
	struct bpf_object *object = bpf_object__open(path);
	const char *name = strrchr(path, '/');
	int error = 1;

	if (object && logs)
		error = measure_object(object, name ? name + 1 : path, logs);
	bpf_object__close(object);
	free(logs);
	return error;
}

int main(int argc, char **argv)
{
	libbpf_set_print(silent);
	for (int i = 1; i < argc; i++) {
		if (measure(argv[i])) {
			fprintf(stderr, "measure: %s does not load\n", argv[i]);
			return 1;
		}
	}
	return 0;
}
