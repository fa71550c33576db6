/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "trust.h"

#define FILE_MAX (4u << 20) /* bytes */

/*
 * TLS 1.2 and 1.3.  No finite-field Diffie-Hellman: the server chooses how large its numbers are, and so how much time
 * one check takes.
 */
#define PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-DHE-RSA:-GROUP-DH-ALL"

struct trust {
	gnutls_certificate_credentials_t credentials;
	gnutls_priority_t priorities;
	bool verifies;
	unsigned int references;
};

static int cannot_read(const char *path, int error, struct report *report)
{
	if (error == -ENOMEM)
		return error;
	if (error == -EUCLEAN)
		return report_error(report, -EINVAL,
				    "the CA file %s is not a regular file of at most 4 MiB: name one with ca-file",
				    path);
	return report_error(report, -EINVAL, "cannot read the CA file %s (%s): %s", path, strerror(-error),
			    strcmp(path, TRUST_SYSTEM_FILE) ? "put it there, or name another with ca-file"
							    : "install ca-certificates, or name one with ca-file");
}

/* CA files are often links, to what a tool renews. */
static char *read_linked(const char *path, size_t *length, int *error)
{
	char *real = realpath(path, NULL), *text = NULL;

	if (real)
		text = file_read(real, FILE_MAX, length, error);
	else
		*error = -errno;
	free(real);
	return text;
}

static int read_authorities(struct trust *trust, const char *path, struct report *report)
{
	size_t length = 0;
	int error, n;
	char *text = read_linked(path, &length, &error);
	const gnutls_datum_t content = {.data = (unsigned char *)text, .size = (unsigned int)length};

	if (!text)
		return cannot_read(path, error, report);
	n = length ? gnutls_certificate_set_x509_trust_mem(trust->credentials, &content, GNUTLS_X509_FMT_PEM) : 0;
	free(text);
	if (n == GNUTLS_E_MEMORY_ERROR)
		return -ENOMEM;
	if (!length)
		return report_error(report, -EINVAL,
				    "the CA file %s is empty: put the certificates of the authorities into it, in PEM",
				    path);
	if (n == 0 || n == GNUTLS_E_NO_CERTIFICATE_FOUND)
		return report_error(report, -EINVAL,
				    "the CA file %s holds no certificate in PEM (\"-----BEGIN CERTIFICATE-----\"): put "
				    "those of the authorities into it",
				    path);
	if (n < 0)
		return report_error(report, -EINVAL,
				    "the CA file %s has a certificate that cannot be read (%s): write it again, in PEM",
				    path, gnutls_strerror(n));
	trust->verifies = true;
	return 0;
}

/* ---- what the caller sees ---- */

int trust_new(const char *ca_file, struct trust **out, struct report *report)
{
	struct trust *trust = calloc(1, sizeof(*trust));
	int ret = trust ? 0 : -ENOMEM;

	if (ret)
		return ret;
	trust->references = 1;
	if (gnutls_certificate_allocate_credentials(&trust->credentials) ||
	    gnutls_priority_init(&trust->priorities, PRIORITIES, NULL))
		ret = -ENOMEM;
	if (!ret && ca_file)
		ret = read_authorities(trust, ca_file, report);
	if (ret) {
		trust_unref(trust);
		return ret;
	}
	*out = trust;
	return 0;
}

struct trust *trust_ref(struct trust *trust)
{
	trust->references++;
	return trust;
}

void trust_unref(struct trust *trust)
{
	if (!trust || --trust->references)
		return;
	if (trust->priorities)
		gnutls_priority_deinit(trust->priorities);
	if (trust->credentials)
		gnutls_certificate_free_credentials(trust->credentials);
	free(trust);
}

bool trust_verifies(const struct trust *trust)
{
	return trust->verifies;
}

int trust_set(const struct trust *trust, gnutls_session_t session)
{
	int ret = gnutls_priority_set(session, trust->priorities);

	return ret ? ret : gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, trust->credentials);
}
