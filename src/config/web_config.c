// SPDX-License-Identifier: Apache-2.0
/* Prometheus' web configuration, key by key. */
#include "config/web_config.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fd.h"
#include "base/text.h"
#include "base/yaml.h"
#include "config/nearest.h"
#include "serve/access.h"

enum { FILE_BYTES_MAX = 512 << 10, BCRYPT_COST_MAX = 15, BURST_MAX = 1000000 };

struct web_config {
	const char *name; /* of the file */
	struct strbuf *records, *errors;
	bool has[ACCESS_KINDS];
	enum access_client_auth client_auth;
	int min_version, max_version; /* 0: TLS 1.0 */
	bool prefers_server;
	int64_t interval_ns;
	uint64_t burst;
	struct strbuf ciphers, curves; /* as in GnuTLS's priorities */
};

struct web_key {
	const char *name;
	enum yaml_kind kind;
	int (*take)(struct web_config *c, const struct yaml_node *node);
};

static void say_where(const struct web_config *c, const struct yaml_node *node)
{
	strbuf_addf(c->errors, "%s:%d: ", c->name, node->line);
}

static int take_map(struct web_config *c, const struct yaml_node *node, const struct web_key *keys, size_t n);

/* ---- files ---- */

/* Relative to the configuration's folder, as Prometheus has it. */
static void path_of(const char *config, const char *text, char ret_path[static PATH_MAX])
{
	const char *slash = strrchr(config, '/');
	int folder = text[0] == '/' || !slash ? 0 : (int)(slash + 1 - config);

	snprintf(ret_path, PATH_MAX, "%.*s%s", folder, config, text);
}

static int put_file(struct web_config *c, const struct yaml_node *node, enum access_kind kind)
{
	char path[PATH_MAX];
	_cleanup_free_ char *text = malloc(FILE_BYTES_MAX);
	size_t n = 0;
	int r;

	if (!text)
		return -ENOMEM;
	path_of(c->name, node->scalar, path);
	r = read_file(path, text, FILE_BYTES_MAX, &n);
	if (r < 0) {
		say_where(c, node);
		strbuf_addf(c->errors, "%s %s cannot be read: %s; make it readable for the agent's user\n",
			    node->key, path, strerror(-r));
		return 0;
	}
	access_put(c->records, kind, "", text, n);
	explicit_bzero(text, n);
	return 0;
}

/* Either the text itself or the file of it. */
static int take_once(struct web_config *c, const struct yaml_node *node, enum access_kind kind, bool file)
{
	if (!node->scalar[0])
		return 0;
	if (c->has[kind]) {
		say_where(c, node);
		strbuf_addf(c->errors, "%s is given as text and as a file: leave out one of them\n",
			    node->key);
		return 0;
	}
	c->has[kind] = true;
	if (file)
		return put_file(c, node, kind);
	access_put(c->records, kind, "", node->scalar, strlen(node->scalar));
	return 0;
}

#define TAKE(name_, kind_, file_)                                            \
	static int name_(struct web_config *c, const struct yaml_node *node) \
	{                                                                    \
		return take_once(c, node, kind_, file_);                     \
	}
TAKE(take_cert, ACCESS_CERTIFICATE, false)
TAKE(take_cert_file, ACCESS_CERTIFICATE, true)
TAKE(take_key, ACCESS_KEY, false)
TAKE(take_key_file, ACCESS_KEY, true)
TAKE(take_client_ca, ACCESS_CLIENT_CA, false)
TAKE(take_client_ca_file, ACCESS_CLIENT_CA, true)

/* ---- tls_server_config ---- */

static int take_client_auth(struct web_config *c, const struct yaml_node *node)
{
	static const struct {
		const char *name;
		enum access_client_auth auth;
	} rows[] = {
		{ "", CLIENT_AUTH_NONE },
		{ "NoClientCert", CLIENT_AUTH_NONE },
		{ "RequestClientCert", CLIENT_AUTH_REQUEST },
		{ "RequireClientCert", CLIENT_AUTH_REQUIRE_ANY },
		{ "RequireAnyClientCert", CLIENT_AUTH_REQUIRE_ANY },
		{ "VerifyClientCertIfGiven", CLIENT_AUTH_VERIFY_IF_GIVEN },
		{ "RequireAndVerifyClientCert", CLIENT_AUTH_REQUIRE_AND_VERIFY },
	};
	char digit;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!STRV_EQ(node->scalar, rows[i].name))
			continue;
		c->client_auth = rows[i].auth;
		digit = (char)('0' + (int)rows[i].auth);
		access_put(c->records, ACCESS_CLIENT_AUTH, "", &digit, 1);
		return 0;
	}
	say_where(c, node);
	strbuf_adds(c->errors,
		    "client_auth_type must be NoClientCert, RequestClientCert, RequireAnyClientCert, "
		    "VerifyClientCertIfGiven or RequireAndVerifyClientCert\n");
	return 0;
}

