/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pinned links: their names, and what the kernel knows of them. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#include "attach_internal.h"
#include "kernel.h"

static const char *const mode_names[] = {
	[ATTACH_NONE] = "none",	      [ATTACH_NATIVE] = "native", [ATTACH_GENERIC] = "generic",
	[ATTACH_OFFLOAD] = "offload", [ATTACH_AUTO] = "auto",
};
static const char *const role_names[] = {[PROGRAM_LB] = "lb", [PROGRAM_DECAP] = "decap"};
static const char *const variant_names[] = {"plain", "frags"};

const char *attach_mode_name(enum attach_mode mode)
{
	return mode_names[mode];
}

const char *attach_role_name(enum program_role role)
{
	return role_names[role];
}

uint64_t attach_netns(void)
{
	struct stat info;

	return stat("/proc/self/ns/net", &info) ? 0 : info.st_ino;
}

void attach_links_dir(const char *instance, char out[static PIN_PATH_MAX])
{
	snprintf(out, PIN_PATH_MAX, SHUNT_PIN_ROOT "/%s/links", instance);
}

void attach_pin_path(const struct attach_link *link, char out[static ATTACH_PIN_MAX])
{
	char dir[PIN_PATH_MAX];

	attach_links_dir(link->instance, dir);
	snprintf(out, ATTACH_PIN_MAX, "%.120s/%llu-%u-%s-%s", dir, (unsigned long long)link->netns, link->ifindex,
		 role_names[link->role], variant_names[link->frags]);
}

bool attach_parse_pin(const char *name, struct attach_link *out)
{
	unsigned long long netns;
	char role[8], variant[8];
	unsigned int ifindex;
	int end = 0;

	if (sscanf(name, "%20llu-%10u-%7[a-z]-%7[a-z]%n", &netns, &ifindex, role, variant, &end) != 4 || name[end])
		return false;
	for (unsigned int r = 0; r < 2; r++) {
		for (unsigned int v = 0; v < 2; v++) {
			if (strcmp(role, role_names[r]) != 0 || strcmp(variant, variant_names[v]) != 0)
				continue;
			out->netns = netns;
			out->ifindex = ifindex;
			out->role = (enum program_role)r;
			out->frags = v;
			return true;
		}
	}
	return false;
}

int attach_link_info(int fd, struct attach_link *link)
{
	struct bpf_link_info info = {};
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return -errno;
	if (info.type != BPF_LINK_TYPE_XDP)
		return -EUCLEAN;
	link->link_id = info.id;
	link->program_id = info.prog_id;
	link->alive = info.xdp.ifindex != 0;
	return 0;
}

struct list {
	struct attach_link *links;
	size_t count;
};

