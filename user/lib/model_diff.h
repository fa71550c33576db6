/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is different between two models, member by member, as people and programs read it. */
#ifndef SHUNT_MODEL_DIFF_H
#define SHUNT_MODEL_DIFF_H

#include "model.h"

/*
 * An array of {"change": "added", "removed" or "changed", "kind": "service", "pool", "backend" or "document", "name",
 * "members": [{"member", "from", "to"}]}: services first, then each pool and its backends; members are named as in the
 * document, "table.size"; null where one side does not have it.  The key's value is never in it.  from: NULL for
 * nothing.  New reference; empty where both say the same; NULL if out of memory.
 */
json_t *model_diff(const struct model *from, const struct model *to);

#endif
