/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which service addresses shall be announced. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addr.h"
#include "announce.h"
#include "log.h"

#define LOGGED_AT_ONCE 10u

int announce_by_address(const void *address, const void *element)
{
	return addr_compare(address, element);
}

struct announced *announce_find(const struct announce *announce, const union shunt_address *address)
{
	return announce->n ? bsearch(address, announce->list, announce->n, sizeof(*announce->list), announce_by_address)
			   : NULL;
}

/* What keeps all addresses back, or NULL. */
static const char *hindrance(const struct announce *announce)
{
	if (announce->kept.drained.time)
		return "this balancer is drained (shuntctl self undrain)";
	if (!announce->attached)
		return "the program is on no interface (shunt-loader attach)";
	return NULL;
}

static void judge(const struct announce *announce, const struct model_service *const *services, size_t n,
		  struct announced *out)
{
	const struct engine *engine = announce->daemon->engine;
	enum model_when when = engine_model(engine)->announce.when;
	const struct model_service *empty = NULL;
	const char *why = hindrance(announce);
	size_t served = 0;

	for (size_t i = 0; i < n; i++) {
		if (engine_pool_serves(engine, services[i]->pool))
			served++;
		else if (!empty)
			empty = services[i];
	}
	out->wanted = !why && (when == MODEL_WHEN_ALL ? served == n : served > 0);
	out->why[0] = '\0';
	if (!out->wanted && why)
		snprintf(out->why, sizeof(out->why), "%s", why);
	else if (!out->wanted)
		snprintf(out->why, sizeof(out->why), "pool %s of service %s has no backend with slots", empty->pool,
			 empty->name);
}

static int by_address(const void *a, const void *b)
{
	const struct model_service *const *x = a, *const *y = b;

	return addr_compare(&(*x)->address, &(*y)->address);
}

static void log_change(const struct announced *now, const struct announced *before, size_t *logged)
{
	char text[ADDR_TEXT_MAX];

	if ((before && before->wanted == now->wanted) || (*logged)++ >= LOGGED_AT_ONCE)
		return;
	addr_format(&now->address, text);
	if (now->wanted)
		log_info("%s is announced", text);
	else
		log_warning("%s is not announced: %s", text, now->why);
}

int announce_judge(struct announce *announce)
{
	const struct model *model = engine_model(announce->daemon->engine);
	size_t n_services = model->announce.given ? model->n_services : 0, n = 0, logged = 0;
	const struct model_service **services = calloc(n_services + 1, sizeof(struct model_service *));
	struct announced *list = calloc(n_services + 1, sizeof(*list));

	if (!services || !list) {
		free(services);
		free(list);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n_services; i++)
		services[i] = &model->services[i];
	qsort(services, n_services, sizeof(*services), by_address);
	for (size_t i = 0, end; i < n_services; i = end) {
		struct announced *to = &list[n++];
		const struct announced *before = announce_find(announce, &services[i]->address);

		for (end = i + 1; end < n_services && addr_equal(&services[i]->address, &services[end]->address);)
			end++;
		*to = before ? *before : (struct announced){.address = services[i]->address};
		judge(announce, services + i, end - i, to);
		log_change(to, before, &logged);
	}
	if (logged > LOGGED_AT_ONCE)
		log_info("announcements of %zu more addresses changed", logged - LOGGED_AT_ONCE);
	free(services);
	free(announce->list);
	announce->list = list;
	announce->n = n;
	return 0;
}
