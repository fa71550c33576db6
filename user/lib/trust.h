/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whom checks by TLS believe: what all those of one setting share, so that certificates are read once and not by each
 * check.
 */
#ifndef SHUNT_TRUST_H
#define SHUNT_TRUST_H

#include <stdbool.h>
#include <gnutls/gnutls.h>

#include "report.h"

#define TRUST_SYSTEM_FILE "/etc/ssl/certs/ca-certificates.crt"

struct trust;

/*
 * The authorities of a file of certificates in PEM; NULL: any certificate will do.  The file is read now, and not
 * again.  0 and *out, with one reference; -EINVAL, reported, or -ENOMEM.
 */
int trust_new(const char *ca_file, struct trust **out, struct report *report);

struct trust *trust_ref(struct trust *trust);
void trust_unref(struct trust *trust); /* NULL is allowed */

/* Whether certificates must be those of an authority. */
bool trust_verifies(const struct trust *trust);

/* Tell a new session of a client. 0, or an error of GnuTLS. */
int trust_set(const struct trust *trust, gnutls_session_t session);

#endif
