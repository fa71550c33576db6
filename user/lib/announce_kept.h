/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must outlive the daemon about announcements, beside the state file: in which tables routes of ours may be,
 * what a hook was told, and whether an operator has drained this balancer.  docs/state-format.md, Announcements.
 */
#ifndef SHUNT_ANNOUNCE_KEPT_H
#define SHUNT_ANNOUNCE_KEPT_H

#include <net/if.h>

#include "attach.h"
#include "model.h"
#include "origin.h"
#include "report.h"

#define ANNOUNCE_FILE "announce.json"
#define ANNOUNCE_TABLES 16u	/* of those before, that could not be cleared yet, and that of now */
#define ANNOUNCE_INTERFACES 64u /* of a drain, to be attached again */

struct announce_interface {
	char name[IF_NAMESIZE];
	enum attach_mode mode; /* ATTACH_NATIVE or ATTACH_GENERIC */
};

struct announce_kept {
	uint32_t tables[ANNOUNCE_TABLES];
	size_t n_tables;
	char hook[MODEL_NAME_MAX + 1]; /* that was told; "": none */
	union shunt_address *up;       /* malloc'd, sorted: that the hook may have been told are up */
	size_t n_up;
	struct origin drained; /* who did it, when and why; time 0: it is not drained */
	struct announce_interface interfaces[ANNOUNCE_INTERFACES];
	size_t n_interfaces;
};

/* Nothing kept is all zeros; out->up is the caller's.  0; -EUCLEAN (damaged), -ENOMEM or what the system says,
 * reported, and *out untouched. */
int announce_kept_load(const char *dir, struct announce_kept *out, struct report *report);

/* 0, or -errno, reported, and the file is what it was. */
int announce_kept_save(const char *dir, const struct announce_kept *kept, struct report *report);

/* "native" or "generic"; false for another word. */
bool announce_mode_parse(const char *word, enum attach_mode *out);

#endif
