/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attaching to several interfaces: all of them, or none. */
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

/* An interface beside its step. */
struct target {
	struct device device;
	struct attach_state before;
	struct attach_step step;
	enum attach_mode mode;
};

static int make_links_dir(const char *instance, struct report *report)
{
	char dir[PIN_PATH_MAX];

	attach_links_dir(instance, dir);
	if (mkdir(dir, 0700) && errno != EEXIST)
		return kernel_error(report, -errno, "cannot make %s", dir);
	return 0;
}

static const struct attach_link *find_link(const struct attach_link *links, size_t count, uint32_t ifindex)
{
	uint64_t netns = attach_netns();

	for (size_t i = 0; i < count; i++)
		if (links[i].alive && links[i].netns == netns && links[i].ifindex == ifindex)
			return &links[i];
	return NULL;
}

int attach_foreign(const char *name, const struct attach_state *state, const struct attach_link *owner,
		   struct report *report)
{
	if (owner)
		return report_error(report, -EBUSY,
				    "%s: belongs to the instance '%s' (role %s): only `shunt-loader detach %s "
				    "--instance %s` frees it",
				    name, owner->instance, attach_role_name(owner->role), name, owner->instance);
	return report_error(
		report, -EBUSY,
		"%s: has an XDP program that is not ours: '%s', id %u, tag %s, %s mode; left alone (`ip link set "
		"dev %s xdp%s off` removes it, unless a bpf_link holds it: `bpftool link` names its owner)",
		name, *state->program ? state->program : "?", state->program_id, *state->tag ? state->tag : "?",
		attach_mode_name(state->mode), name, state->mode == ATTACH_GENERIC ? "generic" : "drv");
}

/* The interface has our link: adopt it if role and mode are as asked. */
static int adopt(struct target *target, const struct attach_request *request, const struct attach_link *link,
		 struct report *report)
{
	const char *name = target->device.name;

	if (link->role != request->role)
		return report_error(report, -EBUSY,
				    "%s: attached with the role %s: `shunt-loader detach %s --instance %s` first", name,
				    attach_role_name(link->role), name, request->instance);
	if ((request->mode == ATTACH_NATIVE || request->mode == ATTACH_GENERIC) && request->mode != target->before.mode)
		return report_error(
			report, -EBUSY,
			"%s: attached in %s mode, which cannot be changed in place: `shunt-loader detach %s "
			"--instance %s` first",
			name, attach_mode_name(target->before.mode), name, request->instance);
	target->step.link = *link;
	target->step.fd = bpf_obj_get(link->pin);
	if (target->step.fd < 0)
		return kernel_error(report, -errno, "%s: cannot open the link %s", name, link->pin);
	return 0;
}

/* Everything that can be known before anything is changed. */
static int prepare(struct target *target, const struct attach_request *request, const char *name,
		   const struct attach_link *links, size_t n_links, struct report *report)
{
	const struct attach_link *link;
	int error = device_read(name, &target->device, report);

	if (!error)
		error = device_check(&target->device, report);
	if (error)
		return error;
	snprintf(target->step.name, sizeof(target->step.name), "%s", name);
	target->mode = request->mode == ATTACH_NONE ? ATTACH_NATIVE : request->mode;
	error = attach_query(target->device.ifindex, &target->before);
	if (error)
		return kernel_error(report, error, "%s: cannot ask for its XDP program", name);
	link = find_link(links, n_links, target->device.ifindex);
	if (link && !strcmp(link->instance, request->instance))
		return adopt(target, request, link, report);
	if (target->before.mode != ATTACH_NONE)
		return attach_foreign(name, &target->before, link, report);
	target->step.created = true;
	target->step.link =
		(struct attach_link){.netns = attach_netns(), .ifindex = target->device.ifindex, .role = request->role};
	snprintf(target->step.link.instance, sizeof(target->step.link.instance), "%s", request->instance);
	return 0;
}

static int create_link(struct target *target, struct attach_programs *programs, enum attach_mode mode, bool frags,
		       struct report *report)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = mode == ATTACH_GENERIC ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
	int program = attach_program(programs, frags, report), fd;

	if (program < 0)
		return program;
	fd = bpf_link_create(program, (int)target->device.ifindex, BPF_XDP, &opts);
	if (fd < 0)
		return fd;
	target->step.fd = fd;
	target->step.link.frags = frags;
	return 0;
}

/* Native mode, in the variant that the MTU asks for, then in the other.  The first refusal is returned. */
static int create_native(struct target *target, struct attach_programs *programs, struct report *report)
{
	bool frags = device_wants_frags(&target->device);
	int first = create_link(target, programs, ATTACH_NATIVE, frags, report), second;

	if (!first || !attach_refused(first))
		return first;
	second = create_link(target, programs, ATTACH_NATIVE, !frags, report);
	return second ? first : 0;
}

static int report_native(const struct target *target, int error, enum report_level level, const char *end,
			 struct report *report)
{
	char *why = device_explain(&target->device, error, (uint32_t)libbpf_num_possible_cpus());

	if (attach_refused(error))
		report_add(report, level, 0, 0, "%s: %s%s", target->device.name, why ? why : strerror(-error), end);
	else
		kernel_error(report, error, "%s: cannot attach in native mode", target->device.name);
	free(why);
	return error;
}

