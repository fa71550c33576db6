/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Health, for people. */
#include "checks.h"

void checks_show_backend(const struct daemon *daemon, const char *pool, const char *backend, json_t *row)
{
	const struct target *target = checks_target(daemon->checks, pool, backend);
	uint64_t now = checks_now();
	const char *why;

	if (!target) {
		json_object_set_new(row, "health", json_null());
		return;
	}
	why = target->unable || target->state.failed ? target->why : "";
	if (health_held(&target->state, &target->params, now))
		why = "passes its checks again, and is held down because it flaps";
	json_object_set_new(row, "health", json_string(health_state_names[target->state.state]));
	json_object_set_new(row, "health_why", json_string(why));
	json_object_set_new(row, "health_since", json_integer((json_int_t)((now - target->state.since) / 1000)));
	json_object_set_new(row, "health_checked",
			    target->ended ? json_integer((json_int_t)(now - target->ended)) : json_null());
	json_object_set_new(row, "health_passed", json_integer((json_int_t)target->state.n_passed));
	json_object_set_new(row, "health_failed", json_integer((json_int_t)target->state.n_failed));
	json_object_set_new(row, "health_changes", json_integer((json_int_t)target->state.n_changes));
	json_object_set_new(row, "health_hold_down",
			    json_integer(target->state.held_until > now
						 ? (json_int_t)(target->state.held_until - now + 999) / 1000
						 : 0));
}

static size_t count_state(const struct checks *checks, const struct checked_pool *pool, enum health_state state)
{
	size_t n = 0;

	for (size_t i = pool->first; i < pool->first + pool->n; i++)
		n += checks->targets[i]->judged && checks->targets[i]->state.state == state;
	return n;
}

/* The first that cannot be asked stands for all of its pool. */
static void unable_problem(const struct checks *checks, const struct checked_pool *pool, json_t *problems)
{
	const struct target *first = NULL;
	size_t n = 0;

	for (size_t i = pool->first; i < pool->first + pool->n; i++) {
		const struct target *target = checks->targets[i];

		if (!target->unable)
			continue;
		first = first ? first : target;
		n++;
	}
	if (first)
		json_array_append_new(problems, json_sprintf("pool %s: %zu backends cannot be checked: %s: %s",
							     pool->name, n, first->backend, first->why));
}

void checks_problems(const struct daemon *daemon, json_t *problems)
{
	const struct checks *checks = daemon->checks;

	if (daemon->checks_problem)
		json_array_append_new(problems, json_string(daemon->checks_problem));
	for (size_t i = 0; i < checks->n_pools; i++) {
		const struct checked_pool *pool = &checks->pools[i];
		size_t down = count_state(checks, pool, HEALTH_DOWN);

		if (pool->state.frozen)
			json_array_append_new(problems, json_sprintf("pool %s: %zu of %zu backends are down, which is "
								     "too many to believe: they are served all the "
								     "same (panic)",
								     pool->name, down, pool->n));
		else if (down)
			json_array_append_new(problems, json_sprintf("pool %s: %zu of %zu backends are down",
								     pool->name, down, pool->n));
		unable_problem(checks, pool, problems);
	}
}