static int take_sans(struct web_config *c, const struct yaml_node *node)
{
	for (const struct yaml_node *san = node->children; san; san = san->next) {
		access_put(c->records, ACCESS_CLIENT_SAN, "", san->scalar, strlen(san->scalar));
		c->has[ACCESS_CLIENT_SAN] = true;
	}
	return 0;
}

static int take_version(struct web_config *c, const struct yaml_node *node, int *ret_version)
{
	static const char *const names[] = { "TLS10", "TLS11", "TLS12", "TLS13" };

	for (int i = 0; i < (int)ARRAY_SIZE(names); i++)
		if (STRV_EQ(node->scalar, names[i])) {
			*ret_version = i;
			return 0;
		}
	say_where(c, node);
	strbuf_addf(c->errors, "%s must be TLS10, TLS11, TLS12 or TLS13\n", node->key);
	return 0;
}

static int take_min_version(struct web_config *c, const struct yaml_node *node)
{
	return take_version(c, node, &c->min_version);
}

static int take_max_version(struct web_config *c, const struct yaml_node *node)
{
	return take_version(c, node, &c->max_version);
}

static int take_bool(struct web_config *c, const struct yaml_node *node, bool *ret_value)
{
	if (STRV_EQ(node->scalar, "true") || STRV_EQ(node->scalar, "false")) {
		*ret_value = node->scalar[0] == 't';
		return 0;
	}
	say_where(c, node);
	strbuf_addf(c->errors, "%s must be true or false\n", node->key);
	return 0;
}

static int take_preference(struct web_config *c, const struct yaml_node *node)
{
	return take_bool(c, node, &c->prefers_server);
}

/* HTTP/2 may be allowed; it is not spoken. */
static int take_http2(struct web_config *c, const struct yaml_node *node)
{
	bool ignored;

	return take_bool(c, node, &ignored);
}

static int take_cipher(struct web_config *c, const struct yaml_node *node)
{
	static const struct {
		const char *name, *priority;
	} rows[] = {
#define CIPHER(name_, kx_, cipher_, mac_) { #name_, ":+" kx_ ":+" cipher_ ":+" mac_ },
#include "config/web_ciphers.def"
#undef CIPHER
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (STRV_EQ(node->scalar, rows[i].name)) {
			strbuf_adds(&c->ciphers, rows[i].priority);
			return 0;
		}
	say_where(c, node);
	strbuf_adds(c->errors, "cipher_suites has one that is not known or not safe; write it as Go does, "
			       "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 for example\n");
	return 0;
}

static int take_ciphers(struct web_config *c, const struct yaml_node *node)
{
	for (const struct yaml_node *cipher = node->children; cipher; cipher = cipher->next)
		take_cipher(c, cipher);
	return 0;
}

static int take_curves(struct web_config *c, const struct yaml_node *node)
{
	static const struct {
		const char *name, *priority;
	} rows[] = {
		{ "CurveP256", ":+GROUP-SECP256R1" },
		{ "CurveP384", ":+GROUP-SECP384R1" },
		{ "CurveP521", ":+GROUP-SECP521R1" },
		{ "X25519", ":+GROUP-X25519" },
	};

	for (const struct yaml_node *curve = node->children; curve; curve = curve->next) {
		const char *priority = NULL;

		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			if (STRV_EQ(curve->scalar, rows[i].name))
				priority = rows[i].priority;
		if (priority) {
			strbuf_adds(&c->curves, priority);
			continue;
		}
		say_where(c, curve);
		strbuf_adds(c->errors,
			    "curve_preferences may have CurveP256, CurveP384, CurveP521 and X25519\n");
	}
	return 0;
}

/* As one text of GnuTLS's. Suites of TLS 1.3 are always all of them, as in Go. */
static void put_priority(struct web_config *c, const struct yaml_node *node)
{
	static const char *const versions[] = { "TLS1.0", "TLS1.1", "TLS1.2", "TLS1.3" };
	char text[1024];
	int n = snprintf(text, sizeof(text), "NORMAL:-VERS-ALL");

	/* Without those that found no place others would be allowed. */
	if (c->ciphers.failed || c->curves.failed) {
		say_where(c, node);
		strbuf_adds(c->errors,
			    "cipher_suites or curve_preferences has too many: name each only once\n");
		return;
	}

	for (int i = c->max_version; i >= c->min_version; i--)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ":+VERS-%s", versions[i]);
	if (c->ciphers.len)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      ":-KX-ALL:-CIPHER-ALL:-MAC-ALL%s:+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:"
			      "+AEAD",
			      c->ciphers.data);
	if (c->curves.len)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ":-GROUP-ALL%s", c->curves.data);
	if (c->prefers_server)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ":%%SERVER_PRECEDENCE");
	access_put(c->records, ACCESS_PRIORITY, "", text, (size_t)n);
}

