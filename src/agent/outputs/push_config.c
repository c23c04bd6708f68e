// SPDX-License-Identifier: Apache-2.0
#include "agent/outputs/push_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/text.h"
#include "config/places.h"

const char *const push_kind_names[PUSH_KINDS] = {
#define PUSH_KIND(id_, name_, ...) [PUSH_##id_] = (name_),
	PUSH_KIND_LIST(PUSH_KIND, )
#undef PUSH_KIND
};

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

#define COPY_SETTING(member_, text_) snprintf(member_, sizeof(member_), "%s", text_)

/* As programs in Go read it: the upper case first. */
static void copy_variable(const char *upper, const char *lower, char *out, size_t size)
{
	const char *value = getenv(upper);

	if (!value || !*value)
		value = getenv(lower);
	if (value && strlen(value) < size)
		strcpy(out, value);
}

static void find_proxy(struct push_settings *settings)
{
	bool tls = strncmp(settings->url, "https://", 8) == 0;

	copy_variable(tls ? "HTTPS_PROXY" : "HTTP_PROXY", tls ? "https_proxy" : "http_proxy", settings->proxy,
		      sizeof(settings->proxy));
	copy_variable("NO_PROXY", "no_proxy", settings->no_proxy, sizeof(settings->no_proxy));
}

/* @name: of the option. */
static int check_url(const char *url, const char *name, char *why, size_t size)
{
	const char *host = strstr(url, "://");

	if (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0)
		snprintf(why, size, "%s must begin with https:// or http://", name);
	else if (strpbrk(url, "@?# ") || !text_is_printable(url) || host[3] == '/' || host[3] == '\0')
		snprintf(why, size, "%s must be a scheme, a host and perhaps a port and a path", name);
	else
		return 0;
	return -EINVAL;
}

/* Appends to a list of what is missing. */
static void add_missing(bool there, const char *name, char *list, size_t size)
{
	size_t n = strlen(list);

	if (!there)
		snprintf(list + n, size - n, "%s%s", n ? ", " : "", name);
}

/* It becomes a part of the address. */
static int check_cluster(const char *cluster, char *why, size_t size)
{
	if (text_is_printable(cluster) && !strpbrk(cluster, "/ ") && !STRV_EQ(cluster, ".") &&
	    !STRV_EQ(cluster, ".."))
		return 0;
	snprintf(why, size, "push.cluster (CLUSTER_ID) must be an ID, without blanks and slashes");
	return -EINVAL;
}

static int check_whole(const struct options *options, char *why, size_t size)
{
	const char *url = options_text(options, OPT_push_url),
		   *file = options_text(options, OPT_push_key_file);
	const char *cluster = options_text(options, OPT_push_cluster);
	char missing[160] = "";
	int r;

	/* API_KEY alone may be anybody's. */
	if (!url && !cluster && !file)
		return -ENOENT;
	add_missing(url, "push.url (CAST_API)", missing, sizeof(missing));
	add_missing(cluster, "push.cluster (CLUSTER_ID)", missing, sizeof(missing));
	add_missing(file || getenv("API_KEY"), "push.key_file (or the variable API_KEY)", missing,
		    sizeof(missing));
	if (!*missing) {
		r = check_url(url, "push.url (CAST_API)", why, size);
		return r < 0 ? r : check_cluster(cluster, why, size);
	}
	snprintf(why, size, "only a part of it is configured; missing: %s", missing);
	return -EINVAL;
}

static void cut_slashes(char *url)
{
	for (size_t n = strlen(url); n > 0 && url[n - 1] == '/'; n--)
		url[n - 1] = '\0';
}

/* @name: of the option. */
static void warn_of_plain_http(const char *url, const char *name)
{
	if (strncmp(url, "http://", 7) == 0)
		log_warning("%s is not https: the key is sent to %s unencrypted", name, url);
}

