// SPDX-License-Identifier: Apache-2.0
#include "kube/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "kube/kubeconfig.h"

/* ---- files ---- */

/* Tokens and keys do not stay in memory that is given back. */
static void wipe(char *data, size_t n)
{
	if (data)
		explicit_bzero(data, n);
	free(data);
}

static int read_whole(const char *path, size_t max, char **ret_data, size_t *ret_n)
{
	char *data = malloc(max + 1), *fitted = NULL;
	size_t n = 0;
	int r = data ? read_file(path, data, max, &n) : -ENOMEM;

	if (r == 0) {
		fitted = malloc(n + 1);
		r = fitted ? 0 : -ENOMEM;
	}
	if (r == 0) {
		memcpy(fitted, data, n);
		fitted[n] = '\0';
		*ret_data = fitted;
		*ret_n = n;
	}
	wipe(data, max + 1);
	return r;
}

/* A token is one word; what ends it is cut off. */
static bool is_token(char *text, size_t *n)
{
	while (*n > 0 && strchr(" \t\r\n", text[*n - 1]))
		text[--*n] = '\0';
	if (*n == 0)
		return false;
	for (size_t i = 0; i < *n; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] > '~')
			return false;
	return true;
}

bool is_certificate(const char *data)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
	const char *at = strstr(data, begin), *last = at ? strstr(at, end) : NULL;
	_cleanup_free_ char *text = NULL, *decoded = NULL;
	size_t n;

	if (!last)
		return false;
	at += strlen(begin);
	text = strndup(at, (size_t)(last - at));
	decoded = text ? base64_decode(text, &n) : NULL;
	/* An ASN.1 sequence, as every certificate is. */
	return decoded && n > 64 && (unsigned char)decoded[0] == 0x30;
}

static bool is_usable_pem(const char *data)
{
	return strstr(data, "-----BEGIN ") && strstr(data, "-----END ");
}

static bool is_usable_ca(char *data, _unused_ size_t *n)
{
	return is_certificate(data);
}

static bool is_usable_key(char *data, _unused_ size_t *n)
{
	return is_usable_pem(data);
}

/* True: the file has other content than before, which can be used. */
static bool read_again(struct access_file *file, size_t max, bool (*usable)(char *data, size_t *n))
{
	char *data;
	size_t n, read;

	if (!file->path || read_whole(file->path, max, &data, &read) < 0)
		return false;
	n = read;
	if (!usable(data, &n) || (file->data && n == file->n && memcmp(file->data, data, n) == 0)) {
		wipe(data, read);
		return false;
	}
	wipe(file->data, file->n);
	file->data = data;
	file->n = n;
	return true;
}

static bool read_files_again(struct access *access)
{
	bool changed = read_again(&access->ca, ACCESS_FILE_MAX, is_usable_ca);

	changed |= read_again(&access->certificate, ACCESS_FILE_MAX, is_usable_key);
	changed |= read_again(&access->key, ACCESS_FILE_MAX, is_usable_key);
	return changed;
}

unsigned access_refresh(struct access *access, int64_t now_ns, bool force)
{
	unsigned news = 0;

	if (force || now_ns - access->token_read_ns >= ACCESS_TOKEN_NS) {
		access->token_read_ns = now_ns;
		if (read_again(&access->token, ACCESS_TOKEN_MAX, is_token))
			news |= ACCESS_NEW_TOKEN;
	}
	if (force || now_ns - access->files_read_ns >= ACCESS_FILES_NS) {
		access->files_read_ns = now_ns;
		if (read_files_again(access))
			news |= ACCESS_NEW_FILES;
	}
	return news;
}

/* ---- the first time ---- */

static int load_file(struct access_file *file, const char *what, size_t max,
		     bool (*usable)(char *data, size_t *n), char *error, size_t size)
{
	int r;

	if (!file->path && (!file->data || usable(file->data, &file->n)))
		return 0;
	r = file->path ? read_whole(file->path, max, &file->data, &file->n) : 0;
	if (r < 0) {
		snprintf(error, size, "%s: %s", file->path, r == -E2BIG ? "it is too long" : strerror(-r));
		return r;
	}
	if (usable(file->data, &file->n))
		return 0;
	snprintf(error, size, "%s: there is no %s in it", file->path ? file->path : "the kubeconfig", what);
	return -EINVAL;
}

