/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of attach*.c share. */
#ifndef SHUNT_ATTACH_INTERNAL_H
#define SHUNT_ATTACH_INTERNAL_H

#include "attach.h"
#include "maps_internal.h"

void attach_links_dir(const char *instance, char out[static PIN_PATH_MAX]);
/* The pin's path from the other members. */
void attach_pin_path(const struct attach_link *link, char out[static ATTACH_PIN_MAX]);
/* Fill link_id, program_id and alive. */
int attach_link_info(int fd, struct attach_link *link);

/*
 * The kernel empties a map of tail calls when no descriptor and no pin of it is left, whatever runs: pin the object's,
 * if it has one, in the instance's folder calls/ by the program's id.  attach_sweep() removes those of programs that no
 * link runs.
 */
int attach_keep_calls(const char *instance, const struct bpf_object *object, int program, struct report *report);

/* Report -EBUSY: the program on the interface is of another instance (owner), or not ours at all (NULL). */
int attach_foreign(const char *name, const struct attach_state *state, const struct attach_link *owner,
		   struct report *report);

/* The role's program, loaded when first asked for, without and with support of multi-buffer frames. */
struct attach_programs {
	enum program_role role;
	uint16_t gue_port;
	const struct maps *maps;
	struct bpf_object *object[2];
	int fd[2];
};

/* Descriptor, owned by `programs`, or -errno, reported. */
int attach_program(struct attach_programs *programs, bool frags, struct report *report);
/* With this port from now on: what was loaded with another one is let go. */
void attach_programs_port(struct attach_programs *programs, uint16_t gue_port);
void attach_programs_close(struct attach_programs *programs);

/*
 * One interface or link on its way to the new program.  Every step can be undone until commit: a new link exists only
 * as a descriptor, an updated one remembers its old program.
 */
struct attach_step {
	struct attach_link link; /* as it will be */
	char name[64];		 /* for people */
	int fd;			 /* of the link, or -1 */
	int old_program;	 /* descriptor to go back to, or -1 */
	bool created;		 /* the link is new: not pinned before commit */
	bool updated;		 /* the existing link runs the new program */
	bool old_frags;
	uint16_t old_gue_port; /* of its program, where that is to be kept */
};

void attach_step_init(struct attach_step *step);
/* Put the new program in place on an existing link, in the variant preferred or the other. */
int attach_step_update(struct attach_step *step, struct attach_programs *programs, bool frags, struct report *report);
int attach_step_commit(struct attach_step *step, struct report *report);
/* Undo after a failure; what cannot be undone is reported. */
void attach_step_undo(struct attach_step *step, struct report *report);
void attach_step_close(struct attach_step *step);

/* The kernel refused this variant of the program or this mode for the device, not the attachment as such. */
bool attach_refused(int error);

#endif
