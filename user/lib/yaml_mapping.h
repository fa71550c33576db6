/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For yaml.c alone. */
#ifndef SHUNT_YAML_MAPPING_H
#define SHUNT_YAML_MAPPING_H

#include "arena.h"
#include "yaml.h"

/*
 * A mapping's items are all there: report duplicate keys (and drop the later ones, so that reading can go on), and
 * replace merge keys by what they bring.  0; -EINVAL where reading cannot go on; -ENOMEM.
 */
int yaml_mapping_finish(struct arena *arena, struct yaml_node *mapping, struct report *report);

#endif
