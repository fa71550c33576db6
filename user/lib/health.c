/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "health.h"

const char *const health_state_names[HEALTH_NR_STATES] = {
	[HEALTH_UNKNOWN] = "unknown", [HEALTH_UP] = "up", [HEALTH_DOWN] = "down"};

void health_begin(struct health *health, enum health_state state, uint64_t now)
{
	*health = (struct health){.state = state, .since = now};
}

static void change(struct health *health, enum health_state state, uint64_t now)
{
	health->state = state;
	health->since = now;
	health->n_changes++;
}

static void go_down(struct health *health, const struct health_params *params, uint64_t now)
{
	bool again = health->flaps && health->state == HEALTH_UP && now - health->since < params->hold_down_max;
	uint64_t hold = 0;

	if (again)
		hold = health->hold ? 2ull * health->hold : params->hold_down;
	health->hold = (uint32_t)(hold < params->hold_down_max ? hold : params->hold_down_max);
	health->held_until = now + health->hold;
	change(health, HEALTH_DOWN, now);
}

bool health_held(const struct health *health, const struct health_params *params, uint64_t now)
{
	return health->state == HEALTH_DOWN && health->passed >= params->rise && now < health->held_until;
}

bool health_take(struct health *health, const struct health_params *params, bool passed, uint64_t now)
{
	if (passed) {
		health->n_passed++;
		health->failed = 0;
		health->passed += health->passed < UINT32_MAX;
		if (health->state == HEALTH_UP || health->passed < params->rise || health_held(health, params, now))
			return false;
		health->flaps = health->state == HEALTH_DOWN;
		change(health, HEALTH_UP, now);
		return true;
	}
	health->n_failed++;
	health->passed = 0;
	health->failed += health->failed < UINT32_MAX;
	if (health->state == HEALTH_DOWN || health->failed < params->fall)
		return false;
	go_down(health, params, now);
	return true;
}

/* ---- when ---- */

/* The finalizer of splitmix64: spreads seeds and numbers that lie close together. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint64_t health_next(const struct health_params *params, uint64_t started, uint64_t seed, uint64_t n)
{
	uint64_t jitter = params->interval / 10;

	return started + params->interval - mix(seed + n * 0x9e3779b97f4a7c15ull) % (jitter + 1);
}

uint64_t health_first(const struct health_params *params, uint64_t now, uint64_t seed)
{
	return now + mix(seed) % params->interval;
}

/* ---- a pool ---- */

/* Down since before the others, so that nobody ever counted on it while they were failing. */
static bool down_before(const struct health_member *member, const struct health_policy *policy, uint64_t then)
{
	return member->state == HEALTH_DOWN && member->since + policy->window <= then;
}

static bool out_in_peace(const struct health_member *member)
{
	return member->state == HEALTH_DOWN || (member->state == HEALTH_UNKNOWN && member->waits);
}

void health_judge(struct health_pool *pool, const struct health_policy *policy, const struct health_member *members,
		  size_t n, uint64_t now, bool *out)
{
	size_t down = 0, left = 0;
	bool frozen;

	for (size_t i = 0; i < n; i++)
		down += members[i].state == HEALTH_DOWN;
	frozen = down &&
		 (100ull * down > (uint64_t)policy->panic * n || (down == n && policy->last == HEALTH_FAIL_OPEN));
	if (down == n && policy->last == HEALTH_REFUSE)
		frozen = false;
	if (frozen && !pool->frozen)
		pool->frozen_since = now;
	pool->frozen = frozen;
	for (size_t i = 0; i < n; i++) {
		out[i] = frozen ? down_before(&members[i], policy, pool->frozen_since) : out_in_peace(&members[i]);
		left += !out[i];
	}
	/* Whoever waits for its first check serves where nobody else does; who is down only by the policy. */
	for (size_t i = 0; i < n && !left; i++)
		out[i] = members[i].state == HEALTH_DOWN && !(down == n && policy->last == HEALTH_FAIL_OPEN);
}
