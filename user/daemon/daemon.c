/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Start, signals, end. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon.h"
#include "log.h"
#include "server.h"
#include "version.h"

void daemon_set_problem(char **problem, const char *format, ...)
{
	va_list args;
	char *text;

	free(*problem);
	*problem = NULL;
	if (!format)
		return;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = strdup("a problem, and no memory to describe it: see the log");
	va_end(args);
	*problem = text;
}

/* ---- signals ---- */

static int on_end(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	struct daemon *daemon = arg;

	(void)source;
	log_info("ended by %s: traffic goes on as it is", info->ssi_signo == SIGINT ? "SIGINT" : "SIGTERM");
	return sd_event_exit(daemon->event, 0);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *arg)
{
	struct daemon *daemon = arg;
	struct report report = {};
	struct origin origin;
	bool changed = false;

	(void)source;
	(void)info;
	if (!daemon->options->file) {
		log_warning("SIGHUP, but there is no document to read: name one with -c");
		return 0;
	}
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, daemon_now());
	origin = origin_self("SIGHUP: %s", daemon->options->file);
	if (apply_file(daemon, true, &origin, &changed, &report))
		log_error("%s is refused, nothing has changed:", daemon->options->file);
	else
		log_info("%s %s", daemon->options->file, changed ? "is applied" : "says what is in force already");
	log_report(&report);
	report_free(&report);
	sd_notify(0, "READY=1");
	return 0;
}

uint64_t daemon_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int open_loop(struct daemon *daemon)
{
	sigset_t signals;
	int ret;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		return -errno;
	ret = sd_event_new(&daemon->event);
	if (ret >= 0)
		ret = sd_event_add_signal(daemon->event, NULL, SIGTERM, on_end, daemon);
	if (ret >= 0)
		ret = sd_event_add_signal(daemon->event, NULL, SIGINT, on_end, daemon);
	if (ret >= 0)
		ret = sd_event_add_signal(daemon->event, NULL, SIGHUP, on_reload, daemon);
	return ret < 0 ? ret : 0;
}

/* ---- start ---- */

/* The parents may be shared; the folder itself holds the key. */
static int make_state_dir(const char *path, struct report *report)
{
	char parent[PATH_MAX];
	struct stat is;

	snprintf(parent, sizeof(parent), "%s", path);
	for (char *slash = strchr(parent + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(parent, 0755) && errno != EEXIST)
			return report_error(report, -errno, "cannot make %s: %s", parent, strerror(errno));
		*slash = '/';
	}
	if (mkdir(path, 0700) && errno != EEXIST)
		return report_error(report, -errno,
				    "cannot make the state directory %s: %s: name another with "
				    "--state-dir",
				    path, strerror(errno));
	/* mkdir() says no more than that something has the name. */
	if (stat(path, &is) || !S_ISDIR(is.st_mode))
		return report_error(report, -ENOTDIR,
				    "the state directory %s is no directory: remove what has its name, or name another "
				    "with --state-dir",
				    path);
	return 0;
}

static int open_all(struct daemon *daemon, struct report *report)
{
	const struct daemon_options *options = daemon->options;
	const struct engine_options engine_options = {
		.instance = options->instance,
		.state_dir = options->state_dir,
		.capacities = options->capacities,
		.epoch = record_epoch,
		.epoch_arg = daemon,
	};
	int ret;

	ret = maps_check_instance(options->instance, report);
	if (ret)
		return ret;
	ret = lock_instance(options->instance, report);
	if (ret < 0)
		return ret;
	daemon->lock_fd = ret;
	ret = make_state_dir(options->state_dir, report);
	ret = ret ? ret : history_open(options->state_dir, &daemon->history, report);
	ret = ret ? ret : engine_open(&engine_options, &daemon->engine, report);
	if (ret)
		return ret;
	ret = open_loop(daemon);
	if (ret)
		return report_error(report, ret, "cannot make the event loop: %s", strerror(-ret));
	ret = change_open(daemon);
	if (ret < 0)
		return report_error(report, ret, "cannot make the event loop: %s", strerror(-ret));
	ret = ways_open(daemon, report);
	ret = ret ? ret : ticks_open(daemon, report);
	ret = ret ? ret : checks_open(daemon, report);
	ret = ret ? ret : announce_open(daemon, report);
	return ret ? ret : server_open(daemon, &daemon->server, report);
}

