/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The CA files of checks by https: each is read once, however many pools name it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "log.h"

/* NULL: any certificate will do. */
static const char *ca_file_of(const struct model_health *health)
{
	if (health->verify == MODEL_VERIFY_NONE)
		return NULL;
	return health->ca_file ? health->ca_file : TRUST_SYSTEM_FILE;
}

static struct trusted *find(const struct trusts *trusts, const char *ca_file)
{
	for (size_t i = 0; trusts && i < trusts->n; i++) {
		const char *other = trusts->list[i].ca_file;

		if (ca_file ? other && !strcmp(ca_file, other) : !other)
			return &trusts->list[i];
	}
	return NULL;
}

struct trust *trusts_find(const struct trusts *trusts, const struct model_health *health, const char **why)
{
	const struct trusted *found = find(trusts, ca_file_of(health));

	if (!found || !found->trust)
		*why = found ? found->why : "out of memory";
	return found ? found->trust : NULL;
}

void trusts_free(struct trusts *trusts)
{
	if (!trusts)
		return;
	for (size_t i = 0; i < trusts->n; i++) {
		free(trusts->list[i].ca_file);
		free(trusts->list[i].why);
		trust_unref(trusts->list[i].trust);
	}
	free(trusts->list);
	free(trusts);
}

void trusts_take(struct daemon *daemon, struct trusts *trusts)
{
	trusts_free(daemon->checks->trusts);
	daemon->checks->trusts = trusts;
}

/* What cannot be read is an error of the pool that names it first, or kept to be said of its checks. */
static int read_one(const struct model_pool *pool, struct trusted *trusted, struct report *report)
{
	struct report said = {};
	int ret = trust_new(trusted->ca_file, &trusted->trust, &said);

	if (ret == -EINVAL && report) {
		report_add(report, REPORT_ERROR, pool->health->line, pool->health->column, "pool \"%s\": health: %s",
			   pool->name, report_first(&said, "out of memory"));
	} else if (ret == -EINVAL) {
		trusted->why = strdup(report_first(&said, "out of memory"));
		ret = trusted->why ? 0 : -ENOMEM;
		log_warning("pool %s cannot be checked: %s", pool->name, report_first(&said, "out of memory"));
	}
	report_free(&said);
	return ret;
}

static int add(struct trusts *trusts, const struct model_pool *pool, const struct trusts *before, struct report *report)
{
	const char *ca_file = ca_file_of(pool->health);
	const struct trusted *old = find(before, ca_file);
	struct trusted *trusted = &trusts->list[trusts->n];

	if (find(trusts, ca_file))
		return 0;
	trusted->ca_file = ca_file ? strdup(ca_file) : NULL;
	if (ca_file && !trusted->ca_file)
		return -ENOMEM;
	trusts->n++;
	if (!old || !old->trust)
		return read_one(pool, trusted, report);
	trusted->trust = trust_ref(old->trust);
	return 0;
}

int trusts_read(struct daemon *daemon, const struct model *model, bool again, struct trusts **out,
		struct report *report)
{
	struct trusts *trusts = calloc(1, sizeof(*trusts));
	int error = 0;

	if (trusts)
		trusts->list = calloc(model->n_pools + 1, sizeof(*trusts->list));
	if (!trusts || !trusts->list)
		error = -ENOMEM;
	for (size_t i = 0; i < model->n_pools && error != -ENOMEM; i++) {
		const struct model_pool *pool = &model->pools[i];
		int ret;

		if (!pool->health || pool->health->type != MODEL_CHECK_HTTPS)
			continue;
		ret = add(trusts, pool, again ? NULL : daemon->checks->trusts, again ? report : NULL);
		error = ret ? ret : error; /* all that is wrong is said */
	}
	if (error) {
		trusts_free(trusts);
		return error == -ENOMEM ? report_error(report, error, "out of memory") : error;
	}
	*out = trusts;
	return 0;
}
