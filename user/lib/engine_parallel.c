/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Each change of an outer map waits for a grace period, milliseconds on most hosts: many of them wait side by side. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine_internal.h"

#define THREADS_MAX 128

struct engine_work {
	size_t n;
	engine_step_fn *step;
	void *arg;
	atomic_size_t next, failed;
	atomic_int error;
	pthread_t threads[THREADS_MAX];
	size_t n_threads;
};

static void *work_on(void *arg)
{
	struct engine_work *work = arg;
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

struct engine_work *engine_work_begin(size_t n, size_t threads, engine_step_fn *step, void *arg)
{
	struct engine_work *work = calloc(1, sizeof(*work));
	sigset_t all, old;

	if (!work)
		return NULL;
	work->n = n;
	work->step = step;
	work->arg = arg;
	/* Signals are for the caller's thread.  Where the system gives fewer threads, those do all. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	while (work->n_threads < threads && work->n_threads < THREADS_MAX &&
	       !pthread_create(&work->threads[work->n_threads], NULL, work_on, work))
		work->n_threads++;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return work;
}

int engine_work_end(struct engine_work *work, size_t *failed)
{
	int ret;

	work_on(work);
	while (work->n_threads)
		pthread_join(work->threads[--work->n_threads], NULL);
	ret = work->error;
	if (ret)
		*failed = work->failed;
	free(work);
	return ret;
}

int engine_side_by_side(size_t n, size_t threads, engine_step_fn *step, void *arg, size_t *failed)
{
	struct engine_work *work = engine_work_begin(n, threads ? threads - 1 : 0, step, arg);

	*failed = 0;
	return work ? engine_work_end(work, failed) : -ENOMEM;
}
