// SPDX-License-Identifier: Apache-2.0
#include "serve/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "serve/access.h"

/* What is modern enough for GnuTLS, but for versions. */
#define PRIORITY_DEFAULT "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

static const struct access_record *find_record(const struct access *access, enum access_kind kind)
{
	for (unsigned i = 0; i < access->n; i++)
		if (access->records[i].kind == kind)
			return &access->records[i];
	return NULL;
}

static gnutls_datum_t datum_of(const struct access_record *record)
{
	return (gnutls_datum_t){ (unsigned char *)record->text, (unsigned)record->text_n };
}

static int refuse_tls(struct strbuf *why, const char *what, int error, const char *remedy)
{
	if (why)
		strbuf_addf(why, "%s: %s; %s\n", what, gnutls_strerror(error), remedy);
	return -EINVAL;
}

static int take_certificate(struct access *access, const struct access_record *certificate,
			    struct strbuf *why)
{
	const struct access_record *key = find_record(access, ACCESS_KEY);
	gnutls_datum_t pem = datum_of(certificate), key_pem;
	int r;

	if (!key)
		return refuse_tls(why, "tls_server_config", GNUTLS_E_INSUFFICIENT_CREDENTIALS,
				  "add key_file");
	key_pem = datum_of(key);
	r = gnutls_certificate_set_x509_key_mem(access->credentials, &pem, &key_pem, GNUTLS_X509_FMT_PEM);
	return r < 0 ? refuse_tls(why, "the certificate and its key", r,
				  "both must be PEM, the key without a password and the certificate's own") :
		       0;
}

static int take_client_ca(struct access *access, const struct access_record *ca, struct strbuf *why)
{
	gnutls_datum_t pem = datum_of(ca);
	int r = gnutls_certificate_set_x509_trust_mem(access->credentials, &pem, GNUTLS_X509_FMT_PEM);

	return r <= 0 ? refuse_tls(why, "the certificates that clients' are verified by",
				   r < 0 ? r : GNUTLS_E_NO_CERTIFICATE_FOUND, "client_ca_file must be PEM") :
			0;
}

int tls_prepare(struct access *access, struct strbuf *why)
{
	const struct access_record *certificate = find_record(access, ACCESS_CERTIFICATE),
				   *ca = find_record(access, ACCESS_CLIENT_CA),
				   *priority = find_record(access, ACCESS_PRIORITY);
	const char *wrong;
	int r;

	if (!certificate)
		return 0;
	r = gnutls_certificate_allocate_credentials(&access->credentials);
	if (r < 0)
		return -ENOMEM;
	r = take_certificate(access, certificate, why);
	if (r == 0 && ca)
		r = take_client_ca(access, ca, why);
	if (r < 0)
		return r;
	r = gnutls_priority_init(&access->priority, priority ? priority->text : PRIORITY_DEFAULT, &wrong);
	return r < 0 ? refuse_tls(why, "versions, cipher suites and curves of tls_server_config", r,
				  "leave them out, or allow more of them") :
		       0;
}

void tls_done(struct access *access)
{
	if (access->priority)
		gnutls_priority_deinit(access->priority);
	if (access->credentials)
		gnutls_certificate_free_credentials(access->credentials);
}

/* ---- clients' certificates ---- */

static int first_certificate(gnutls_session_t session, gnutls_x509_crt_t *ret_certificate)
{
	unsigned n = 0;
	const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &n);

	if (!shown || n == 0)
		return -ENOENT;
	if (gnutls_x509_crt_init(ret_certificate) < 0)
		return -ENOMEM;
	if (gnutls_x509_crt_import(*ret_certificate, shown, GNUTLS_X509_FMT_DER) < 0) {
		gnutls_x509_crt_deinit(*ret_certificate);
		return -EPROTO;
	}
	return 0;
}