static const struct web_key tls_keys[] = {
	{ "cert", YAML_SCALAR_N, take_cert },
	{ "key", YAML_SCALAR_N, take_key },
	{ "client_ca", YAML_SCALAR_N, take_client_ca },
	{ "cert_file", YAML_SCALAR_N, take_cert_file },
	{ "key_file", YAML_SCALAR_N, take_key_file },
	{ "client_ca_file", YAML_SCALAR_N, take_client_ca_file },
	{ "client_auth_type", YAML_SCALAR_N, take_client_auth },
	{ "client_allowed_sans", YAML_LIST, take_sans },
	{ "min_version", YAML_SCALAR_N, take_min_version },
	{ "max_version", YAML_SCALAR_N, take_max_version },
	{ "cipher_suites", YAML_LIST, take_ciphers },
	{ "prefer_server_cipher_suites", YAML_SCALAR_N, take_preference },
	{ "curve_preferences", YAML_LIST, take_curves },
};

static void check_tls(const struct web_config *c, const struct yaml_node *node)
{
	const char *wrong = NULL;

	if (!c->has[ACCESS_CERTIFICATE])
		wrong = "cert_file is missing: name the server's certificate";
	else if (!c->has[ACCESS_KEY])
		wrong = "key_file is missing: name the certificate's key";
	else if (c->has[ACCESS_CLIENT_CA] && c->client_auth == CLIENT_AUTH_NONE)
		wrong = "client_ca_file needs client_auth_type: add RequireAndVerifyClientCert";
	else if (!c->has[ACCESS_CLIENT_CA] && c->client_auth >= CLIENT_AUTH_VERIFY_IF_GIVEN)
		wrong = "client_auth_type needs client_ca_file: name the certificates to verify by";
	else if (c->has[ACCESS_CLIENT_SAN] && c->client_auth != CLIENT_AUTH_REQUIRE_ANY &&
		 c->client_auth != CLIENT_AUTH_REQUIRE_AND_VERIFY)
		wrong = "client_allowed_sans needs client_auth_type RequireAndVerifyClientCert";
	else if (c->min_version > c->max_version)
		wrong = "min_version is newer than max_version";
	if (!wrong)
		return;
	say_where(c, node);
	strbuf_addf(c->errors, "%s\n", wrong);
}

static int take_tls(struct web_config *c, const struct yaml_node *node)
{
	int r;

	if (!node->children)
		return 0;
	r = take_map(c, node, tls_keys, ARRAY_SIZE(tls_keys));
	check_tls(c, node);
	put_priority(c, node);
	return r;
}

/* ---- http_server_config, basic_auth_users, rate_limit ---- */

/* Prometheus takes these alone, and these values. */
static bool header_is_good(const struct yaml_node *node)
{
	for (const char *p = node->scalar; *p; p++)
		if (iscntrl((unsigned char)*p))
			return false;
	if (STRV_EQ(node->key, "X-Frame-Options"))
		return strcasecmp(node->scalar, "deny") == 0 || strcasecmp(node->scalar, "sameorigin") == 0;
	if (STRV_EQ(node->key, "X-Content-Type-Options"))
		return strcasecmp(node->scalar, "nosniff") == 0;
	return true;
}

