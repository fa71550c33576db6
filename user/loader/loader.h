/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the verbs of shunt-loader share. */
#ifndef SHUNT_LOADER_H
#define SHUNT_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include "attach.h"
#include "maps.h"
#include "report.h"

enum loader_exit { LOADER_OK, LOADER_FAILED, LOADER_USAGE };

/* A list of prefixes of the command line. */
struct loader_list {
	bool given;
	struct shunt_prefix *prefixes;
	size_t count;
};

/* The command line after the verb. */
struct loader_options {
	const char *instance; /* NULL: not given */
	bool json;
	enum program_role role;
	enum attach_mode mode;
	struct maps_capacities capacities;
	bool capacity_given;
	struct loader_list sources, destinations;
	bool gue_port_given;
	uint32_t gue_port;	  /* 0: none */
	const char *const *names; /* interfaces */
	size_t n_names;
};

/* One of each verb's options is set in `options`; prints what is wrong and returns LOADER_USAGE, or 0. */
enum loader_verb { VERB_ATTACH, VERB_DETACH, VERB_STATUS, VERB_UPGRADE };
int loader_parse(enum loader_verb verb, int argc, char **argv, struct loader_options *options);
void loader_free(struct loader_options *options);

/* Each verb: 0 or -errno, with what there is to say in the report. */
int loader_attach(const struct loader_options *options, struct report *report);
int loader_detach(const struct loader_options *options, struct report *report);
int loader_upgrade(const struct loader_options *options, struct report *report);
/* Prints by itself what it finds. */
int loader_status(const struct loader_options *options, struct report *report);

/* An error of the command line: text to stderr, or JSON to stdout.  Returns LOADER_USAGE. */
int loader_usage(bool json, const char *message);

#endif