static int configure_rows(const struct options *options, struct push_config *ret_config, char *why,
			  size_t size)
{
	struct push_settings *s = &ret_config->settings;
	struct place place;
	int r = check_whole(options, why, size);

	if (r < 0)
		return r;
	*ret_config = (struct push_config){
		.key = { .file = options_text(options, OPT_push_key_file), .variable = "API_KEY" },
		.interval_ns = options_number(options, OPT_push_interval),
	};
	COPY_SETTING(s->url, or_empty(options_text(options, OPT_push_url)));
	COPY_SETTING(s->cluster, or_empty(options_text(options, OPT_push_cluster)));
	COPY_SETTING(s->folder, place_state(options, &place));
	COPY_SETTING(s->ca_file, or_empty(options_text(options, OPT_push_ca_file)));
	s->queue_bytes = (uint64_t)options_number(options, OPT_push_queue);
	cut_slashes(s->url);
	find_proxy(s);
	warn_of_plain_http(s->url, "push.url");
	return 0;
}

/* ---- what takes series ---- */

/* "A=1,B=2" as lines of name, @separator and value. */
static int list_pairs(const char *text, const char *separator, char *lines, size_t lines_size,
		      const char *name, char *why, size_t size)
{
	size_t at = strlen(lines);

	for (const char *pair = or_empty(text); *pair;) {
		size_t n = strcspn(pair, ","), name_n = strcspn(pair, "=");

		if (name_n == 0 || name_n >= n || !text_is_printable(pair) ||
		    at + n + strlen(separator) + 2 > lines_size) {
			snprintf(why, size, "%s must be NAME=VALUE, separated by commas", name);
			return -EINVAL;
		}
		at += (size_t)snprintf(lines + at, lines_size - at, "%.*s%s%.*s\n", (int)name_n, pair,
				       separator, (int)(n - name_n - 1), pair + name_n + 1);
		pair += n + (pair[n] == ',');
	}
	return 0;
}

/* The options that destinations of series share. */
struct series_options {
	enum option_id url, interval, families, headers, max_samples, queue, queue_age;
	enum option_id headers_file, token_file, username, password_file;
	enum option_id ca_file, certificate_file, key_file;
};

#define SERIES_OPTIONS(section_, url_, max_samples_)                                                    \
	{                                                                                               \
		.url = OPT_##section_##_##url_, .interval = OPT_##section_##_interval,                  \
		.families = OPT_##section_##_families, .headers = OPT_##section_##_headers,             \
		.max_samples = OPT_##section_##_##max_samples_, .queue = OPT_##section_##_queue,        \
		.queue_age = OPT_##section_##_queue_age, .headers_file = OPT_##section_##_headers_file, \
		.token_file = OPT_##section_##_token_file, .username = OPT_##section_##_username,       \
		.password_file = OPT_##section_##_password_file, .ca_file = OPT_##section_##_ca_file,   \
		.certificate_file = OPT_##section_##_certificate_file,                                  \
		.key_file = OPT_##section_##_key_file,                                                  \
	}

/* How the server is told who sends. */
static int set_key(const struct options *options, const struct series_options *ids,
		   struct push_config *config, char *why, size_t size)
{
	struct push_key *key = &config->key;
	const char *token = options_text(options, ids->token_file);
	const char *password = options_text(options, ids->password_file);

	key->user = options_text(options, ids->username);
	key->certificate_file = options_text(options, ids->certificate_file);
	key->certificate_key_file = options_text(options, ids->key_file);
	key->headers_file = options_text(options, ids->headers_file);
	key->file = token ? token : password;
	key->scheme = token ? "Bearer " : NULL;
	if (token && (key->user || password))
		snprintf(why, size, "%s and %s exclude each other", option_table[ids->token_file].key,
			 option_table[ids->username].key);
	else if (!key->user != !password)
		snprintf(why, size, "%s and %s belong together", option_table[ids->username].key,
			 option_table[ids->password_file].key);
	else if (!key->certificate_file != !key->certificate_key_file)
		snprintf(why, size, "%s and %s belong together", option_table[ids->certificate_file].key,
			 option_table[ids->key_file].key);
	else
		return 0;
	return -EINVAL;
}

