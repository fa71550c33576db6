/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's side of the native programs: frames, helpers, and the real maps, read through system calls. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "../packets/harness.h"
#include "shadow.h"

#define HEADROOM 256u
#define KERNEL_HEADROOM 40u /* what the kernel keeps of it */
#define FRAME_MAX 65536u
#define SEGMENT_MAX (4096u - HEADROOM - 320u) /* of a page, in a build for several segments */
#define COPIES_MAX 256

/* A value that the native program has looked up, by map and key; an inner map is one too. */
struct copy {
	int fd;
	unsigned char key[64];
	uint32_t key_size;
	void *value;
	int inner; /* what an element of a map of maps is, or -1 */
};

static struct {
	unsigned char *arena;
	struct xdp_md context;
	uint32_t first, beyond;
	const struct shadow_program *program;
	struct bpf_object *object;
	struct copy copies[COPIES_MAX];
	size_t n_copies;
} shadow;

static int map_fd(const void *map)
{
	for (size_t i = 0; i < shadow.n_copies; i++) {
		if (shadow.copies[i].inner >= 0 && shadow.copies[i].value == map)
			return shadow.copies[i].inner;
	}
	for (const struct shadow_map *at = shadow.program->maps; at->name; at++) {
		if (at->variable == map)
			return bpf_object__find_map_fd_by_name(shadow.object, at->name);
	}
	fprintf(stderr, "shadow: a look-up in a map that lb.c and decap.c do not list\n");
	abort();
}

void *shadow_lookup(void *map, const void *key)
{
	struct copy *copy = &shadow.copies[shadow.n_copies];
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);
	int fd = map_fd(map);

	if (bpf_obj_get_info_by_fd(fd, &info, &size) || info.key_size > sizeof(copy->key))
		abort();
	for (size_t i = 0; i < shadow.n_copies; i++) {
		if (shadow.copies[i].fd == fd && memcmp(shadow.copies[i].key, key, info.key_size) == 0)
			return shadow.copies[i].value;
	}
	if (shadow.n_copies == COPIES_MAX)
		abort();
	/* Of a map for each CPU there are as many values as CPUs; the program sees the first. */
	size = info.type == BPF_MAP_TYPE_PERCPU_ARRAY ? (uint32_t)libbpf_num_possible_cpus() : 1;
	*copy = (struct copy){
		.fd = fd, .key_size = info.key_size, .value = calloc(size, (info.value_size + 7) & ~7u), .inner = -1};
	memcpy(copy->key, key, info.key_size);
	if (!copy->value || bpf_map_lookup_elem(fd, key, copy->value)) {
		free(copy->value);
		return NULL;
	}
	if (info.type == BPF_MAP_TYPE_ARRAY_OF_MAPS)
		copy->inner = bpf_map_get_fd_by_id(*(uint32_t *)copy->value);
	shadow.n_copies++;
	return copy->value;
}

long bpf_xdp_adjust_head(struct xdp_md *ctx, int delta)
{
	uint32_t data = ctx->data + (uint32_t)delta;

	if (data < shadow.first || data > ctx->data_end - 14)
		return -EINVAL;
	ctx->data = data;
	return 0;
}

/* Shorter only: what is in further segments goes first. */
long bpf_xdp_adjust_tail(struct xdp_md *ctx, int delta)
{
	uint32_t less = (uint32_t)-delta, first = less < shadow.beyond ? less : shadow.beyond;

	if (delta > 0 || less - first > ctx->data_end - ctx->data - 14)
		return -EINVAL;
	shadow.beyond -= first;
	ctx->data_end -= less - first;
	return 0;
}

__u64 bpf_xdp_get_buff_len(struct xdp_md *ctx)
{
	return (__u64)(ctx->data_end - ctx->data) + shadow.beyond;
}

/* Every address is the host's, or nobody's. */
long bpf_fib_lookup(void *ctx, struct bpf_fib_lookup *params, int size, __u32 flags)
{
	(void)ctx;
	(void)params;
	(void)size;
	(void)flags;
	return BPF_FIB_LKUP_RET_NOT_FWDED;
}

long bpf_redirect(__u32 ifindex, __u64 flags)
{
	(void)ifindex;
	(void)flags;
	return XDP_REDIRECT;
}

__u64 bpf_ktime_get_coarse_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (__u64)now.tv_sec * 1000000000u + (__u64)now.tv_nsec;
}

/* Never the same twice: each packet asks for the clock. */
__u64 bpf_jiffies64(void)
{
	static __u64 jiffies;

	return ++jiffies;
}

/* The load-time constants: const for the program. */
static void configure(const struct shadow_program *program)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)program->config, from = at & ~(page - 1);
	struct bpf_map *map = bpf_object__find_map_by_name(shadow.object, ".rodata.config");
	int zero = 0;

	if (!map || mprotect((void *)from, at + program->config_size - from, PROT_READ | PROT_WRITE) ||
	    bpf_map_lookup_elem(bpf_map__fd(map), &zero, program->config))
		abort();
}

static void forget(void)
{
	while (shadow.n_copies) {
		struct copy *copy = &shadow.copies[--shadow.n_copies];

		if (copy->inner >= 0)
			close(copy->inner);
		free(copy->value);
	}
}

static void place(const struct harness_frame *frame)
{
	uint32_t size = (uint32_t)frame->size - frame->meta,
		 linear = frame->linear ? frame->linear - frame->meta : size;

	if (!shadow.arena)
		shadow.arena = mmap(NULL, HEADROOM + FRAME_MAX, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (shadow.arena == MAP_FAILED || size > FRAME_MAX)
		abort();
	if (linear > SEGMENT_MAX)
		linear = SEGMENT_MAX;
	memcpy(shadow.arena + HEADROOM, (const unsigned char *)frame->bytes + frame->meta, size);
	shadow.context = (struct xdp_md){.data = (uint32_t)(uintptr_t)shadow.arena + HEADROOM,
					 .ingress_ifindex = frame->ifindex};
	shadow.context.data_end = shadow.context.data + linear;
	shadow.first = (uint32_t)(uintptr_t)shadow.arena + KERNEL_HEADROOM + frame->meta;
	shadow.beyond = size - linear;
}

static void run(struct bpf_object *object, enum program_role role, const struct harness_frame *frame)
{
	static const struct shadow_program *const programs[HARNESS_ROLES] = {
		[PROGRAM_LB] = &shadow_lb,
		[PROGRAM_DECAP] = &shadow_decap,
		[PROGRAM_EXPLAIN] = &shadow_explain,
	};

	shadow.program = programs[role];
	shadow.object = object;
	if (shadow.program->config)
		configure(shadow.program);
	place(frame);
	shadow.program->run(&shadow.context);
	forget();
}

__attribute__((constructor)) static void shadow_install(void)
{
	harness_shadow = run;
}
