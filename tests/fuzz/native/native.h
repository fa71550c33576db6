/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's side of a BPF program that was compiled as C: frames, maps, helpers.  Include it behind the program's
 * source.  A frame is one segment between poisoned memory, so that ASan sees each byte read or written outside.
 */
#ifndef NATIVE_H
#define NATIVE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <sanitizer/asan_interface.h>

#define NATIVE_HEADROOM 256u
#define NATIVE_FRAME_MAX 4096u
#define NATIVE_ARENA (NATIVE_HEADROOM + NATIVE_FRAME_MAX + 256u)

#define NATIVE_CHECK(condition, ...)                                                                                   \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s: ", #condition);                                                           \
			fprintf(stderr, __VA_ARGS__);                                                                  \
			fputc('\n', stderr);                                                                           \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

/* ---- maps: arrays, arrays of them, and lists of prefixes ---- */

enum native_kind { NATIVE_ARRAY, NATIVE_OUTER, NATIVE_PREFIXES };

struct native_map {
	void *map; /* the program's variable; an inner map is its own entry */
	enum native_kind kind;
	uint32_t entries;
	size_t size; /* of a value */
	void *values;
};

static struct native_map native_maps[32];
static size_t native_n_maps;

static struct native_map *native_add(void *map, enum native_kind kind, uint32_t entries, size_t size, void *values)
{
	struct native_map *added = &native_maps[native_n_maps++];

	*added = (struct native_map){map ? map : added, kind, entries, size, values};
	return added;
}

struct native_prefix {
	struct shunt_prefix prefix;
	uint8_t value;
};

static void *native_longest(const struct native_map *map, const struct shunt_prefix *key)
{
	struct native_prefix *list = map->values, *best = NULL;

	for (uint32_t i = 0; i < map->entries; i++) {
		uint32_t bits = list[i].prefix.length, whole = bits / 8;
		const uint8_t *address = list[i].prefix.address;

		if (bits > key->length || (best && best->prefix.length >= bits) ||
		    memcmp(address, key->address, whole) != 0 ||
		    (bits % 8 && (address[whole] ^ key->address[whole]) >> (8 - bits % 8)))
			continue;
		best = &list[i];
	}
	return best ? &best->value : NULL;
}

void *bpf_map_lookup_elem(void *map, const void *key)
{
	for (size_t i = 0; i < native_n_maps; i++) {
		const struct native_map *found = &native_maps[i];
		uint32_t index;

		if (found->map != map)
			continue;
		if (found->kind == NATIVE_PREFIXES)
			return native_longest(found, key);
		memcpy(&index, key, sizeof(index));
		if (index >= found->entries)
			return NULL;
		if (found->kind == NATIVE_OUTER)
			return ((void **)found->values)[index];
		return (char *)found->values + index * found->size;
	}
	NATIVE_CHECK(0, "a look-up in an unknown map");
}

/* The program's load-time constants: const for the program, set here.  The compiler must not see that it is them. */
static void native_configure(const struct shunt_config *value)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)&config, from = at & ~(page - 1);

	NATIVE_CHECK(!mprotect((void *)from, at + sizeof(config) - from, PROT_READ | PROT_WRITE), "mprotect");
	asm volatile("" : "+r"(at));
	memcpy((void *)at, value, sizeof(*value));
}

/* ---- the frame ---- */

static struct {
	unsigned char *arena;
	struct xdp_md context;
	uint32_t beyond; /* bytes in further segments */
	bool no_adjust;	 /* the driver refuses to move the head */
	uint32_t redirected;
} native;

static void native_poison(void)
{
	ASAN_POISON_MEMORY_REGION(native.arena, NATIVE_ARENA);
	ASAN_UNPOISON_MEMORY_REGION((void *)(uintptr_t)native.context.data,
				    native.context.data_end - native.context.data);
}

static void native_frame(const void *bytes, size_t size, uint32_t ifindex)
{
	if (!native.arena) {
		native.arena = mmap(NULL, NATIVE_ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT,
				    -1, 0);
		NATIVE_CHECK(native.arena != MAP_FAILED, "mmap");
	}
	ASAN_UNPOISON_MEMORY_REGION(native.arena, NATIVE_ARENA);
	memset(native.arena, 0xa5, NATIVE_ARENA);
	memcpy(native.arena + NATIVE_HEADROOM, bytes, size);
	native.context = (struct xdp_md){
		.data = (uint32_t)(uintptr_t)native.arena + NATIVE_HEADROOM,
		.data_end = (uint32_t)(uintptr_t)native.arena + NATIVE_HEADROOM + (uint32_t)size,
		.ingress_ifindex = ifindex,
	};
	native.redirected = 0;
	native_poison();
}

static const unsigned char *native_data(void)
{
	return (const unsigned char *)(uintptr_t)native.context.data;
}

static size_t native_size(void)
{
	return native.context.data_end - native.context.data;
}

/* As the kernel does: 40 bytes of the headroom are its own, and an Ethernet header must be left. */
long bpf_xdp_adjust_head(struct xdp_md *ctx, int delta)
{
	uint32_t first = (uint32_t)(uintptr_t)native.arena + 40, data = ctx->data + (uint32_t)delta;

	if (native.no_adjust || data < first || data > ctx->data_end - 14)
		return -22;
	ctx->data = data;
	native_poison();
	return 0;
}

/* Only ever shorter here: further segments first, and an Ethernet header must be left. */
long bpf_xdp_adjust_tail(struct xdp_md *ctx, int delta)
{
	uint32_t less = (uint32_t)-delta, first = less < native.beyond ? less : native.beyond;

	if (delta > 0 || less - first > ctx->data_end - ctx->data - 14)
		return -22;
	native.beyond -= first;
	ctx->data_end -= less - first;
	native_poison();
	return 0;
}

/* A clock that every look moves by a hundredth of a second. */
__u64 bpf_ktime_get_coarse_ns(void)
{
	static __u64 now = 1ull << 40;

	now += 10000000;
	return now;
}

/* Never the same twice: each packet asks for the clock. */
__u64 bpf_jiffies64(void)
{
	static __u64 jiffies;

	return ++jiffies;
}

__u64 bpf_xdp_get_buff_len(struct xdp_md *ctx)
{
	return (__u64)(ctx->data_end - ctx->data) + native.beyond;
}

/* Every address is the host's, or nobody's. */
long bpf_fib_lookup(void *ctx, struct bpf_fib_lookup *params, int size, __u32 flags)
{
	NATIVE_CHECK(ctx == &native.context && size == sizeof(*params) && !flags, "bpf_fib_lookup(%d, %u)", size,
		     flags);
	NATIVE_CHECK(params->family == 2 || params->family == 10, "family %u", params->family);
	return BPF_FIB_LKUP_RET_NOT_FWDED;
}

long bpf_redirect(__u32 ifindex, __u64 flags)
{
	NATIVE_CHECK(!flags && ifindex, "bpf_redirect(%u, %llu)", ifindex, (unsigned long long)flags);
	native.redirected = ifindex;
	return XDP_REDIRECT;
}

#endif
