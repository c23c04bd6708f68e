// SPDX-License-Identifier: Apache-2.0
/*
 * Where the API server is, and as whom it is asked: by the service account that kubelet has put into the
 * container, by a kubeconfig, or by an address alone (`kubectl proxy`).
 *
 * Files are read again by their paths, since those who rotate them swap symbolic links: the token every
 * minute and after a 401, certificates every five minutes. A file that cannot be read, or has nothing in it
 * that could be used, leaves what there was.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macro.h"

#define ACCESS_TOKEN_NS (60 * NSEC_PER_SEC)
#define ACCESS_FILES_NS (300 * NSEC_PER_SEC)
enum {
	ACCESS_TOKEN_MAX = 16 << 10,
	ACCESS_FILE_MAX = 1 << 20, /* of certificates and keys */
	ACCESS_PATH_MAX = 4096,
};

/* What is read from a file, or stands in the kubeconfig itself (no path). NUL-terminated. */
struct access_file {
	char *path; /* NULL: it is no file */
	char *data; /* NULL: there is none */
	size_t n;
};

struct access {
	char *server; /* "https://10.0.0.1:443", without a slash at its end */
	char *tls_name; /* the name that the server's certificate must have; NULL: that of the address */
	char *proxy; /* NULL: none */
	bool insecure; /* the server's certificate is not verified */
	struct access_file ca; /* none: the system's */
	struct access_file certificate, key; /* of the client */
	struct access_file token;
	char *folder; /* that files lie below: of the service account, of the kubeconfig; NULL */
	int64_t token_read_ns, files_read_ns; /* monotonic clock */
	char origin[160]; /* "the service account in FOLDER", for messages */
	char note[200]; /* what is to be said of it though it works; "" */
};

struct access_config {
	const char *server; /* "": as below. Else the address, with the credentials below if there are any */
	const char *kubeconfig; /* "": the service account */
	const char *context; /* of the kubeconfig; "": the current one */
	const char *account; /* folder of the service account */
	const char *host, *port; /* KUBERNETES_SERVICE_HOST and _PORT; "" */
};

/* 0; or -errno, and @error says cause and remedy. */
int access_load(const struct access_config *config, struct access *ret_access, char *error, size_t size);
void access_done(struct access *access);

enum access_news {
	ACCESS_NEW_TOKEN = 1 << 0, /* connections are of use with it, too */
	ACCESS_NEW_FILES = 1 << 1, /* connections are to be made anew */
};

/* Reads again what is due at @now_ns, or all if @force. Returns bits of enum access_news. */
unsigned access_refresh(struct access *access, int64_t now_ns, bool force);

/* Whether @data is text with at least one certificate in PEM. */
bool is_certificate(const char *data);