/* After a reboot the maps are new: tables without the ways to backends would be empty, and then change with each. */
static bool has_tables(const struct engine *engine)
{
	const struct model *model = engine_model(engine);
	struct engine_pool_info info;

	for (size_t i = 0; i < model->n_pools; i++)
		if (engine_pool_info(engine, model->pools[i].name, &info) || !info.published)
			return false;
	return true;
}

/*
 * What was acknowledged is in force again before the file is looked at: a table that is as it should be is left alone,
 * so that a restart changes nothing for packets.
 */
static int resume(struct daemon *daemon)
{
	const struct model *model = engine_model(daemon->engine);
	struct trusts *trusts = NULL;
	bool adopted;

	if (!model)
		return 0;
	if (ways_watch(daemon, NULL) || trusts_read(daemon, model, false, &trusts, NULL))
		return -ENOMEM;
	daemon->origin = origin_self("start: what was acknowledged before");
	adopted = has_tables(daemon->engine);
	if (!adopted)
		ways_settle(daemon, APPLY_SETTLE_MS);
	ways_publish(daemon);
	record_found(daemon);
	trusts_take(daemon, trusts);
	checks_update(daemon);
	change_resume(daemon);
	model = engine_model(daemon->engine);
	log_info("%s %zu pools and %zu services", adopted ? "took over" : "published again", model->n_pools,
		 model->n_services);
	return 0;
}

static int first_document(struct daemon *daemon, struct report *report)
{
	struct origin origin;
	bool changed = false;
	int ret;

	if (!daemon->options->file)
		return 0;
	origin = origin_self("start: %s", daemon->options->file);
	ret = apply_file(daemon, false, &origin, &changed, report);
	if (!ret) {
		log_info("%s is %s", daemon->options->file,
			 changed ? "applied" : "as it was last applied: the state goes on");
		return 0;
	}
	if (!engine_model(daemon->engine))
		return ret;
	log_report(report);
	report_free(report);
	log_error("%s is refused, what was applied before goes on", daemon->options->file);
	return 0;
}

static int start(struct daemon *daemon, struct report *report)
{
	int ret = open_all(daemon, report);

	ret = ret ? ret : resume(daemon);
	ret = ret ? ret : first_document(daemon, report);
	if (!ret)
		log_report(report); /* warnings */
	return ret;
}

static void close_all(struct daemon *daemon)
{
	server_close(daemon->server);
	announce_close(daemon);
	checks_close(daemon);
	ticks_close(daemon);
	ways_close(daemon);
	sd_event_source_disable_unref(daemon->undo_timer);
	if (daemon->engine)
		engine_close(daemon->engine);
	history_close(daemon->history);
	sd_event_unref(daemon->event);
	free(daemon->document_problem);
	free(daemon->publish_problem);
	free(daemon->state_problem);
	free(daemon->checks_problem);
	free(daemon->tick_problem);
	free(daemon->deletion_problem);
	free(daemon->history_problem);
	free(daemon->undo_problem);
	if (daemon->lock_fd >= 0)
		close(daemon->lock_fd);
}

int daemon_run(const struct daemon_options *options)
{
	struct daemon daemon = {.options = options, .lock_fd = -1, .started = daemon_now()};
	struct report report = {};
	int ret = start(&daemon, &report);

	if (ret) {
		log_report(&report);
	} else {
		log_info("shuntd " SHUNT_VERSION " runs, instance %s", options->instance);
		sd_notify(0, "READY=1");
		ret = sd_event_loop(daemon.event);
		if (ret < 0)
			log_error("the event loop failed: %s", strerror(-ret));
		sd_notify(0, "STOPPING=1");
	}
	report_free(&report);
	close_all(&daemon);
	return ret ? EXIT_FAILURE : EXIT_SUCCESS;
}
