/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the verbs of shuntctl share.  A verb is `int cmd_x(int argc, char **argv)` in cmd_x.c: argv[0] is its full name
 * for messages ("shuntctl pool add"), the result is the exit code.  Everything that a verb prints about a failure goes
 * through ctl_fail(), so that with -j an error is JSON on stdout.
 */
#ifndef SHUNT_CTL_H
#define SHUNT_CTL_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "report.h"

enum ctl_exit {
	CTL_OK,
	CTL_INVALID, /* invalid, or refused by the daemon */
	CTL_USAGE,
	CTL_UNREACHABLE, /* no daemon, or none that answers */
	CTL_POLICY,	 /* refused by the document's policy */
	CTL_CHANGES,	 /* --exit-code: there is something to do, or a difference */
	CTL_INCOMPARABLE /* verify: what to compare with cannot be read, or is something else */
};

/* Options that every verb takes, before it and after it. */
struct ctl_options {
	const char *instance;
	bool json;
	unsigned int timeout_ms; /* 0: the verb's default */
};
extern struct ctl_options ctl_options;

/* ---- command line (parse.c) ---- */

/* Give it to each verb's argp as its only child: { CTL_GLOBAL, {} }. */
#define CTL_GLOBAL                                                                                                     \
	{                                                                                                              \
		&ctl_global_argp, 0, "Options of every verb:", 100                                                     \
	}
extern const struct argp ctl_global_argp;

/*
 * argp_parse() with --help and errors in shuntctl's way: 0, or CTL_USAGE after the error was printed.  *first, if not
 * NULL: parsing stops at the first word that is no option, and this is its index (argc if there is none).
 */
int ctl_parse(const struct argp *argp, int argc, char **argv, int *first, void *input);

/* In an argp parser: `return ctl_usage(state, "...")` refuses the command line. */
error_t ctl_usage(const struct argp_state *state, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Words that are no options. */
#define CTL_WORDS_MAX 4
struct ctl_words {
	const char *const *names; /* "NAME", "ADDRESS:PORTS", ..., NULL */
	unsigned int required;	  /* the first so many may not be missing */
	const char *value[CTL_WORDS_MAX];
};

/* A parser's default case: takes the words, checks their number; else ARGP_ERR_UNKNOWN. */
error_t ctl_word(struct ctl_words *words, int key, char *arg, const struct argp_state *state);

/* A whole number from 0 to 2^63-1.  0, or -EINVAL and *out untouched. */
int ctl_number(const char *text, json_int_t *out);
/* A whole number that an option ("--x") takes, from least to most; a usage error where it is not one. */
error_t ctl_number_option(const struct argp_state *state, const char *option, const char *arg, json_int_t least,
			  json_int_t most, json_int_t *out);
/* A decimal number that an option takes, from least to most; a usage error where it is not one. */
error_t ctl_decimal(const struct argp_state *state, const char *option, const char *arg, double least, double most,
		    double *out);

/* ---- verbs (dispatch.c) ---- */

struct ctl_verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *words;   /* its command line after the name, for help */
	const char *summary; /* one line */
};

/* Find argv's verb in the list and run it.  argv[0] is what stands before the verb, `intro` the help's first lines. */
int ctl_dispatch(const struct ctl_verb *verbs, size_t n, const char *intro, int argc, char **argv);

/* ---- the daemon (call.c) ---- */

/*
 * Call a method.  0: *reply is the reply's parameters, owned by the caller.  Else the exit code, after the failure was
 * printed.  Takes the reference to `parameters` (NULL: none).
 */
int ctl_call(const char *method, json_t *parameters, json_t **reply);

/* The same for a reply with an array `member`, which is *rows, borrowed from *reply. */
int ctl_rows(const char *method, json_t *parameters, const char *member, json_t **reply, const json_t **rows);

/* The rows alone, a new reference; NULL, and nothing printed, where no daemon gives them. */
json_t *ctl_rows_if_running(const char *method, const char *member);

/* The row whose `key` is `value`, borrowed; NULL if there is none, and for rows that are NULL. */
const json_t *ctl_row_with(const json_t *rows, const char *key, json_int_t value);

/* The instance's maps, without a daemon: 0, or the exit code after the failure was printed. */
struct maps;
int ctl_open_maps(struct maps *maps, struct report *report);

