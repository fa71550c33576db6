/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shuntctl: the admin tool. */
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

static const struct ctl_verb verbs[] = {
	{"status", cmd_status, "[--check]", "how all of it is, on one screen"},
	{"service", cmd_service, "list|show|add|del ...", "services: what clients connect to"},
	{"pool", cmd_pool, "list|show|table|add|del ...", "pools of backends, and their tables"},
	{"backend", cmd_backend, "list|show|add|drain|del ...", "the servers of a pool"},
	{"stats", cmd_stats, "[--watch [SECONDS]]", "packets and bytes, and their rates"},
	{"counters", cmd_counters, "[--all]", "why packets left, and what that means"},
	{"explain", cmd_explain, "tcp|udp|icmp SOURCE DESTINATION ...", "where a packet goes, and why"},
	{"flow", cmd_flow, "list|show ...", "connections that are recorded"},
	{"metrics", cmd_metrics, "", "all that is counted, as OpenMetrics"},
	{"plan", cmd_plan, "FILE [--exit-code]", "what a document would change"},
	{"apply", cmd_apply, "FILE ...", "make a document the one in force"},
	{"confirm", cmd_confirm, "", "let a change stand that waits for it"},
	{"undo", cmd_undo, "", "take back a change that waits for it"},
	{"diff", cmd_diff, "FILE [--exit-code]", "a document against what runs"},
	{"export", cmd_export, "", "what runs, as a document"},
	{"revision", cmd_revision, "list|show|diff|rollback ...", "what was applied before"},
	{"epoch", cmd_epoch, "list|show|diff ...", "tables: who, why, what moved"},
	{"digests", cmd_digests, "", "of all tables, to compare balancers"},
	{"verify", cmd_verify, "FILE", "compare them with another's"},
	{"self", cmd_self, "drain|undrain ...", "this balancer out of service, and back"},
	{"reload", cmd_reload, "[--wait]", "read the document again and apply it"},
	{"simulate", cmd_simulate, "--backends N ...", "what would move, and how evenly"},
	{"check", cmd_check, "FILE", "judge a document, without a daemon"},
	{"keygen", cmd_keygen, "[FILE]", "make a hash key"},
};

static const char intro[] = "Manages shuntd, the load balancer's daemon.";

/* An error on the command line before -j shall be JSON too. */
static bool wants_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], "-j") || !strcmp(argv[i], "--json"))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	char name[] = "shuntctl";

	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN);
	setenv("ARGP_HELP_FMT", "no-dup-args-note", 0);
	ctl_options.json = wants_json(argc, argv);
	if (argc > 0)
		argv[0] = name;
	return ctl_finish(ctl_dispatch(verbs, sizeof(verbs) / sizeof(verbs[0]), intro, argc, argv));
}
