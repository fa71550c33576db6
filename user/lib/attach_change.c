/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Detaching, and new programs on existing links. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "attach_internal.h"
#include "kernel.h"

/* Detach first, then unpin: a crash in between leaves a dead link, which the next change sweeps. */
static int detach_link(const struct device *device, const struct attach_link *link, struct report *report)
{
	struct attach_state now;
	int fd = bpf_obj_get(link->pin), error = 0;

	if (fd < 0)
		return kernel_error(report, -errno, "%s: cannot open the link %s", device->name, link->pin);
	if (bpf_link_detach(fd))
		error = -errno;
	close(fd);
	if (error)
		return kernel_error(report, error, "%s: cannot detach", device->name);
	if (unlink(link->pin) && errno != ENOENT)
		return kernel_error(report, -errno, "%s: detached, but cannot remove %s", device->name, link->pin);
	error = attach_query(device->ifindex, &now);
	if (error)
		return kernel_error(report, error, "%s: cannot ask whether the program is gone", device->name);
	if (now.mode != ATTACH_NONE)
		return report_error(report, -EBUSY,
				    "%s: our program is gone, but '%s' (id %u, %s mode) is attached now", device->name,
				    *now.program ? now.program : "?", now.program_id, attach_mode_name(now.mode));
	report_add(report, REPORT_INFO, 0, 0, "%s: detached", device->name);
	return 0;
}

static int detach_one(const char *instance, const char *name, const struct attach_link *links, size_t count,
		      struct report *report)
{
	const struct attach_link *other = NULL;
	struct attach_state state;
	struct device device;
	int error = device_read(name, &device, report);

	if (error)
		return error;
	for (size_t i = 0; i < count; i++) {
		if (!links[i].alive || links[i].ifindex != device.ifindex || links[i].netns != attach_netns())
			continue;
		if (!strcmp(links[i].instance, instance))
			return detach_link(&device, &links[i], report);
		other = &links[i];
	}
	error = attach_query(device.ifindex, &state);
	if (error)
		return kernel_error(report, error, "%s: cannot ask for its XDP program", name);
	if (state.mode != ATTACH_NONE)
		return attach_foreign(name, &state, other, report);
	report_add(report, REPORT_INFO, 0, 0, "%s: nothing is attached", name);
	return 0;
}

int attach_detach(const char *instance, const char *const *names, size_t n_names, struct report *report)
{
	struct attach_link *links = NULL;
	size_t count = 0;
	int error;

	for (size_t i = 0; i < n_names; i++)
		for (size_t j = 0; j < i; j++)
			if (!strcmp(names[i], names[j]))
				return report_error(report, -EINVAL, "%s: named twice", names[i]);
	error = attach_sweep(instance);
	if (!error)
		error = attach_links(NULL, &links, &count);
	if (error)
		return kernel_error(report, error, "cannot list the links in " SHUNT_PIN_ROOT);
	for (size_t i = 0; i < n_names; i++) {
		int one = detach_one(instance, names[i], links, count, report);

		error = error ? error : one;
	}
	free(links);
	attach_sweep(instance);
	return error;
}

static int load_variants(const struct attach_step *steps, size_t n, struct attach_programs *programs,
			 struct report *report)
{
	for (size_t i = 0; i < n; i++) {
		int program;

		attach_programs_port(programs, steps[i].old_gue_port);
		program = attach_program(programs, steps[i].link.frags, report);

		if (program < 0)
			return program;
	}
	return 0;
}

static int update_steps(struct attach_step *steps, size_t n, struct attach_programs *programs, struct report *report)
{
	int error = 0;

	for (size_t i = 0; i < n && !error; i++) {
		attach_programs_port(programs, steps[i].old_gue_port);
		error = attach_step_update(&steps[i], programs, steps[i].link.frags, report);
	}
	for (size_t i = 0; i < n && !error; i++)
		error = attach_step_commit(&steps[i], report);
	return error;
}

/* A step for each living link of the role: *n of them. */
static int open_steps(const struct attach_link *links, size_t count, enum program_role role, struct attach_step *steps,
		      size_t *n, struct report *report)
{
	for (size_t i = 0; i < count; i++) {
		struct attach_step *step = &steps[*n];
		int port;

		if (!links[i].alive || links[i].role != role)
			continue;
		attach_step_init(step);
		step->link = links[i];
		attach_link_name(&links[i], step->name);
		step->fd = bpf_obj_get(links[i].pin);
		if (step->fd < 0)
			return kernel_error(report, -errno, "%s: cannot open the link %s", step->name, links[i].pin);
		++*n;
		port = role == PROGRAM_DECAP ? program_gue_port(links[i].program_id) : 0;
		if (port < 0)
			return kernel_error(report, port, "%s: cannot read which port its program unwraps", step->name);
		step->old_gue_port = (uint16_t)port;
	}
	return 0;
}

int attach_update(const struct maps *maps, enum program_role role, attach_ready_fn *ready, void *arg, size_t *updated,
		  struct report *report)
{
	struct attach_programs programs = {.role = role, .maps = maps};
	struct attach_link *links = NULL;
	struct attach_step *steps;
	size_t count = 0, n = 0;
	int error;

	error = attach_links(maps->instance, &links, &count);
	if (error)
		return kernel_error(report, error, "cannot list the links of the instance '%s'", maps->instance);
	steps = calloc(count + 1, sizeof(*steps));
	error = steps ? open_steps(links, count, role, steps, &n, report) : -ENOMEM;
	if (!error)
		error = load_variants(steps, n, &programs, report);
	if (!error && ready)
		error = ready(arg, report);
	if (!error) {
		error = update_steps(steps, n, &programs, report);
		for (size_t i = 0; i < n && error; i++)
			attach_step_undo(&steps[i], report);
	}
	for (size_t i = 0; i < n; i++)
		attach_step_close(&steps[i]);
	if (!error && updated)
		*updated = n;
	free(steps);
	free(links);
	attach_programs_close(&programs);
	attach_sweep(maps->instance); /* of the tail calls of programs that were replaced */
	return error;
}