static int add_pin(struct list *list, const char *instance, const char *name)
{
	struct attach_link link = {}, *grown;
	int fd, error;

	if (!attach_parse_pin(name, &link))
		return 0;
	snprintf(link.instance, sizeof(link.instance), "%s", instance);
	attach_pin_path(&link, link.pin);
	fd = bpf_obj_get(link.pin);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	error = attach_link_info(fd, &link);
	close(fd);
	if (error)
		return error;
	grown = reallocarray(list->links, list->count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	list->links = grown;
	grown[list->count++] = link;
	return 0;
}

static int add_instance(struct list *list, const char *instance)
{
	char path[PIN_PATH_MAX];
	struct dirent *entry;
	int error = 0;
	DIR *dir;

	attach_links_dir(instance, path);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (!error && (entry = readdir(dir)))
		error = add_pin(list, instance, entry->d_name);
	closedir(dir);
	return error;
}

static int add_all(struct list *list)
{
	DIR *root = opendir(SHUNT_PIN_ROOT);
	struct dirent *entry;
	int error = 0;

	if (!root)
		return errno == ENOENT ? 0 : -errno;
	while (!error && (entry = readdir(root))) {
		if (!maps_check_instance(entry->d_name, NULL))
			error = add_instance(list, entry->d_name);
	}
	closedir(root);
	return error;
}

int attach_links(const char *instance, struct attach_link **out, size_t *count)
{
	struct list list = {};
	int error = instance ? add_instance(&list, instance) : add_all(&list);

	if (error) {
		free(list.links);
		return error;
	}
	*out = list.links;
	*count = list.count;
	return 0;
}

const char *attach_link_name(const struct attach_link *link, char out[static 64])
{
	if (link->netns == attach_netns() && if_indextoname(link->ifindex, out))
		return out;
	snprintf(out, 64, "ifindex %u in network namespace %llu", link->ifindex, (unsigned long long)link->netns);
	return out;
}

bool attach_is_stale(const struct attach_link *link)
{
	const bool lb = link->role == PROGRAM_LB;
	char dir[PIN_PATH_MAX], path[PIN_PATH_MAX + 32];
	struct bpf_map_info info = {};
	__u32 size = sizeof(info);
	bool stale = false;
	int fd;

	maps_set_dir(link->instance, lb ? &set_lb : &set_decap, "", dir);
	snprintf(path, sizeof(path), "%s/%s", dir, lb ? SHUNT_MAP_REASONS : SHUNT_MAP_DECAP_REASONS);
	fd = bpf_obj_get(path);
	if (fd < 0)
		return errno == ENOENT;
	if (!bpf_obj_get_info_by_fd(fd, &info, &size))
		stale = program_uses_map(link->program_id, info.id) == 0;
	close(fd);
	return stale;
}

void attach_describe(uint32_t program_id, struct attach_state *out)
{
	struct bpf_prog_info info = {};
	__u32 size = sizeof(info);
	int fd = bpf_prog_get_fd_by_id(program_id);

	out->program_id = program_id;
	*out->program = *out->tag = '\0';
	if (fd < 0)
		return;
	if (!bpf_obj_get_info_by_fd(fd, &info, &size)) {
		snprintf(out->program, sizeof(out->program), "%s", info.name);
		for (int i = 0; i < 8; i++)
			snprintf(out->tag + (ptrdiff_t)2 * i, 3, "%02x", info.tag[i]);
	}
	close(fd);
}

int attach_query(uint32_t ifindex, struct attach_state *out)
{
	static const enum attach_mode modes[] = {
		[XDP_ATTACHED_NONE] = ATTACH_NONE,
		[XDP_ATTACHED_DRV] = ATTACH_NATIVE,
		[XDP_ATTACHED_SKB] = ATTACH_GENERIC,
		[XDP_ATTACHED_HW] = ATTACH_OFFLOAD,
	};
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);
	struct attach_state state = {};
	int error = bpf_xdp_query((int)ifindex, 0, &opts);

	if (error)
		return error;
	if (opts.attach_mode == XDP_ATTACHED_MULTI) { /* hardware offload beside one of the others */
		state.mode = opts.drv_prog_id ? ATTACH_NATIVE : ATTACH_GENERIC;
		opts.prog_id = opts.drv_prog_id ? opts.drv_prog_id : opts.skb_prog_id;
	} else {
		state.mode = modes[opts.attach_mode];
	}
	if (state.mode != ATTACH_NONE)
		attach_describe(opts.prog_id, &state);
	*out = state;
	return 0;
}

/* ---- tail calls ---- */

#define CALLS_MAP "calls"

static void calls_dir(const char *instance, char out[static PIN_PATH_MAX])
{
	snprintf(out, PIN_PATH_MAX, SHUNT_PIN_ROOT "/%s/calls", instance);
}

int attach_keep_calls(const char *instance, const struct bpf_object *object, int program, struct report *report)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, CALLS_MAP);
	char dir[PIN_PATH_MAX], path[PIN_PATH_MAX + 32];
	struct bpf_prog_info info = {};
	__u32 size = sizeof(info);

	if (!map)
		return 0;
	calls_dir(instance, dir);
	if ((mkdir(dir, 0700) && errno != EEXIST) || bpf_obj_get_info_by_fd(program, &info, &size))
		return kernel_error(report, -errno, "cannot prepare %s", dir);
	snprintf(path, sizeof(path), "%s/%u", dir, info.id);
	if (bpf_obj_pin(bpf_map__fd(map), path))
		return kernel_error(report, -errno, "cannot pin the program's tail calls at %s", path);
	return 0;
}

static bool runs(const struct attach_link *links, size_t count, unsigned int program)
{
	for (size_t i = 0; i < count; i++)
		if (links[i].alive && links[i].program_id == program)
			return true;
	return false;
}

static int sweep_calls(const char *instance, const struct attach_link *links, size_t count)
{
	char dir[PIN_PATH_MAX], path[PIN_PATH_MAX + 32];
	struct dirent *entry;
	unsigned int program;
	int error = 0;
	DIR *folder;

	calls_dir(instance, dir);
	folder = opendir(dir);
	if (!folder)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(folder))) {
		if (sscanf(entry->d_name, "%u", &program) != 1 || runs(links, count, program))
			continue;
		snprintf(path, sizeof(path), "%s/%u", dir, program);
		if (unlink(path) && errno != ENOENT)
			error = -errno;
	}
	closedir(folder);
	return error;
}

int attach_sweep(const char *instance)
{
	struct attach_link *links;
	size_t count;
	int error = attach_links(instance, &links, &count);

	if (error)
		return error;
	for (size_t i = 0; i < count; i++)
		if (!links[i].alive && unlink(links[i].pin) && errno != ENOENT)
			error = -errno;
	if (!error)
		error = sweep_calls(instance, links, count);
	free(links);
	return error;
}
