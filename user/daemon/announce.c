/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Announcements of service addresses: when they are looked at, and what is said of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "addr.h"
#include "announce.h"
#include "attach.h"
#include "control.h"
#include "log.h"

#define MS 1000ull	   /* microseconds */
#define PERIOD (2000 * MS) /* for what nobody tells: routes that others delete, programs that are detached */

/* Whether packets come to the program at all; where that cannot be told it is as it was. */
static void look_for_program(struct announce *announce)
{
	struct attach_link *links = NULL;
	bool attached = false;
	size_t n = 0;

	if (attach_links(announce->daemon->options->instance, &links, &n))
		return;
	for (size_t i = 0; i < n; i++)
		attached |= links[i].alive && links[i].role == PROGRAM_LB;
	free(links);
	announce->attached = attached;
}

/* Until there is a model, routes are as an earlier daemon left them, and so is the packet path. */
void announce_look(struct announce *announce)
{
	const struct model *model = engine_model(announce->daemon->engine);

	if (!model || announce->damaged ||
	    (!model->announce.given && !announce->kept.n_tables && !*announce->kept.hook && !announce->n))
		return;
	look_for_program(announce);
	if (announce_judge(announce)) {
		log_error("out of memory: announcements go on as they are");
		return;
	}
	announce_sync(announce);
	announce_hook_sync(announce);
}

static void arm(struct announce *announce, uint64_t delay)
{
	sd_event_source_set_time_relative(announce->timer, delay);
	sd_event_source_set_enabled(announce->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *arg)
{
	struct announce *announce = arg;

	(void)source;
	(void)usec;
	announce_look(announce);
	arm(announce, PERIOD);
	return 0;
}

void announce_kick(struct daemon *daemon)
{
	if (daemon->announce)
		arm(daemon->announce, 0);
}

/* ---- for people ---- */

/* By all that the document names. */
static bool is_announced(const struct announce *announce, const struct announced *address)
{
	const struct model_announce *model = &engine_model(announce->daemon->engine)->announce;
	const struct told *told = announce_told(announce, &address->address);

	return (!model->table || address->present) && (!*model->hook || (told && told->state == TOLD_UP));
}

size_t announce_left(const struct announce *announce)
{
	size_t n = 0;

	for (size_t i = 0; i < announce->n; i++)
		n += announce->list[i].present;
	for (size_t i = 0; i < announce->n_told; i++)
		n += announce->told[i].maybe_up;
	return n;
}

size_t announce_count(const struct announce *announce)
{
	size_t n = 0;

	for (size_t i = 0; i < announce->n; i++)
		n += is_announced(announce, &announce->list[i]);
	return n;
}

json_t *announce_show(const struct daemon *daemon)
{
	const struct model *model = engine_model(daemon->engine);
	const struct announce *announce = daemon->announce;

	if (!model || !model->announce.given)
		return json_null();
	return json_pack("{s:o, s:s?, s:s, s:I, s:I}", "table",
			 model->announce.table ? json_integer(model->announce.table) : json_null(), "hook",
			 *model->announce.hook ? model->announce.hook : NULL, "when",
			 model_when_names[model->announce.when], "addresses", (json_int_t)announce->n, "announced",
			 (json_int_t)announce_count(announce));
}

static const char *why_not(const struct announce *announce, const struct announced *address)
{
	const struct told *told = address ? announce_told(announce, &address->address) : NULL;

	if (!address)
		return "it is not looked at yet";
	if (is_announced(announce, address))
		return "";
	if (address->wanted && !address->error && told)
		return told->failures ? told->why : "the hook is being told";
	if (address->error == -EEXIST)
		return "a route that is not shunt's is in the way";
	return address->error ? strerror(-address->error) : address->why;
}

void announce_show_service(const struct daemon *daemon, const struct model_service *service, json_t *row)
{
	const struct announced *address = announce_find(daemon->announce, &service->address);

	if (!engine_model(daemon->engine)->announce.given) {
		json_object_set_new(row, "announced", json_null());
		json_object_set_new(row, "announced_why", json_string("the document announces nothing"));
		return;
	}
	json_object_set_new(row, "announced", json_boolean(address && is_announced(daemon->announce, address)));
	json_object_set_new(row, "announced_why", json_string(why_not(daemon->announce, address)));
}

bool announce_alarm(const struct daemon *daemon)
{
	const struct announce *announce = daemon->announce;

	const struct told *first;

	return announce->problem || announce->kept_problem || announce_hook_failures(announce, &first);
}

/* Addresses that an operator has withdrawn are none. */
static const struct announced *first_withdrawn(const struct announce *announce, size_t *n)
{
	const struct announced *first = NULL;

	*n = 0;
	for (size_t i = 0; i < announce->n && !announce->kept.drained.time; i++) {
		if (announce->list[i].wanted)
			continue;
		first = first ? first : &announce->list[i];
		++*n;
	}
	return first;
}

void announce_problems(const struct daemon *daemon, json_t *problems)
{
	const struct announce *announce = daemon->announce;
	const struct announced *first;
	const struct told *told;
	char text[ADDR_TEXT_MAX];
	size_t n;

	if (announce->problem)
		json_array_append_new(problems, control_text(announce->problem));
	if (announce->kept_problem)
		json_array_append_new(problems, control_text(announce->kept_problem));
	n = announce_hook_failures(announce, &told);
	if (n)
		json_array_append_new(problems,
				      json_sprintf("hook %s could not be told of %zu addresses, the first: %s "
						   "%s: %s",
						   announce->kept.hook, n, told->want ? "up" : "down",
						   addr_format(&told->address, text), told->why));
	first = first_withdrawn(announce, &n);
	if (first)
		json_array_append_new(problems,
				      json_sprintf("%zu of %zu service addresses are not announced, the "
						   "first: %s: %s",
						   n, announce->n, addr_format(&first->address, text), first->why));
}

/* ---- opening ---- */

int announce_open(struct daemon *daemon, struct report *report)
{
	struct announce *announce = calloc(1, sizeof(*announce));
	struct report found = {};
	int ret = announce ? 0 : -ENOMEM;

	if (ret)
		return ret;
	daemon->announce = announce;
	*announce = (struct announce){.daemon = daemon, .lock = -1, .attached = true};
	if (announce_kept_load(daemon->options->state_dir, &announce->kept, &found)) {
		announce->damaged = true;
		daemon_set_problem(&announce->kept_problem, "%s", report_first(&found, "out of memory"));
		log_error("%s", announce->kept_problem);
	}
	report_free(&found);
	if (announce_hook_resume(announce))
		return -ENOMEM;
	ret = sd_event_add_time_relative(daemon->event, &announce->timer, CLOCK_MONOTONIC, 0, MS, on_timer, announce);
	return ret < 0 ? report_error(report, ret, "cannot make a timer: %s", strerror(-ret)) : 0;
}

void announce_close(struct daemon *daemon)
{
	struct announce *announce = daemon->announce;

	if (!announce)
		return;
	sd_event_source_unref(announce->timer);
	if (announce->socket)
		mnl_socket_close(announce->socket);
	if (announce->lock >= 0)
		close(announce->lock);
	announce_hook_close(announce);
	free(announce->kept.up);
	free(announce->list);
	free(announce->problem);
	free(announce->kept_problem);
	free(announce);
	daemon->announce = NULL;
}