/* Options of whatever changes something (change.c): the child CTL_CHANGE of its argp, whose input they are. */
struct ctl_change_options {
	bool wait, plan, force, exit_code;
	const char *reason;
};
#define CTL_CHANGE                                                                                                     \
	{                                                                                                              \
		&ctl_change_argp, 0, NULL, 0                                                                           \
	}
extern const struct argp ctl_change_argp;
/* In the parser: `case ARGP_KEY_INIT`, where CTL_CHANGE is the first child. */
error_t ctl_change_init(const struct argp_state *state, struct ctl_change_options *options);

/* Call a method that changes something; its reply. */
int ctl_change_reply(const char *method, json_t *parameters, const struct ctl_change_options *options, json_t **reply);
/* The same; prints the plan that was asked for, or with -j the reply, and else nothing. */
int ctl_change(const char *method, json_t *parameters, const struct ctl_change_options *options);

/* A plan's reply for people, or with -j as JSON; takes the reference.  The exit code (plan_output.c). */
int ctl_print_plan(json_t *plan, bool exit_code);
/*
 * What a document or a rollback did, or with options->plan would do; takes the reference.  confirm: seconds in which
 * it is to be confirmed, or 0.
 */
int ctl_print_applied(json_t *reply, const struct ctl_change_options *options, json_int_t confirm);
/* Only what is different in the documents; borrowed. */
void ctl_print_changes(const json_t *changes);
void ctl_print_warnings(const json_t *entries);
/* A file's bytes as text for a request ("-": standard input): malloc'd, wipe it; NULL after the failure was printed. */
char *ctl_read_document(const char *path, int *code);

/* Members of a request from words of the command line; NULL is left out. */
void ctl_set_text(json_t *parameters, const char *key, const char *text);

/* Split "pool/backend" into parameters `pool` and `name`; false if it is not of that shape. */
bool ctl_set_backend(json_t *parameters, const char *path);

/* ---- output (output.c) ---- */

/*
 * Print "shuntctl: message" to stderr, or with -j {"error": error, "message": ..., "entries": [...]} to stdout, and
 * return `code`.
 */
int ctl_fail(enum ctl_exit code, const char *error, const char *format, ...) __attribute__((format(printf, 3, 4)));
int ctl_fail_report(enum ctl_exit code, const char *error, const struct report *report);
/* entries: as in the protocol; borrowed, may be NULL. */
int ctl_fail_entries(enum ctl_exit code, const char *error, const char *message, const json_t *entries);

/* Print as JSON; takes the reference.  Returns CTL_OK. */
int ctl_print_json(json_t *value);

enum ctl_format {
	CTL_TEXT,    /* as it is; booleans as yes and no */
	CTL_NUMBER,  /* right-aligned */
	CTL_PERCENT, /* with two decimals */
	CTL_TIME,    /* UNIX seconds as local time */
	CTL_LONG,    /* text that may be wrapped */
};

struct ctl_column {
	const char *title;
	const char *key;
	enum ctl_format format;
	char *(*text)(const json_t *row); /* instead of `key`: malloc'd */
};

/* Print rows, an array of objects, as a table; a member that is missing or null is "-".  Returns CTL_OK. */
int ctl_print_table(const json_t *rows, const struct ctl_column *columns, size_t n);

/* One line "title  value" for each column. */
int ctl_print_object(const json_t *row, const struct ctl_column *columns, size_t n);

/* A value as a table shows it; malloc'd. */
char *ctl_cell(const json_t *row, const struct ctl_column *column);

/* Flush stdout: the exit code, `code` unless the output was lost.  A reader that went away is no failure. */
int ctl_finish(int code);

/* ---- verbs ---- */

int cmd_apply(int argc, char **argv);
int cmd_backend(int argc, char **argv);
int cmd_backend_del(int argc, char **argv);
int cmd_backend_drain(int argc, char **argv);
int cmd_backend_undrain(int argc, char **argv);
int cmd_backend_maintenance(int argc, char **argv);
int cmd_backend_activate(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_confirm(int argc, char **argv);
int cmd_counters(int argc, char **argv);
int cmd_diff(int argc, char **argv);
int cmd_digests(int argc, char **argv);
int cmd_epoch(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_flow(int argc, char **argv);
int cmd_keygen(int argc, char **argv);
int cmd_metrics(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_pool(int argc, char **argv);
int cmd_pool_table(int argc, char **argv);
int cmd_reload(int argc, char **argv);
int cmd_revision(int argc, char **argv);
int cmd_self(int argc, char **argv);
int cmd_service(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_undo(int argc, char **argv);
int cmd_verify(int argc, char **argv);

#endif