static int take_header(struct web_config *c, const struct yaml_node *node)
{
	if (!node->scalar[0])
		return 0;
	if (header_is_good(node)) {
		access_put(c->records, ACCESS_HEADER, node->key, node->scalar, strlen(node->scalar));
		return 0;
	}
	say_where(c, node);
	strbuf_addf(c->errors,
		    "%s has a value that it cannot have: X-Frame-Options is deny or sameorigin, "
		    "X-Content-Type-Options nosniff\n",
		    node->key);
	return 0;
}

static const struct web_key header_keys[] = {
	{ "Content-Security-Policy", YAML_SCALAR_N, take_header },
	{ "X-Frame-Options", YAML_SCALAR_N, take_header },
	{ "X-Content-Type-Options", YAML_SCALAR_N, take_header },
	{ "X-XSS-Protection", YAML_SCALAR_N, take_header },
	{ "Strict-Transport-Security", YAML_SCALAR_N, take_header },
};

static int take_headers(struct web_config *c, const struct yaml_node *node)
{
	return take_map(c, node, header_keys, ARRAY_SIZE(header_keys));
}

static const struct web_key http_keys[] = {
	{ "http2", YAML_SCALAR_N, take_http2 },
	{ "headers", YAML_MAP, take_headers },
};

static int take_http(struct web_config *c, const struct yaml_node *node)
{
	return take_map(c, node, http_keys, ARRAY_SIZE(http_keys));
}

/* "$2y$10$" and 53 characters. A cost above BCRYPT_COST_MAX would take seconds for each guess. */
static const char *hash_fault(const char *hash)
{
	static const char alphabet[] = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	int cost;

	if (strlen(hash) != 60 || hash[0] != '$' || hash[1] != '2' || !strchr("aby", hash[2]) ||
	    hash[3] != '$' || !isdigit((unsigned char)hash[4]) || !isdigit((unsigned char)hash[5]) ||
	    hash[6] != '$' || strspn(hash + 7, alphabet) != 53)
		return "has no bcrypt hash: make one with htpasswd -nBC 10 NAME, and write it in quotes";
	cost = (hash[4] - '0') * 10 + hash[5] - '0';
	if (cost < 4 || cost > BCRYPT_COST_MAX)
		return "has a hash whose cost is not between 4 and 15: a higher one keeps who asks waiting "
		       "for seconds; make one with htpasswd -nBC 10 NAME";
	return NULL;
}

static int take_users(struct web_config *c, const struct yaml_node *node)
{
	for (const struct yaml_node *user = node->children; user; user = user->next) {
		const char *fault = user->kind == YAML_SCALAR_N ? hash_fault(user->scalar) : "has no hash";

		if (strlen(user->key) >= ACCESS_NAME_MAX || !user->key[0] || strchr(user->key, ':'))
			fault = "is no name: it must not be empty or long, and have no colon";
		if (!fault) {
			access_put(c->records, ACCESS_USER, user->key, user->scalar, strlen(user->scalar));
			continue;
		}
		say_where(c, user);
		strbuf_addf(c->errors, "a user of basic_auth_users %s\n", fault);
	}
	return 0;
}

static int take_interval(struct web_config *c, const struct yaml_node *node)
{
	if (STRV_EQ(node->scalar, "0"))
		return 0;
	if (parse_seconds_ns(node->scalar, 1e-6, 3600, &c->interval_ns) == 0)
		return 0;
	say_where(c, node);
	strbuf_adds(c->errors, "interval must be a time between two requests, 100ms for example, or 0\n");
	return 0;
}

static int take_burst(struct web_config *c, const struct yaml_node *node)
{
	if (parse_u64(node->scalar, &c->burst) == 0 && c->burst > 0 && c->burst <= BURST_MAX)
		return 0;
	say_where(c, node);
	strbuf_adds(c->errors, "burst must be a number of requests, 1 to 1000000\n");
	return 0;
}

static const struct web_key limit_keys[] = {
	{ "interval", YAML_SCALAR_N, take_interval },
	{ "burst", YAML_SCALAR_N, take_burst },
};

