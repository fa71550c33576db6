/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl self: this balancer out of service, and back. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "announce_kept.h"
#include "attach.h"
#include "control.h"
#include "ctl.h"
#include "maps_internal.h"

#define POLL_MS 500u
#define QUIET_MS 10000u /* without a packet: nobody sends any more */
#define WAIT_DEFAULT 60 /* seconds: for routers to hear of it, and clients' packets to go elsewhere */
#define WAIT_MAX 86400
#define WITHDRAW_MS 30000u /* for hooks to be told */

enum { OPTION_WAIT_FOR = 256, OPTION_REASON };

struct self {
	struct ctl_words words;
	double wait_for;
	const char *reason;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct self *self = state->input;

	switch (key) {
	case OPTION_WAIT_FOR:
		return ctl_decimal(state, "wait-for", arg, 0, WAIT_MAX, &self->wait_for);
	case OPTION_REASON:
		self->reason = arg;
		return 0;
	default:
		return ctl_word(&self->words, key, arg, state);
	}
}

/* Before anything is changed. */
static int check_root(void)
{
	return geteuid() ? ctl_fail(CTL_INVALID, "PermissionDenied",
				    "this changes which interfaces have the program: run it as root")
			 : CTL_OK;
}

static void print_report(const struct report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct report_entry *entry = &report->entries[i];

		if (entry->level == REPORT_WARNING)
			fprintf(stderr, "shuntctl: warning: %s\n", entry->text);
		else if (entry->level == REPORT_INFO && !ctl_options.json)
			printf("%s\n", entry->text);
	}
}

/* Prints the report, or the failure; takes what is in it. */
static int finish_report(int error, struct report *report)
{
	int code = CTL_OK;

	if (error)
		code = ctl_fail_report(CTL_INVALID, error == -EPERM ? "PermissionDenied" : "Failed", report);
	else
		print_report(report);
	report_free(report);
	return code;
}

/* ---- drain: wait ---- */

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Packets that were sent to backends so far. */
static int forwarded(json_int_t *out)
{
	const json_t *rows, *row;
	json_t *reply;
	size_t i;
	int code = ctl_rows("Counters", NULL, "counters", &reply, &rows);

	if (code)
		return code;
	*out = 0;
	json_array_foreach (rows, i, row)
		if (!strcmp(json_string_value(json_object_get(row, "class")) ?: "", "forward"))
			*out += json_integer_value(json_object_get(row, "packets"));
	json_decref(reply);
	return CTL_OK;
}

/* Until no packet has come for a while, or the time is over.  *late: packets in the last part of it. */
static int wait_for_silence(double seconds, json_int_t *late)
{
	const uint64_t begin = now_ms(), end = begin + (uint64_t)(seconds * 1000);
	uint64_t last = begin;
	json_int_t before, count;
	int code = forwarded(&before);

	*late = 0;
	while (!code && now_ms() < end && now_ms() - last < QUIET_MS) {
		uint64_t left = end - now_ms();

		usleep((left < POLL_MS ? (unsigned int)left + 1 : POLL_MS) * 1000);
		code = forwarded(&count);
		if (code)
			break;
		*late = count - before;
		before = count;
		if (*late)
			last = now_ms();
	}
	return code;
}

/* Somebody may have taken it back while we waited. */
static int still_drained(void)
{
	json_t *status;
	int code = ctl_call("Status", NULL, &status);

	if (code)
		return code;
	if (!json_is_object(json_object_get(status, "self_drain")))
		code = ctl_fail(CTL_INVALID, "Failed", "the drain was taken back meanwhile: nothing is detached");
	json_decref(status);
	return code;
}

/* ---- drain: detach ---- */

/* Names of the instance's interfaces that are here, malloc'd each; those of another namespace are reported. */
static size_t interfaces_here(const struct attach_link *links, size_t n, char **names, struct report *report)
{
	size_t count = 0;
	char name[64];

	for (size_t i = 0; i < n; i++) {
		if (!links[i].alive || links[i].role != PROGRAM_LB)
			continue;
		attach_link_name(&links[i], name);
		if (links[i].netns == attach_netns())
			names[count++] = strdup(name);
		else
			report_add(report, REPORT_WARNING, 0, 0, "%s keeps the program: it is not in this namespace",
				   name);
	}
	return count;
}

static int detach(json_t *detached)
{
	struct report report = {};
	struct attach_link *links = NULL;
	char **names = NULL;
	size_t n_links = 0, n = 0;
	int lock = maps_begin(ctl_options.instance, &report), error = lock < 0 ? lock : 0;

	if (!error)
		error = attach_links(ctl_options.instance, &links, &n_links);
	names = calloc(n_links + 1, sizeof(*names));
	if (!error && names)
		n = interfaces_here(links, n_links, names, &report);
	if (!error)
		error = attach_detach(ctl_options.instance, (const char *const *)names, n, &report);
	for (size_t i = 0; i < n; i++) {
		json_array_append_new(detached, json_string(names[i]));
		free(names[i]);
	}
	free(names);
	free(links);
	if (lock >= 0)
		close(lock);
	return finish_report(error, &report);
}

