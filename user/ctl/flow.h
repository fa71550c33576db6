/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Flows as words, for explain and flow; and the parts of `shuntctl flow`. */
#ifndef SHUNT_CTL_FLOW_H
#define SHUNT_CTL_FLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "addr.h"
#include "flowtable.h"

/* ---- words (flow_words.c): 0, or CTL_USAGE after the failure was printed ---- */

int flow_protocol(const char *text, bool icmp, uint8_t *out);
int flow_endpoint(uint8_t protocol, const char *text, union shunt_address *address, unsigned int *port);
/* value: protocol, source and destination as they were given. */
int flow_families(const union shunt_address *source, const union shunt_address *destination, const char *const *value);

/* ---- what is recorded (cmd_flow.c) ---- */

/* The daemon's rows, or NULL where none answers: then there are numbers instead of names. */
struct flow_names {
	json_t *services, *pools, *backends;
};

/* "web/web1", or the number without a name; null for no backend.  New references. */
json_t *flow_backend(const struct flow_names *names, uint32_t id);
json_t *flow_pool(const struct flow_names *names, uint32_t index);

/* A row of `flow list`; a new reference. */
json_t *flow_row(const struct flow_names *names, const struct flowtable_entry *entry);

/* "1.5 s", or "-" for null; and a row's idle time.  malloc'd. */
char *flow_seconds(const json_t *milliseconds);
char *flow_idle(const json_t *row);

int flow_show(int argc, char **argv);

#endif
