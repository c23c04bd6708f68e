// SPDX-License-Identifier: Apache-2.0
#include "kube/kubeconfig.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/yaml.h"

struct reader {
	const char *path;
	struct access *access;
	char *error;
	size_t size;
};

static int refuse_config(struct reader *r, int error, const char *format, ...) _printf_(3, 4);

static int refuse_config(struct reader *r, int error, const char *format, ...)
{
	int n = snprintf(r->error, r->size, "%s: ", r->path);
	va_list args;

	if (n >= 0 && (size_t)n < r->size) {
		va_start(args, format);
		vsnprintf(r->error + n, r->size - (size_t)n, format, args);
		va_end(args);
	}
	return error;
}

/* ---- base64 ---- */

static int digit_of(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

char *base64_decode(const char *text, size_t *ret_n)
{
	_cleanup_free_ char *data = malloc(strlen(text) / 4 * 3 + 4);
	uint32_t bits = 0;
	unsigned have = 0;
	size_t n = 0;

	if (!data)
		return NULL;
	for (; *text && *text != '='; text++) {
		int digit = digit_of(*text);

		if (strchr(" \n\r\t", *text))
			continue;
		if (digit < 0)
			return NULL;
		bits = bits << 6 | (uint32_t)digit;
		have += 6;
		if (have >= 8) {
			have -= 8;
			data[n++] = (char)(bits >> have & 0xff);
		}
	}
	if (text[strspn(text, "= \n\r\t")] || have >= 6)
		return NULL;
	data[n] = '\0';
	*ret_n = n;
	return TAKE_PTR(data);
}

/* ---- parts of the file ---- */

static const char *text_in(const struct yaml_node *map, const char *key)
{
	const struct yaml_node *node = yaml_get(map, key);

	return node && node->kind == YAML_SCALAR_N && node->scalar[0] ? node->scalar : NULL;
}

/* The map @what of the element called @name in the list @list. */
static const struct yaml_node *named(const struct yaml_node *root, const char *list, const char *what,
				     const char *name)
{
	const struct yaml_node *node = yaml_get(root, list);

	for (node = node && node->kind == YAML_LIST ? node->children : NULL; node; node = node->next) {
		const char *called = text_in(node, "name");

		if (called && STRV_EQ(called, name))
			return yaml_get(node, what);
	}
	return NULL;
}

static int copy_to(struct reader *r, const char *text, char **ret_copy)
{
	if (!text)
		return 0;
	*ret_copy = strdup(text);
	return *ret_copy ? 0 : refuse_config(r, -ENOMEM, "there is no memory");
}

/* Relative to the file's folder. */
static int copy_path(struct reader *r, const char *text, char **ret_path)
{
	const char *slash = strrchr(r->path, '/');

	if (!text || *text == '/' || !slash)
		return copy_to(r, text, ret_path);
	if (asprintf(ret_path, "%.*s/%s", (int)(slash - r->path), r->path, text) >= 0)
		return 0;
	*ret_path = NULL;
	return refuse_config(r, -ENOMEM, "there is no memory");
}

/* `NAME-data`, in base64, else the path `NAME`. */
static int take_file(struct reader *r, const struct yaml_node *map, const char *name,
		     struct access_file *ret_file)
{
	char key[64];
	const char *data;

	snprintf(key, sizeof(key), "%s-data", name);
	data = text_in(map, key);
	if (!data)
		return copy_path(r, text_in(map, name), &ret_file->path);
	ret_file->data = base64_decode(data, &ret_file->n);
	return ret_file->data ? 0 : refuse_config(r, -EINVAL, "%s is not base64", key);
}

static int take_cluster(struct reader *r, const struct yaml_node *cluster)
{
	const char *server = text_in(cluster, "server"), *insecure;
	int result;

	if (!server)
		return refuse_config(r, -EINVAL, "the context's cluster has no server");
	result = copy_to(r, server, &r->access->server);
	if (result == 0)
		result = copy_to(r, text_in(cluster, "tls-server-name"), &r->access->tls_name);
	if (result == 0)
		result = copy_to(r, text_in(cluster, "proxy-url"), &r->access->proxy);
	if (result == 0)
		result = take_file(r, cluster, "certificate-authority", &r->access->ca);
	insecure = text_in(cluster, "insecure-skip-tls-verify");
	if (result == 0 && insecure && parse_bool(insecure, &r->access->insecure) < 0)
		result = refuse_config(r, -EINVAL, "insecure-skip-tls-verify is neither true nor false");
	return result;
}

/* What would run a program, or act as somebody else, and what API servers no longer take. */
static const struct {
	const char *key, *why;
} refused[] = {
	{ "exec",
	  "needs a program to be run (exec), which gpusonde does not; give the user a token, tokenFile or "
	  "client certificate, or run `kubectl proxy` and set kube.server" },
	{ "auth-provider",
	  "has an auth-provider, which gpusonde does not know; give the user a token, tokenFile "
	  "or client certificate, or run `kubectl proxy` and set kube.server" },
	{ "username", "has a user name and password, which no API server takes since Kubernetes 1.19" },
	{ "password", "has a user name and password, which no API server takes since Kubernetes 1.19" },
	{ "as", "acts as somebody else (as), which gpusonde does not" },
};

static int take_user(struct reader *r, const struct yaml_node *user)
{
	const char *token = text_in(user, "token");
	int result = 0;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (yaml_get(user, refused[i].key))
			return refuse_config(r, -EOPNOTSUPP, "the context's user %s", refused[i].why);
	result = take_file(r, user, "client-certificate", &r->access->certificate);
	if (result == 0)
		result = take_file(r, user, "client-key", &r->access->key);
	/* Of both the file is what kubectl takes, and what is rotated. */
	if (result == 0)
		result = copy_path(r, text_in(user, "tokenFile"), &r->access->token.path);
	if (result == 0 && !r->access->token.path)
		result = copy_to(r, token, &r->access->token.data);
	r->access->token.n = r->access->token.data ? strlen(r->access->token.data) : 0;
	return result;
}

static int take_context(struct reader *r, const struct yaml_node *root, const char *wanted)
{
	const char *name = *wanted ? wanted : text_in(root, "current-context"), *cluster, *user;
	const struct yaml_node *context, *found;
	int result;

	if (!name)
		return refuse_config(r, -EINVAL, "it has no current-context; set kube.context");
	context = named(root, "contexts", "context", name);
	if (!context)
		return refuse_config(r, -EINVAL, "it has no context \"%s\"", name);
	cluster = text_in(context, "cluster");
	found = cluster ? named(root, "clusters", "cluster", cluster) : NULL;
	if (!found)
		return refuse_config(r, -EINVAL, "the cluster of context \"%s\" is not there", name);
	result = take_cluster(r, found);
	user = text_in(context, "user");
	found = user ? named(root, "users", "user", user) : NULL;
	if (result == 0 && user && !found)
		return refuse_config(r, -EINVAL, "the user of context \"%s\" is not there", name);
	return result == 0 && found ? take_user(r, found) : result;
}

/* ---- the file ---- */

static int take_document(struct reader *r, int parsed, struct yaml_doc *doc, const struct yaml_error *err,
			 const char *context)
{
	if (parsed == 0)
		parsed = take_context(r, doc->root, context);
	else if (err->line > 0)
		refuse_config(r, parsed, "line %d: %s", err->line, err->message);
	else
		refuse_config(r, parsed, "%s", err->message);
	yaml_doc_free(doc);
	return parsed;
}

int kubeconfig_parse(const char *path, const char *text, size_t n, const char *context, struct access *access,
		     char *error, size_t size)
{
	struct reader r = { path, access, error, size };
	struct yaml_doc *doc = NULL;
	struct yaml_error err = { 0 };
	int parsed = yaml_parse_buffer(path, text, n, &doc, &err);

	return take_document(&r, parsed, doc, &err, context);
}

int kubeconfig_read(const char *path, const char *context, struct access *access, char *error, size_t size)
{
	struct reader r = { path, access, error, size };
	struct yaml_doc *doc = NULL;
	struct yaml_error err = { 0 };
	int parsed = yaml_parse_file(path, &doc, &err);

	return take_document(&r, parsed, doc, &err, context);
}
