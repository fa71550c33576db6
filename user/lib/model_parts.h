/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parts of a model as JSON, for what must not make ten thousand objects of a model to say that one of them changed:
 * model_diff.c and state_encode.c.
 */
#ifndef SHUNT_MODEL_PARTS_H
#define SHUNT_MODEL_PARTS_H

#include "model.h"
#include "text.h"

/* New references, or NULL if out of memory.  The document without pools and services, a pool without its backends. */
json_t *model_head_json(const struct model *model, enum model_json_flags flags);
json_t *model_pool_json(const struct model_pool *pool);
json_t *model_sources_json(const struct model_pool *pool);
json_t *model_backend_json(const struct model_backend *backend);
json_t *model_service_json(const struct model_service *service);

/* Whether both say the same; places apart. */
bool model_same_backend(const struct model_backend *a, const struct model_backend *b);
bool model_same_service(const struct model_service *a, const struct model_service *b);

/*
 * What model_json(model, MODEL_WITH_KEY) would say, as compact text; of a model that passed model_check(), whose names
 * need no escapes.  Where the key is known its file is left out: a document has one or the other.
 */
void model_write(const struct model *model, struct text *out);
/* The same of a pool without its backends, and without the brace that ends it. */
void model_write_pool(const struct model_pool *pool, struct text *out);

#endif