/* The @i-th alternative name as text, "" if it does not fit or is of another kind. -ENOENT: there is none. */
static int alternative_name(gnutls_x509_crt_t certificate, unsigned i, char *ret_name, size_t size)
{
	char raw[256];
	size_t n = sizeof(raw) - 1;
	int kind = gnutls_x509_crt_get_subject_alt_name(certificate, i, raw, &n, NULL);

	/* What cannot be read has no next one either. */
	if (kind < 0 && kind != GNUTLS_E_SHORT_MEMORY_BUFFER)
		return -ENOENT;
	ret_name[0] = '\0';
	if (kind == GNUTLS_SAN_IPADDRESS && (n == 4 || n == 16)) {
		(void)inet_ntop(n == 4 ? AF_INET : AF_INET6, raw, ret_name, (socklen_t)size);
	} else if (kind == GNUTLS_SAN_DNSNAME || kind == GNUTLS_SAN_RFC822NAME || kind == GNUTLS_SAN_URI) {
		raw[n] = '\0';
		/* With a zero byte in it, it would be read as another name. */
		if (strlen(raw) == n && n < size)
			memcpy(ret_name, raw, n + 1);
	}
	return 0;
}

static bool is_wanted(const struct access *access, const char *name)
{
	for (unsigned i = 0; *name && i < access->n; i++)
		if (access->records[i].kind == ACCESS_CLIENT_SAN && STRV_EQ(access->records[i].text, name))
			return true;
	return false;
}

static bool has_wanted_name(const struct access *access, gnutls_session_t session)
{
	gnutls_x509_crt_t certificate;
	char name[256];
	bool wanted = false;

	if (!find_record(access, ACCESS_CLIENT_SAN))
		return true;
	if (first_certificate(session, &certificate) < 0)
		return false;
	for (unsigned i = 0; !wanted && alternative_name(certificate, i, name, sizeof(name)) == 0; i++)
		wanted = is_wanted(access, name);
	gnutls_x509_crt_deinit(certificate);
	return wanted;
}

static bool verifies(const struct access *access)
{
	return access->client_auth >= CLIENT_AUTH_VERIFY_IF_GIVEN;
}

static bool is_verified(gnutls_session_t session)
{
	gnutls_typed_vdata_st purpose = { GNUTLS_DT_KEY_PURPOSE_OID,
					  (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT, 0 };
	unsigned status = 1;

	return gnutls_certificate_verify_peers(session, &purpose, 1, &status) == 0 && status == 0;
}

/* Whatever is not 0 ends the handshake. The session's verify data is its access. */
static int check_client(gnutls_session_t session)
{
	const struct access *access = gnutls_db_get_ptr(session);
	unsigned n = 0;

	gnutls_certificate_get_peers(session, &n);
	if (n == 0)
		return access->client_auth == CLIENT_AUTH_REQUIRE_ANY ||
				       access->client_auth == CLIENT_AUTH_REQUIRE_AND_VERIFY ?
			       GNUTLS_E_NO_CERTIFICATE_FOUND :
			       0;
	if (verifies(access) && !is_verified(session))
		return GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
	return has_wanted_name(access, session) ? 0 : GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR;
}

int tls_begin(gnutls_session_t session, const struct access *access)
{
	static const gnutls_certificate_request_t requests[] = {
		[CLIENT_AUTH_NONE] = GNUTLS_CERT_IGNORE,
		[CLIENT_AUTH_REQUEST] = GNUTLS_CERT_REQUEST,
		[CLIENT_AUTH_REQUIRE_ANY] = GNUTLS_CERT_REQUIRE,
		[CLIENT_AUTH_VERIFY_IF_GIVEN] = GNUTLS_CERT_REQUEST,
		[CLIENT_AUTH_REQUIRE_AND_VERIFY] = GNUTLS_CERT_REQUIRE,
	};

	if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, access->credentials) < 0 ||
	    gnutls_priority_set(session, access->priority) < 0)
		return -EPROTO;
	gnutls_certificate_server_set_request(session, requests[access->client_auth]);
	/* Sessions are not kept, so the pointer of their store is free. */
	gnutls_db_set_ptr(session, (void *)access);
	if (access->client_auth != CLIENT_AUTH_NONE)
		gnutls_session_set_verify_function(session, check_client);
	return 0;
}

int tls_client_name(gnutls_session_t session, const struct access *access, char *ret_name, size_t size)
{
	gnutls_x509_crt_t certificate;
	size_t n = size;
	int r = verifies(access) ? first_certificate(session, &certificate) : -ENOENT;

	if (r < 0)
		return r;
	r = gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, ret_name, &n);
	if (r < 0 || strlen(ret_name) != n || n == 0) {
		ret_name[0] = '\0';
		(void)alternative_name(certificate, 0, ret_name, size);
	}
	gnutls_x509_crt_deinit(certificate);
	return *ret_name ? 0 : -ENOENT;
}
