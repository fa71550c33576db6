/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The backends of a simulation: made up, or those of a document's pool. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document.h"
#include "simulate_verb.h"

#define SLOTS_DEFAULT 65537u

void simulate_subject_free(struct simulate_subject *s)
{
	simulate_backends_free(&s->made);
	if (s->model)
		model_free(s->model);
	free(s->members);
}

/* One byte more than may be in a document, so that document_parse() can tell. */
static int read_file(const char *path, char **text, size_t *length, struct report *report)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	int err = file ? 0 : -errno;

	if (err) {
		report_error(report, err, "cannot open %s: %s", path, strerror(-err));
		return err;
	}
	*text = malloc(DOCUMENT_SIZE_MAX + 1);
	errno = 0;
	*length = *text ? fread(*text, 1, DOCUMENT_SIZE_MAX + 1, file) : 0;
	if (!*text || ferror(file))
		err = errno ? -errno : -EIO;
	fclose(file);
	if (!err)
		return 0;
	free(*text);
	*text = NULL;
	report_error(report, err, "cannot read %s: %s", path, strerror(-err));
	return err;
}

static const struct model_pool *choose_pool(const struct simulate_arguments *a, const struct model *model,
					    struct report *report)
{
	const struct model_pool *pool = NULL;

	if (a->pool)
		pool = model_pool(model, a->pool);
	else if (model->n_pools == 1)
		pool = &model->pools[0];
	if (!pool && a->pool)
		report_error(report, -ENOENT, "%s has no pool \"%s\"", a->config, a->pool);
	else if (!pool)
		report_error(report, -EINVAL, "%s has %zu pools: name one with --pool", a->config, model->n_pools);
	return pool;
}

/* The document need not be fit for this host: its key and its services do not matter. */
static int from_document(struct simulate_arguments *a, struct simulate_subject *s, struct report *report)
{
	const struct model_pool *pool;
	size_t length = 0;
	char *text = NULL;
	int err = read_file(a->config, &text, &length, report);

	if (err)
		return err;
	err = report_set_source(report, a->config);
	if (!err)
		err = document_parse(text, length, &s->model, report);
	free(text);
	if (err)
		return err;
	pool = choose_pool(a, s->model, report);
	if (!pool)
		return -EINVAL;
	s->members = calloc(pool->n_backends + 1, sizeof(*s->members));
	if (!s->members)
		return -ENOMEM;
	for (size_t i = 0; i < pool->n_backends; i++)
		s->members[i] =
			(struct table_member){.name = pool->backends[i].name, .weight = pool->backends[i].weight};
	simulate_zones(s->members, pool->n_backends, a->zones);
	a->o.members = s->members;
	a->o.n = pool->n_backends;
	if (!a->o.params.slots)
		a->o.params.slots = pool->slots;
	if (!a->o.params.balance_percent)
		a->o.params.balance_percent = pool->balance_percent;
	if (!a->o.params.vnodes)
		a->o.params.vnodes = pool->vnodes;
	if (!a->algorithms)
		a->algorithms = pool->algorithm;
	return 0;
}

int simulate_subject(struct simulate_arguments *a, struct simulate_subject *s, struct report *report)
{
	int err;

	if (a->config)
		return from_document(a, s, report);
	err = simulate_backends((size_t)a->backends, a->weights, a->zones, a->o.seed, &s->made, report);
	a->o.members = s->made.members;
	a->o.n = s->made.n;
	if (!a->o.params.slots)
		a->o.params.slots = SLOTS_DEFAULT;
	return err;
}