/* @name: of the option. */
static int set_headers(const char *text, const char *name, struct push_settings *s, char *why, size_t size)
{
	int r = list_pairs(text, ": ", s->headers, sizeof(s->headers), name, why, size);

	for (const char *line = s->headers; r == 0 && *line; line += strcspn(line, "\n") + 1) {
		if (push_header_is_valid(line, strcspn(line, "\n")))
			continue;
		snprintf(why, size,
			 "%s must be NAME=VALUE, each with a value, of printable characters of ASCII, names "
			 "of letters, digits and hyphens",
			 name);
		r = -EINVAL;
	}
	return r;
}

/* -ENOENT: no URL is configured. */
static int set_shared(const struct options *options, const struct series_options *ids,
		      struct push_config *ret_config, char *why, size_t size)
{
	struct push_settings *s = &ret_config->settings;
	const char *url = options_text(options, ids->url);
	struct place place;
	int r = url ? check_url(url, option_table[ids->url].key, why, size) : -ENOENT;

	if (r < 0)
		return r;
	*ret_config = (struct push_config){
		.families = options_text(options, ids->families),
		.interval_ns = options_number(options, ids->interval),
	};
	COPY_SETTING(s->url, url);
	COPY_SETTING(s->folder, place_state(options, &place));
	COPY_SETTING(s->ca_file, or_empty(options_text(options, ids->ca_file)));
	s->queue_bytes = (uint64_t)options_number(options, ids->queue);
	s->queue_age_ns = options_number(options, ids->queue_age);
	s->samples_max = (uint32_t)options_number(options, ids->max_samples);
	find_proxy(s);
	r = set_headers(options_text(options, ids->headers), option_table[ids->headers].key, s, why, size);
	if (r == 0)
		r = set_key(options, ids, ret_config, why, size);
	if (r == 0 && (ret_config->key.file || ret_config->key.headers_file))
		warn_of_plain_http(s->url, option_table[ids->url].key);
	return r;
}

/* ---- remote write ---- */

static bool is_label_name(const char *line)
{
	size_t n = strcspn(line, "=");

	return n > 0 &&
	       n == strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") &&
	       !(line[0] >= '0' && line[0] <= '9') && strncmp(line, "__", 2) != 0;
}

static int set_labels(const struct options *options, struct push_settings *s, char *why, size_t size)
{
	const char *job = options_text(options, OPT_remote_write_job);
	const char *instance = options_text(options, OPT_remote_write_instance);
	char host[256] = "";
	int n = job ? snprintf(s->labels, sizeof(s->labels), "job=%s\n", job) : 0;
	int r;

	if (!instance)
		instance = options_text(options, OPT_node_name);
	if (!instance && gethostname(host, sizeof(host) - 1) == 0)
		instance = host;
	if (instance)
		snprintf(s->labels + n, sizeof(s->labels) - (size_t)n, "instance=%s\n", instance);
	if (!utf8_valid(s->labels, strlen(s->labels))) {
		snprintf(why, size, "remote_write.job and remote_write.instance must be UTF-8");
		return -EINVAL;
	}
	r = list_pairs(options_text(options, OPT_remote_write_labels), "=", s->labels, sizeof(s->labels),
		       "remote_write.labels", why, size);
	for (const char *line = s->labels; r == 0 && *line; line += strcspn(line, "\n") + 1) {
		if (is_label_name(line))
			continue;
		snprintf(why, size, "remote_write.labels has a name that is none of a label");
		r = -EINVAL;
	}
	return r;
}

static int set_protocol(const struct options *options, struct push_settings *s, char *why, size_t size)
{
	const char *protocol = or_empty(options_text(options, OPT_remote_write_protocol));

	s->protocol = STRV_EQ(protocol, "2.0") ? 2 : 1;
	if (s->protocol == 2 || STRV_EQ(protocol, "1.0"))
		return 0;
	snprintf(why, size, "remote_write.protocol must be 1.0 or 2.0");
	return -EINVAL;
}

static int configure_remote_write(const struct options *options, struct push_config *ret_config, char *why,
				  size_t size)
{
	static const struct series_options ids = SERIES_OPTIONS(remote_write, url, max_samples);
	struct push_settings *s = &ret_config->settings;
	int r = set_shared(options, &ids, ret_config, why, size);

	if (r < 0)
		return r;
	s->native_histograms = options_bool(options, OPT_remote_write_native_histograms);
	r = set_protocol(options, s, why, size);
	if (r == 0)
		r = set_labels(options, s, why, size);
	return r;
}

