/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One interface on its way to the new program, and back. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "attach_internal.h"
#include "kernel.h"

int attach_program(struct attach_programs *programs, bool frags, struct report *report)
{
	const struct program_options options = {.frags = frags, .gue_port = programs->gue_port};
	int error;

	if (programs->object[frags])
		return programs->fd[frags];
	error = program_load(programs->role, NULL, &options, programs->maps, &programs->object[frags],
			     &programs->fd[frags], report);
	if (!error)
		error = attach_keep_calls(programs->maps->instance, programs->object[frags], programs->fd[frags],
					  report);
	return error ? error : programs->fd[frags];
}

void attach_programs_close(struct attach_programs *programs)
{
	for (int i = 0; i < 2; i++) {
		if (programs->object[i])
			bpf_object__close(programs->object[i]);
		programs->object[i] = NULL;
	}
}

void attach_programs_port(struct attach_programs *programs, uint16_t gue_port)
{
	if (programs->gue_port == gue_port)
		return;
	attach_programs_close(programs);
	programs->gue_port = gue_port;
}

bool attach_refused(int error)
{
	return error == -EINVAL || error == -ERANGE || error == -EOPNOTSUPP || error == -E2BIG;
}

void attach_step_init(struct attach_step *step)
{
	*step = (struct attach_step){.fd = -1, .old_program = -1};
}

static int update_link(int link, int program)
{
	return bpf_link_update(link, program, NULL) ? -errno : 0;
}

int attach_step_update(struct attach_step *step, struct attach_programs *programs, bool frags, struct report *report)
{
	int error = 0;

	step->old_program = bpf_prog_get_fd_by_id(step->link.program_id);
	step->old_frags = step->link.frags;
	for (int attempt = 0; attempt < 2; attempt++, frags = !frags) {
		int program = attach_program(programs, frags, report);

		if (program < 0)
			return program;
		error = update_link(step->fd, program);
		if (!error) {
			step->link.frags = frags;
			step->updated = true;
			return 0;
		}
		if (!attach_refused(error))
			break;
	}
	if (step->old_program >= 0)
		close(step->old_program);
	step->old_program = -1;
	return kernel_error(report, error, "%s: cannot replace the program in place", step->name);
}

int attach_step_commit(struct attach_step *step, struct report *report)
{
	char pin[sizeof(step->link.pin)];
	int failed;

	attach_pin_path(&step->link, pin);
	if (step->created)
		failed = bpf_obj_pin(step->fd, pin);
	else
		failed = step->link.frags != step->old_frags && rename(step->link.pin, pin);
	if (failed)
		return kernel_error(report, -errno, "%s: cannot pin the link at %s", step->name, pin);
	if (step->created || step->link.frags != step->old_frags)
		snprintf(step->link.pin, sizeof(step->link.pin), "%s", pin);
	return 0;
}

void attach_step_undo(struct attach_step *step, struct report *report)
{
	char pin[sizeof(step->link.pin)];

	if (step->fd < 0)
		return;
	if (step->created) { /* closing it would be enough for one that is not pinned, but only some time later */
		bpf_link_detach(step->fd);
		if (*step->link.pin)
			unlink(step->link.pin);
		return;
	}
	if (!step->updated)
		return;
	if (step->old_program < 0 || update_link(step->fd, step->old_program)) {
		report_add(report, REPORT_WARNING, 0, 0,
			   "%s: could not be given its previous program back: it runs the "
			   "new one",
			   step->name);
		return;
	}
	step->link.frags = step->old_frags;
	attach_pin_path(&step->link, pin);
	rename(step->link.pin, pin);
}

void attach_step_close(struct attach_step *step)
{
	if (step->fd >= 0)
		close(step->fd);
	if (step->old_program >= 0)
		close(step->old_program);
	attach_step_init(step);
}
