/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of check*.c share. */
#ifndef SHUNT_CHECK_INTERNAL_H
#define SHUNT_CHECK_INTERNAL_H

#include "check.h"

/* The verdict, with the reason in check->why. */
enum check_verdict check_end(struct check *check, enum check_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
#define check_fail(check, ...) check_end(check, CHECK_FAILED, __VA_ARGS__)
#define check_unable(check, ...) check_end(check, CHECK_UNABLE, __VA_ARGS__)

/* check_speak.c: what is said over a connection that stands; tcp says nothing. */
enum check_verdict check_say(struct check *check);
enum check_verdict check_hear(struct check *check);

/*
 * check_tls.c: TLS over a connection that stands.  A step ends in check_say(), once the handshake is over.  Receiving:
 * bytes; 0: the server ended; -EAGAIN; -EPROTO: it failed, and check->why says how.
 */
int check_tls_new(struct check *check, struct trust *trust); /* into check->tls; -ENOMEM */
void check_tls_free(struct check_tls *tls);		     /* NULL is allowed */
bool check_tls_heard(const struct check_tls *tls);	     /* whether anything came */
enum check_verdict check_tls_step(struct check *check);
ssize_t check_tls_send(struct check *check, const void *data, size_t length);
ssize_t check_tls_receive(struct check *check, void *data, size_t size);
bool check_tls_has_more(const struct check_tls *tls); /* without an event: to be received at once */

/* check_hook.c */
enum check_verdict check_hook_start(struct check *check, const struct check_request *request);
enum check_verdict check_hook_step(struct check *check);

#endif