/* ---- OpenTelemetry ---- */

/* Unless it is configured: a resource has each attribute once. False: there is no room. */
static bool add_attribute(struct push_settings *s, const char *name, const char *value)
{
	size_t at = strlen(s->labels), name_n = strlen(name), room = sizeof(s->labels) - at;

	for (const char *line = s->labels; *line; line += strcspn(line, "\n") + 1)
		if (strncmp(line, name, name_n) == 0 && line[name_n] == '=')
			return true;
	return (size_t)snprintf(s->labels + at, room, "%s=%s\n", name, value) < room;
}

static int set_resource(const struct options *options, struct push_settings *s, char *why, size_t size)
{
	const char *node = or_empty(options_text(options, OPT_node_name));
	char host[256] = "";
	/* The instance is what Prometheus tells nodes apart by: without, series of several are one. */
	const char *const found[][2] = {
		{ "service.name", "gpusonde" },
		{ "service.instance.id", *node ? node : host },
		{ "host.name", host },
		{ "k8s.node.name", node },
	};
	int r = list_pairs(options_text(options, OPT_otlp_attributes), "=", s->labels, sizeof(s->labels),
			   "otlp.attributes", why, size);

	if (r < 0)
		return r;
	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(found); i++) {
		if (!*found[i][1] || add_attribute(s, found[i][0], found[i][1]))
			continue;
		snprintf(why, size, "otlp.attributes leaves no room for %s", found[i][0]);
		return -EINVAL;
	}
	if (utf8_valid(s->labels, strlen(s->labels)))
		return 0;
	snprintf(why, size, "the names of host and node must be UTF-8");
	return -EINVAL;
}

static int set_temporality(const struct options *options, struct push_settings *s, char *why, size_t size)
{
	const char *temporality = or_empty(options_text(options, OPT_otlp_temporality));

	s->protocol = STRV_EQ(temporality, "delta");
	if (s->protocol || STRV_EQ(temporality, "cumulative"))
		return 0;
	snprintf(why, size, "otlp.temporality must be cumulative or delta");
	return -EINVAL;
}

static int set_otlp(const struct options *options, const struct series_options *ids,
		    struct push_config *ret_config, char *why, size_t size)
{
	struct push_settings *s = &ret_config->settings;
	int r = set_shared(options, ids, ret_config, why, size);

	if (r < 0)
		return r;
	cut_slashes(s->url);
	return set_resource(options, s, why, size);
}

static int configure_otlp(const struct options *options, struct push_config *ret_config, char *why,
			  size_t size)
{
	static const struct series_options ids = SERIES_OPTIONS(otlp, endpoint, max_points);
	int r = set_otlp(options, &ids, ret_config, why, size);

	return r < 0 ? r : set_temporality(options, &ret_config->settings, why, size);
}

/* Events are sent when they come. */
static int configure_logs(const struct options *options, struct push_config *ret_config, char *why,
			  size_t size)
{
	static const struct series_options ids = SERIES_OPTIONS(otlp, logs_endpoint, max_points);
	int r = set_otlp(options, &ids, ret_config, why, size);

	if (r == 0)
		ret_config->interval_ns = NSEC_PER_SEC;
	return r;
}

int push_configure(const struct options *options, enum push_kind_id kind, struct push_config *ret_config,
		   char *why, size_t size)
{
	static int (*const ways[PUSH_KINDS])(const struct options *options, struct push_config *ret_config,
					     char *why, size_t size) = {
		[PUSH_ROWS] = configure_rows,
		[PUSH_REMOTE_WRITE] = configure_remote_write,
		[PUSH_OTLP] = configure_otlp,
		[PUSH_OTLP_LOGS] = configure_logs,
	};
	int r = ways[kind](options, ret_config, why, size);

	if (r == 0)
		ret_config->settings.kind = kind;
	return r;
}
