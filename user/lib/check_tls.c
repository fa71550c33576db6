/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * TLS of a check, over its socket.  Whatever the server sends, a step reads no more than STEP_BYTES, so that others
 * have their turn before the event of what is left; and a check no more than BYTES_MAX, which bounds what it holds in
 * memory.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "addr.h"
#include "check_internal.h"

#define STEP_BYTES 32768u /* two of the largest records (RFC 8446, 5.1) */
#define BYTES_MAX (512u << 10)
#define ALERTS_MAX 16 /* warnings that are passed over */
#define DATE_MAX 16

struct check_tls {
	struct trust *trust;
	gnutls_session_t session; /* NULL: it has not begun */
	size_t budget;		  /* bytes that this step may still read */
	size_t received;	  /* bytes, by all steps */
	unsigned int alerts;	  /* that were passed over */
	int error;		  /* of the socket: errno */
	bool ended;		  /* the server sends no more */
	bool records;		  /* what came first looked like TLS */
	char name[MODEL_SERVER_NAME_MAX + 1];
	gnutls_typed_vdata_st wanted[2]; /* of the certificate; the session refers to it */
};

/* ---- the socket ---- */

static ssize_t failed_transfer(struct check_tls *tls)
{
	if (errno != EAGAIN && errno != EINTR)
		tls->error = errno;
	gnutls_transport_set_errno(tls->session, errno);
	return -1;
}

static ssize_t pull(gnutls_transport_ptr_t arg, void *data, size_t size)
{
	const struct check *check = arg;
	struct check_tls *tls = check->tls;
	ssize_t got;

	errno = tls->received < BYTES_MAX ? EAGAIN : EMSGSIZE;
	if (!tls->budget || tls->received >= BYTES_MAX)
		return failed_transfer(tls);
	got = recv(check->fd, data, size < tls->budget ? size : tls->budget, 0);
	if (got < 0)
		return failed_transfer(tls);
	if (got && !tls->received) { /* change_cipher_spec to application_data (RFC 8446, 5.1) */
		unsigned char type = *(unsigned char *)data;

		tls->records = type >= 20 && type <= 23;
	}
	tls->budget -= (size_t)got;
	tls->received += (size_t)got;
	tls->ended = !got;
	return got;
}

static ssize_t push(gnutls_transport_ptr_t arg, const void *data, size_t size)
{
	const struct check *check = arg;
	ssize_t sent = send(check->fd, data, size, MSG_NOSIGNAL);

	return sent < 0 ? failed_transfer(check->tls) : sent;
}

/* Never waits: what it would wait for comes as an event. */
static int pull_timeout(gnutls_transport_ptr_t arg, unsigned int milliseconds)
{
	const struct check *check = arg;
	struct pollfd wanted = {.fd = check->fd, .events = POLLIN};

	(void)milliseconds;
	return poll(&wanted, 1, 0);
}

/* ---- what went wrong, in words ---- */

static enum check_verdict explain_alert(struct check *check)
{
	const struct check_tls *tls = check->tls;
	gnutls_alert_description_t alert = gnutls_alert_get(tls->session);
	const char *name = gnutls_alert_get_name(alert);

	/* In TLS 1.2 a server that is given no certificate says so with one of several alerts. */
	if (gnutls_certificate_client_get_request_status(tls->session) || alert == GNUTLS_A_CERTIFICATE_REQUIRED)
		return check_fail(check, "the server wants a client certificate, which checks have not");
	switch (alert) {
	case GNUTLS_A_PROTOCOL_VERSION:
		return check_fail(check, "the server speaks no TLS 1.2 or newer");
	case GNUTLS_A_UNRECOGNIZED_NAME:
		return check_fail(check, "the server does not know the name %.60s (SNI)", tls->name);
	case GNUTLS_A_NO_APPLICATION_PROTOCOL:
		return check_fail(check, "the server does not speak http/1.1 (ALPN)");
	default:
		return check_fail(check, "the server refused TLS: alert %d, %.60s", alert, name ? name : "unknown");
	}
}

/* When the server's own certificate ends; whether it has. */
static bool has_expired(const struct check_tls *tls, char date[static DATE_MAX])
{
	unsigned int n = 0;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(tls->session, &n);
	gnutls_x509_crt_t certificate;
	time_t end = -1;
	struct tm parts;

	if (!n || gnutls_x509_crt_init(&certificate))
		return false;
	if (!gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER))
		end = gnutls_x509_crt_get_expiration_time(certificate);
	gnutls_x509_crt_deinit(certificate);
	return end != -1 && end < time(NULL) && gmtime_r(&end, &parts) && strftime(date, DATE_MAX, "%Y-%m-%d", &parts);
}

static enum check_verdict explain_certificate(struct check *check)
{
	const struct check_tls *tls = check->tls;
	unsigned int status = gnutls_session_get_verify_cert_status(tls->session);
	char date[DATE_MAX];

	if (status & GNUTLS_CERT_EXPIRED && has_expired(tls, date))
		return check_fail(check, "the certificate expired on %s", date);
	if (status & GNUTLS_CERT_EXPIRED)
		return check_fail(check, "a certificate of the chain has expired");
	if (status & GNUTLS_CERT_NOT_ACTIVATED)
		return check_fail(check, "the certificate is not valid yet: are the clocks right?");
	if (status & GNUTLS_CERT_SIGNER_NOT_FOUND)
		return check_fail(check, "the certificate is of no authority in the CA file");
	if (status & GNUTLS_CERT_UNEXPECTED_OWNER)
		return check_fail(check, "the certificate is not for %.80s", tls->name);
	if (status & GNUTLS_CERT_PURPOSE_MISMATCH)
		return check_fail(check, "the certificate is not one for servers");
	if (status & GNUTLS_CERT_INSECURE_ALGORITHM)
		return check_fail(check, "the certificate is signed by an algorithm that is not secure");
	return check_fail(check, "the certificate is not valid (GnuTLS status 0x%x)", status);
}