static int take_limit(struct web_config *c, const struct yaml_node *node)
{
	int r = take_map(c, node, limit_keys, ARRAY_SIZE(limit_keys));
	char interval[24], burst[24];

	if (r < 0 || !c->interval_ns)
		return r;
	if (!c->burst) {
		say_where(c, node);
		strbuf_adds(c->errors, "rate_limit needs burst: how many requests may come at once\n");
	}
	snprintf(interval, sizeof(interval), "%lld", (long long)c->interval_ns);
	snprintf(burst, sizeof(burst), "%llu", (unsigned long long)c->burst);
	access_put(c->records, ACCESS_LIMIT, interval, burst, strlen(burst));
	return 0;
}

static const struct web_key root_keys[] = {
	{ "tls_server_config", YAML_MAP, take_tls },
	{ "http_server_config", YAML_MAP, take_http },
	{ "basic_auth_users", YAML_MAP, take_users },
	{ "rate_limit", YAML_MAP, take_limit },
};

/* ---- any map ---- */

static void unknown_key(const struct web_config *c, const struct yaml_node *node, const struct web_key *keys,
			size_t n)
{
	struct nearest nearest;

	nearest_init(&nearest, node->key);
	for (size_t i = 0; i < n; i++)
		nearest_offer(&nearest, keys[i].name);
	say_where(c, node);
	/* As options_file.c: somebody may have named any file to be shown its lines. */
	if (nearest.best)
		strbuf_addf(c->errors, "unknown key \"%.80s\": did you mean \"%s\"?\n", node->key,
			    nearest.best);
	else
		strbuf_adds(c->errors, "unknown key: remove it; docs/web.md lists all keys\n");
}

static bool all_scalars(const struct yaml_node *list)
{
	for (const struct yaml_node *item = list->children; item; item = item->next)
		if (item->kind != YAML_SCALAR_N)
			return false;
	return true;
}

static int take_child(struct web_config *c, const struct yaml_node *node, const struct web_key *key)
{
	static const char *const kinds[] = { "a single value", "keys below it", "a list of single values" };
	bool empty = node->kind == YAML_SCALAR_N && !node->scalar[0];

	if (empty && key->kind != YAML_SCALAR_N)
		return 0;
	if (node->kind == key->kind && (node->kind != YAML_LIST || all_scalars(node)))
		return key->take(c, node);
	say_where(c, node);
	strbuf_addf(c->errors, "%s needs %s\n", key->name, kinds[key->kind]);
	return 0;
}

static int take_map(struct web_config *c, const struct yaml_node *node, const struct web_key *keys, size_t n)
{
	int r = 0;

	for (const struct yaml_node *child = node->children; r == 0 && child; child = child->next) {
		const struct web_key *key = keys;

		while (key < keys + n && !STRV_EQ(key->name, child->key))
			key++;
		if (key < keys + n)
			r = take_child(c, child, key);
		else
			unknown_key(c, child, keys, n);
	}
	return r;
}

int web_config_parse(const char *name, const void *text, size_t n, struct strbuf *records,
		     struct strbuf *errors)
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	struct web_config c = {
		.name = name,
		.records = records,
		.errors = errors,
		.min_version = 2,
		.max_version = 3,
		.prefers_server = true,
	};
	struct yaml_error error = { 0 };
	int r = yaml_parse_buffer(name, text, n, &doc, &error);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		strbuf_addf(errors, "%s:%d: %s\n", name, error.line, error.message);
		return 0;
	}
	strbuf_init(&c.ciphers, 512);
	strbuf_init(&c.curves, 128);
	if (doc->root->kind == YAML_MAP)
		r = take_map(&c, doc->root, root_keys, ARRAY_SIZE(root_keys));
	else
		strbuf_addf(errors, "%s:1: the file must begin with a key such as tls_server_config:\n",
			    name);
	strbuf_done(&c.ciphers);
	strbuf_done(&c.curves);
	return r;
}

bool web_config_key_file(const char *name, char ret_path[static PATH_MAX])
{
	_cleanup_(yaml_doc_freep) struct yaml_doc *doc = NULL;
	const struct yaml_node *node;
	struct yaml_error error;

	if (yaml_parse_file(name, &doc, &error) < 0)
		return false;
	node = yaml_get(yaml_get(doc->root, "tls_server_config"), "key_file");
	if (!node || !node->scalar || !*node->scalar)
		return false;
	path_of(name, node->scalar, ret_path);
	return true;
}