static int create(struct target *target, struct attach_programs *programs, struct report *report)
{
	size_t before = report->errors;
	int error;

	if (target->mode != ATTACH_GENERIC) {
		error = create_native(target, programs, report);
		if (!error || report->errors != before) /* loading has said why it failed */
			return error;
		if (target->mode == ATTACH_NATIVE || !attach_refused(error))
			return report_native(target, error, REPORT_ERROR, "", report);
		report_native(target, error, REPORT_WARNING,
			      ". FELL BACK to generic mode, which is several times slower", report);
	}
	/* The stack makes one buffer of a frame for a program that takes no fragments. */
	error = create_link(target, programs, ATTACH_GENERIC, false, report);
	if (error && report->errors == before)
		kernel_error(report, error, "%s: cannot attach in generic mode", target->device.name);
	return error;
}

/* New links first: they are what may be refused. */
static int run_steps(struct target *targets, size_t n, struct attach_programs *programs, struct report *report)
{
	int error = 0;

	for (size_t i = 0; i < n && !error; i++)
		if (targets[i].step.created)
			error = create(&targets[i], programs, report);
	for (size_t i = 0; i < n && !error; i++)
		if (!targets[i].step.created)
			error = attach_step_update(&targets[i].step, programs,
						   targets[i].before.mode == ATTACH_NATIVE &&
							   device_wants_frags(&targets[i].device),
						   report);
	for (size_t i = 0; i < n && !error; i++)
		error = attach_step_commit(&targets[i].step, report);
	return error;
}

/* What is in force, as the kernel tells it, and what would hide or lose traffic. */
static int tell(struct target *target, struct report *report)
{
	const struct attach_step *step = &target->step;
	struct attach_link link = step->link;
	struct attach_state now;
	int error = attach_query(target->device.ifindex, &now);

	if (!error)
		error = attach_link_info(step->fd, &link);
	if (error)
		return kernel_error(report, error, "%s: cannot ask for its XDP program", step->name);
	if (now.program_id != link.program_id)
		return report_error(report, -EBUSY, "%s: the kernel runs program %u instead of ours, %u", step->name,
				    now.program_id, link.program_id);
	report_add(report, REPORT_INFO, 0, 0, "%s: %s, role %s, %s mode, program %u%s", step->name,
		   step->created ? "attached" : "already attached, program replaced in place",
		   attach_role_name(link.role), attach_mode_name(now.mode), now.program_id,
		   step->link.frags ? ", with multi-buffer frames (xdp.frags)" : "");
	if (device_hides_tags(&target->device))
		report_add(report, REPORT_WARNING, 0, 0,
			   "%s: receive-VLAN offload is on and takes VLAN tags away before XDP sees them; if tagged "
			   "frames "
			   "come in here: `ethtool -K %s rxvlan off`",
			   step->name, step->name);
	return 0;
}

static void warn_of_jit(struct report *report)
{
	FILE *file = fopen("/proc/sys/net/core/bpf_jit_enable", "re");
	char value[8] = "";

	if (file && fgets(value, sizeof(value), file) && *value == '0')
		report_add(
			report, REPORT_WARNING, 0, 0,
			"the kernel interprets BPF programs, many times slower: `sysctl -w net.core.bpf_jit_enable=1`, "
			"then `shunt-loader upgrade`");
	if (file)
		fclose(file);
}

static int check_unique(const struct target *targets, size_t n, struct report *report)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (targets[i].device.ifindex == targets[j].device.ifindex)
				return report_error(report, -EINVAL, "%s: named twice", targets[i].device.name);
	return 0;
}

static int prepare_all(struct target *targets, const struct attach_request *request, struct report *report)
{
	struct attach_link *links = NULL;
	size_t n_links = 0;
	int error = attach_links(NULL, &links, &n_links);

	if (error)
		return kernel_error(report, error, "cannot list the links in " SHUNT_PIN_ROOT);
	for (size_t i = 0; i < request->n_names; i++) { /* all of them, so that every error is said at once */
		int one = prepare(&targets[i], request, request->names[i], links, n_links, report);

		error = error ? error : one;
	}
	free(links);
	return error ? error : check_unique(targets, request->n_names, report);
}

static int new_targets(const struct attach_request *request, struct target **out, struct report *report)
{
	struct target *targets = calloc(request->n_names, sizeof(*targets));

	if (!targets)
		return -ENOMEM;
	for (size_t i = 0; i < request->n_names; i++)
		attach_step_init(&targets[i].step);
	*out = targets;
	return prepare_all(targets, request, report);
}

static void free_targets(struct target *targets, size_t n)
{
	for (size_t i = 0; i < n && targets; i++)
		attach_step_close(&targets[i].step);
	free(targets);
}

int attach_check(const struct attach_request *request, struct report *report)
{
	struct target *targets = NULL;
	int error = new_targets(request, &targets, report);

	free_targets(targets, request->n_names);
	return error;
}

int attach_interfaces(const struct attach_request *request, struct report *report)
{
	struct attach_programs programs = {
		.role = request->role,
		.gue_port = request->gue_port,
		.maps = request->maps,
	};
	struct target *targets = NULL;
	int error;

	error = make_links_dir(request->instance, report);
	if (!error)
		error = attach_sweep(request->instance);
	if (!error)
		error = new_targets(request, &targets, report);
	if (!error) {
		error = run_steps(targets, request->n_names, &programs, report);
		for (size_t i = 0; i < request->n_names && !error; i++)
			error = tell(&targets[i], report);
		for (size_t i = 0; i < request->n_names && error; i++)
			attach_step_undo(&targets[i].step, report);
	}
	if (!error)
		warn_of_jit(report);
	free_targets(targets, request->n_names);
	attach_programs_close(&programs);
	attach_sweep(request->instance); /* of what was loaded and is not used, or no more */
	return error;
}