static enum check_verdict explain(struct check *check, int error)
{
	const struct check_tls *tls = check->tls;

	switch (error) {
	case GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR:
		return explain_certificate(check);
	case GNUTLS_E_FATAL_ALERT_RECEIVED:
	case GNUTLS_E_WARNING_ALERT_RECEIVED:
		return explain_alert(check);
	case GNUTLS_E_SESSION_EOF:
		return check_fail(check, "the server ended the TLS handshake");
	case GNUTLS_E_REHANDSHAKE:
		return check_fail(check, "the server wants to negotiate anew, which checks do not");
	default:
		break;
	}
	if (tls->ended)
		return check_fail(check, "the server closed the connection within the TLS handshake");
	if (tls->received >= BYTES_MAX)
		return check_fail(check, "the server sends too much for a TLS handshake");
	if (tls->alerts >= ALERTS_MAX)
		return check_fail(check, "the server sends one TLS warning after another");
	if (tls->error)
		return check_fail(check, "within TLS: %s", strerror(tls->error));
	if (tls->received && !tls->records)
		return check_fail(check, "what answers speaks no TLS");
	if (error == GNUTLS_E_UNSUPPORTED_VERSION_PACKET)
		return check_fail(check, "the server speaks no TLS 1.2 or newer");
	return check_fail(check, "TLS: %.100s", gnutls_strerror(error));
}

/* ---- handshake ---- */

static enum check_verdict shake_hands(struct check *check)
{
	struct check_tls *tls = check->tls;
	int ret;

	tls->budget = STEP_BYTES;
	do
		ret = gnutls_handshake(tls->session);
	while (ret < 0 && ret != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(ret) && ++tls->alerts < ALERTS_MAX);
	if (ret == GNUTLS_E_AGAIN) {
		check->events = gnutls_record_get_direction(tls->session) ? EPOLLOUT : EPOLLIN;
		return CHECK_RUNNING;
	}
	if (ret)
		return explain(check, ret);
	return check_say(check);
}

/* The session keeps a pointer to what is wanted. */
static void want_certificate(struct check_tls *tls)
{
	tls->wanted[0] = (gnutls_typed_vdata_st){.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)tls->name};
	tls->wanted[1] =
		(gnutls_typed_vdata_st){.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (void *)GNUTLS_KP_TLS_WWW_SERVER};
	gnutls_session_set_verify_cert2(tls->session, tls->wanted, 2, 0);
}

static int begin_session(struct check *check)
{
	static const gnutls_datum_t protocol = {.data = (unsigned char *)"http/1.1", .size = 8};
	struct check_tls *tls = check->tls;
	union shunt_address address;
	int ret = gnutls_init(&tls->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS |
						     GNUTLS_KEY_SHARE_TOP);

	if (!ret)
		ret = trust_set(tls->trust, tls->session);
	if (!ret)
		ret = gnutls_alpn_set_protocols(tls->session, &protocol, 1, 0);
	if (!ret && *tls->name && addr_parse(tls->name, &address))
		ret = gnutls_server_name_set(tls->session, GNUTLS_NAME_DNS, tls->name, strlen(tls->name));
	if (ret)
		return ret;
	if (trust_verifies(tls->trust))
		want_certificate(tls);
	gnutls_transport_set_ptr(tls->session, check);
	gnutls_transport_set_pull_function(tls->session, pull);
	gnutls_transport_set_push_function(tls->session, push);
	gnutls_transport_set_pull_timeout_function(tls->session, pull_timeout);
	return 0;
}

/* ---- what other parts of a check see ---- */

int check_tls_new(struct check *check, struct trust *trust)
{
	struct check_tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return -ENOMEM;
	tls->trust = trust_ref(trust);
	model_health_server_name(check->health, tls->name);
	check->tls = tls;
	return 0;
}

void check_tls_free(struct check_tls *tls)
{
	if (!tls)
		return;
	if (tls->session)
		gnutls_deinit(tls->session);
	trust_unref(tls->trust);
	free(tls);
}

bool check_tls_heard(const struct check_tls *tls)
{
	return tls->received;
}

enum check_verdict check_tls_step(struct check *check)
{
	int ret = check->tls->session ? 0 : begin_session(check);

	return ret ? check_fail(check, "cannot begin TLS: %.80s", gnutls_strerror(ret)) : shake_hands(check);
}

ssize_t check_tls_send(struct check *check, const void *data, size_t length)
{
	struct check_tls *tls = check->tls;
	ssize_t sent = gnutls_record_send(tls->session, data, length);

	if (sent < 0)
		errno = tls->error ? tls->error : EPROTO;
	return sent;
}

ssize_t check_tls_receive(struct check *check, void *data, size_t size)
{
	struct check_tls *tls = check->tls;
	ssize_t got;

	tls->budget = STEP_BYTES;
	got = gnutls_record_recv(tls->session, data, size);
	if (got >= 0)
		return got;
	if (tls->ended) /* without close_notify, as many do */
		return 0;
	if (got == GNUTLS_E_REHANDSHAKE || gnutls_error_is_fatal((int)got)) {
		explain(check, (int)got);
		return -EPROTO;
	}
	return -EAGAIN;
}

bool check_tls_has_more(const struct check_tls *tls)
{
	return gnutls_record_check_pending(tls->session);
}
