/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Each change of an outer map waits for a grace period, milliseconds on most hosts: many of them wait side by side. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "engine_internal.h"

#define THREADS_MAX 128

struct work {
	size_t n;
	engine_step_fn *step;
	void *arg;
	atomic_size_t next, failed;
	atomic_int error;
};

static void *work_on(void *arg)
{
	struct work *work = arg;
	size_t i;

	while (!work->error && (i = atomic_fetch_add(&work->next, 1)) < work->n) {
		int ret = work->step(work->arg, i);

		if (ret) {
			work->failed = i;
			work->error = ret;
		}
	}
	return NULL;
}

int engine_side_by_side(size_t n, size_t threads, engine_step_fn *step, void *arg, size_t *failed)
{
	struct work work = {.n = n, .step = step, .arg = arg};
	pthread_t others[THREADS_MAX];
	size_t started = 0;
	sigset_t all, old;

	/* Signals are for the caller's thread.  Where the system gives fewer threads, those do all. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (started + 1 < threads && started < THREADS_MAX &&
	       !pthread_create(&others[started], NULL, work_on, &work))
		started++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	work_on(&work);
	while (started)
		pthread_join(others[--started], NULL);
	if (work.error)
		*failed = work.failed;
	return work.error;
}