/* Routes are gone at once; a hook may take its time. */
static int wait_for_withdrawal(json_t **reply)
{
	const uint64_t end = now_ms() + WITHDRAW_MS;
	json_int_t left = json_integer_value(json_object_get(*reply, "announced"));

	while (left && now_ms() < end) {
		json_t *status;
		int code;

		usleep(POLL_MS * 1000);
		code = ctl_call("Status", NULL, &status);
		if (code)
			return code;
		json_decref(*reply);
		*reply = json_incref(json_object_get(status, "self_drain"));
		json_decref(status);
		left = json_integer_value(json_object_get(*reply, "announced"));
	}
	if (!left)
		return CTL_OK;
	return ctl_fail(CTL_INVALID, "Failed",
			"%" JSON_INTEGER_FORMAT
			" addresses are announced still, so that the program stays where it is: see "
			"shuntctl status",
			left);
}

static int drained(json_t *reply, json_t *detached, json_int_t late)
{
	if (ctl_options.json) {
		json_object_set(reply, "detached", detached);
		json_object_set_new(reply, "late_packets", json_integer(late));
		return ctl_print_json(json_incref(reply));
	}
	printf("This balancer is drained, also after restarts, until \"shuntctl self undrain\".\n");
	return CTL_OK;
}

static int drain(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"wait-for", OPTION_WAIT_FOR, "SECONDS", 0,
		 "at most so long, until packets for services have ceased for 10 seconds (default: 60)", 0},
		{"reason", OPTION_REASON, "TEXT", 0, "why, for status", 0},
		{},
	};
	static const char *const names[] = {NULL};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Takes this balancer out of service: withdraws all announcements, waits until routers send "
		       "packets "
		       "elsewhere, and detaches the program. It stays so over restarts, until it is undrained.",
		.children = children,
	};
	struct self self = {.words = {.names = names}, .wait_for = WAIT_DEFAULT};
	json_t *parameters = json_object(), *reply = NULL, *detached = json_array();
	json_int_t late = 0;
	int code = ctl_parse(&argp, argc, argv, NULL, &self);

	code = code ? code : check_root();
	ctl_set_text(parameters, "reason", self.reason);
	if (code)
		json_decref(parameters);
	else
		code = ctl_call("SelfDrain", parameters, &reply);
	code = code ? code : wait_for_withdrawal(&reply);
	if (!code && !ctl_options.json) {
		printf("No address is announced any more; waiting for packets to cease.\n");
		fflush(stdout);
	}
	code = code ? code : wait_for_silence(self.wait_for, &late);
	code = code ? code : still_drained();
	if (!code && late)
		fprintf(stderr, "shuntctl: warning: packets for services still come: detaching all the same\n");
	code = code ? code : detach(detached);
	code = code ? code : drained(reply, detached, late);
	json_decref(reply);
	json_decref(detached);
	return code;
}

/* ---- undrain ---- */

static bool is_attached(const struct attach_link *links, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (links[i].alive && links[i].role == PROGRAM_LB && links[i].netns == attach_netns() &&
		    links[i].ifindex == if_nametoindex(name))
			return true;
	return false;
}

static int attach_one(const char *name, enum attach_mode mode, struct report *report)
{
	const struct maps_capacities as_they_are = {};
	const struct attach_request request = {
		.instance = ctl_options.instance,
		.role = PROGRAM_LB,
		.mode = mode,
		.names = &name,
		.n_names = 1,
	};

	return attach_balancer(&request, &as_they_are, report);
}

/* Those that had the program before the drain, and are still there. */
static int attach_again(const json_t *interfaces)
{
	struct report report = {};
	struct attach_link *links = NULL;
	const json_t *row;
	size_t i, n = 0;
	int lock = maps_begin(ctl_options.instance, &report), error = lock < 0 ? lock : 0;

	if (!error)
		error = attach_links(ctl_options.instance, &links, &n);
	json_array_foreach (interfaces, i, row) {
		const char *name = json_string_value(json_object_get(row, "interface"));
		enum attach_mode mode = ATTACH_NATIVE;

		announce_mode_parse(json_string_value(json_object_get(row, "mode")), &mode);
		if (error || !name || is_attached(links, n, name))
			continue;
		if (if_nametoindex(name))
			error = attach_one(name, mode, &report);
		else
			report_add(&report, REPORT_WARNING, 0, 0, "%s had the program, and is gone", name);
	}
	free(links);
	if (lock >= 0)
		close(lock);
	return finish_report(error, &report);
}

static int undrain(int argc, char **argv)
{
	static const char *const names[] = {NULL};
	static const struct argp_child children[] = {CTL_GLOBAL, {}};
	static const struct argp argp = {
		.parser = parse,
		.doc = "Takes this balancer into service again: attaches the program to the interfaces that had it, "
		       "and "
		       "announces.",
		.children = children,
	};
	struct self self = {.words = {.names = names}};
	json_t *status = NULL, *reply = NULL;
	int code = ctl_parse(&argp, argc, argv, NULL, &self);

	code = code ? code : check_root();
	code = code ? code : ctl_call("Status", NULL, &status);
	code = code ? code : attach_again(json_object_get(json_object_get(status, "self_drain"), "interfaces"));
	code = code ? code : ctl_call("SelfUndrain", NULL, &reply);
	if (!code && ctl_options.json)
		ctl_print_json(json_incref(reply));
	json_decref(status);
	json_decref(reply);
	return code;
}

int cmd_self(int argc, char **argv)
{
	static const struct ctl_verb verbs[] = {
		{"drain", drain, "[--wait-for SECONDS] [--reason TEXT]", "withdraw, wait, detach"},
		{"undrain", undrain, "", "attach and announce again"},
	};

	return ctl_dispatch(verbs, sizeof(verbs) / sizeof(verbs[0]), "This balancer as a whole.", argc, argv);
}