static int load_files(struct access *access, char *error, size_t size)
{
	int r = load_file(&access->ca, "certificate", ACCESS_FILE_MAX, is_usable_ca, error, size);

	if (r == 0)
		r = load_file(&access->certificate, "certificate", ACCESS_FILE_MAX, is_usable_key, error,
			      size);
	if (r == 0)
		r = load_file(&access->key, "key", ACCESS_FILE_MAX, is_usable_key, error, size);
	if (r == 0)
		r = load_file(&access->token, "token", ACCESS_TOKEN_MAX, is_token, error, size);
	if (r == 0 && !access->certificate.data != !access->key.data) {
		snprintf(error, size, "%s: a client certificate and its key belong together", access->origin);
		r = -EINVAL;
	}
	return r;
}

static char *path_in(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static int load_account(const struct access_config *config, struct access *access, char *error, size_t size)
{
	const char *host = config->host;
	bool bare = strchr(host, ':') && *host != '[';

	snprintf(access->origin, sizeof(access->origin), "the service account in %.120s", config->account);
	if (!*host) {
		snprintf(
			error, size,
			"neither in a pod (KUBERNETES_SERVICE_HOST is not set) nor told of a kubeconfig; set "
			"kube.config or kube.server");
		return -ENOENT;
	}
	access->folder = strdup(config->account);
	access->ca.path = path_in(config->account, "ca.crt");
	access->token.path = path_in(config->account, "token");
	if (asprintf(&access->server, "https://%s%s%s:%s", bare ? "[" : "", host, bare ? "]" : "",
		     *config->port ? config->port : "443") < 0)
		access->server = NULL;
	if (access->folder && access->ca.path && access->token.path && access->server)
		return 0;
	snprintf(error, size, "there is no memory");
	return -ENOMEM;
}

static int load_kubeconfig(const struct access_config *config, struct access *access, char *error,
			   size_t size)
{
	const char *path = config->kubeconfig, *slash = strrchr(path, '/');

	snprintf(access->origin, sizeof(access->origin), "%.150s", path);
	/* In the root folder it is the file alone. */
	access->folder = !slash       ? strdup(".") :
			 slash > path ? strndup(path, (size_t)(slash - path)) :
					strdup(path);
	return access->folder ? kubeconfig_read(path, config->context, access, error, size) : -ENOMEM;
}

static int check_server(struct access *access, char *error, size_t size)
{
	size_t n = strlen(access->server);

	while (n > 0 && access->server[n - 1] == '/')
		access->server[--n] = '\0';
	if (strncmp(access->server, "https://", 8) == 0) {
		if (access->insecure)
			snprintf(access->note, sizeof(access->note),
				 "the API server's certificate is not verified (insecure-skip-tls-verify): "
				 "any server that answers at its address is believed");
		return 0;
	}
	if (strncmp(access->server, "http://", 7) != 0) {
		snprintf(error, size, "%.100s: an API server's address begins with https:// or http://",
			 access->server);
		return -EINVAL;
	}
	if (access->token.path || access->token.data)
		snprintf(access->note, sizeof(access->note),
			 "the API server's address is http://, so no token is sent, which anyone could read");
	return 0;
}

/* An address alone: as the service account only where there is one, and by TLS. */
static int load_server(const struct access_config *config, struct access *access, char *error, size_t size)
{
	char *server = strdup(config->server);
	int r = 0;

	if (!server)
		return -ENOMEM;
	if (*config->kubeconfig) {
		r = load_kubeconfig(config, access, error, size);
	} else if (strncmp(server, "https://", 8) == 0 && *config->host) {
		r = load_account(config, access, error, size);
	} else {
		snprintf(access->origin, sizeof(access->origin), "kube.server");
	}
	free(access->server);
	access->server = server;
	return r;
}

int access_load(const struct access_config *config, struct access *ret_access, char *error, size_t size)
{
	struct access access = { 0 };
	int r;

	if (*config->server)
		r = load_server(config, &access, error, size);
	else if (*config->kubeconfig)
		r = load_kubeconfig(config, &access, error, size);
	else
		r = load_account(config, &access, error, size);
	if (r == 0)
		r = check_server(&access, error, size);
	if (r == 0)
		r = load_files(&access, error, size);
	access.token_read_ns = access.files_read_ns = clock_mono_ns();
	if (r < 0)
		access_done(&access);
	else
		*ret_access = access;
	return r;
}

static void file_done(struct access_file *file)
{
	free(file->path);
	wipe(file->data, file->n);
	*file = (struct access_file){ 0 };
}

void access_done(struct access *access)
{
	free(TAKE_PTR(access->server));
	free(TAKE_PTR(access->tls_name));
	free(TAKE_PTR(access->proxy));
	free(TAKE_PTR(access->folder));
	file_done(&access->ca);
	file_done(&access->certificate);
	file_done(&access->key);
	file_done(&access->token);
}
