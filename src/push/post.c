// SPDX-License-Identifier: Apache-2.0
#include "push/post.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "config.h"
#include "net/failure.h"

enum {
	CONNECT_MS = 30 * 1000,
	WHOLE_MS = 120 * 1000,
	ANSWER_BYTES_MAX = 64 << 10,
	RETRY_AFTER_MAX_S = 3600,
	KEY_BEGINS = 8, /* characters of a key that must not be told */
	ANSWER_SHOWN = 160,
};

struct post {
	const struct push_kind *kind;
	struct net_places places; /* as its options are called */
	char place_name[64], place_ca[64], place_certificate[64];
	char more_headers[PUSH_HEADERS_MAX]; /* that are configured */
	char secret_headers[PUSH_HEADERS_MAX];
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers; /* of what is under way */
	size_t answer_bytes, answer_n;
	char answer[ANSWER_BYTES_MAX + 1]; /* answer_n bytes and NUL */
	char key_begins[KEY_BEGINS + 1]; /* the key without its scheme; "": there is none to look for */
	bool may_repeat;
	int64_t written; /* -1: no header says it */
	char words[CURL_ERROR_SIZE];
};

/* What a server says after a page of it is not waited for. */
static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct post *post = userdata;

	size_t more = MIN(n * size, sizeof(post->answer) - 1 - post->answer_n);

	memcpy(post->answer + post->answer_n, data, more);
	post->answer_n += more;
	post->answer[post->answer_n] = '\0';
	post->answer_bytes += n * size;
	return post->answer_bytes > ANSWER_BYTES_MAX ? 0 : n * size;
}

/* Samples of both sorts, as remote write 2.0 counts them. */
static size_t on_post_header(char *data, size_t size, size_t n, void *userdata)
{
	static const char *const names[] = { "X-Prometheus-Remote-Write-Samples-Written:",
					     "X-Prometheus-Remote-Write-Histograms-Written:" };
	struct post *post = userdata;
	char line[128];

	snprintf(line, sizeof(line), "%.*s", (int)MIN(n * size, sizeof(line) - 1), data);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t name_n = strlen(names[i]);

		if (strncasecmp(line, names[i], name_n) == 0)
			post->written = MAX(post->written, INT64_C(0)) +
					(int64_t)MIN(strtoull(line + name_n, NULL, 10), UINT64_C(1) << 32);
	}
	return n * size;
}

static int set_address(struct post *post, const struct push_settings *settings)
{
	CURL *easy = post->easy;
	char *cluster = curl_easy_escape(easy, settings->cluster, 0);
	struct strbuf url;

	if (!cluster)
		return -ENOMEM;
	strbuf_init(&url, 0);
	strbuf_adds(&url, settings->url);
	if (post->kind->add_path)
		post->kind->add_path(&url, cluster);
	curl_free(cluster);
	curl_easy_setopt(easy, CURLOPT_URL, url.data);
	if (url.failed) {
		strbuf_done(&url);
		return -ENOMEM;
	}
	strbuf_done(&url);
	curl_easy_setopt(easy, CURLOPT_PROXY, settings->proxy);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, settings->no_proxy);
	return 0;
}

/* A file of one's own stands in place of the system's. */
static void set_ca(CURL *easy, const char *path)
{
	if (!*path)
		return;
	curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
	curl_easy_setopt(easy, CURLOPT_CAINFO, path);
	curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* it may be replaced */
}

static void set_post_limits(struct post *post)
{
	CURL *easy = post->easy;

	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)WHOLE_MS);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_USERAGENT, "gpusonde/" GPUSONDE_VERSION);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, post->words);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_post_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, post);
}

static int add_header(struct post *post, const char *line)
{
	struct curl_slist *longer = curl_slist_append(post->headers, line);

	if (!longer)
		return -ENOMEM;
	post->headers = longer;
	return 0;
}

static void forget_headers(struct post *post)
{
	curl_slist_free_all(post->headers);
	post->headers = NULL;
}

static int add_key(struct post *post, const char *key)
{
	char line[PUSH_KEY_MAX + 64];
	int r;

	if (!*key)
		return 0;
	snprintf(line, sizeof(line), "%s: %s", post->kind->key_header, key);
	r = add_header(post, line);
	explicit_bzero(line, sizeof(line));
	return r;
}

static int add_more_headers(struct post *post, const char from[static PUSH_HEADERS_MAX])
{
	char lines[PUSH_HEADERS_MAX], *rest = NULL;
	int r = 0;

	memcpy(lines, from, sizeof(lines));
	for (char *line = strtok_r(lines, "\n", &rest); line && r == 0; line = strtok_r(NULL, "\n", &rest))
		r = add_header(post, line);
	explicit_bzero(lines, sizeof(lines));
	return r;
}

static int set_headers(struct post *post, const char *key, uint32_t format)
{
	const char *const *lines = post->kind->headers(format);
	int r;

	forget_headers(post);
	r = add_key(post, key);
	for (; *lines && r == 0; lines++)
		r = add_header(post, *lines);
	if (r == 0)
		r = add_more_headers(post, post->more_headers);
	if (r == 0)
		r = add_more_headers(post, post->secret_headers);
	/* Nothing is gained by asking first: batches are small. */
	if (r == 0)
		r = add_header(post, "Expect:");
	curl_easy_setopt(post->easy, CURLOPT_HTTPHEADER, post->headers);
	return r;
}

static void set_blob(CURL *easy, CURLoption option, const char *pem)
{
	struct curl_blob blob = { .data = (char *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY };

	curl_easy_setopt(easy, option, *pem ? &blob : NULL);
}

void post_show(struct post *post, const char *certificate, const char *key)
{
	set_blob(post->easy, CURLOPT_SSLCERT_BLOB, certificate);
	set_blob(post->easy, CURLOPT_SSLKEY_BLOB, key);
}

void post_set_headers(struct post *post, const char *lines)
{
	snprintf(post->secret_headers, sizeof(post->secret_headers), "%s", lines);
}

/* A password is not known here but as base64, and headers are many things: nothing can be looked for. */
static void watch_for(struct post *post, const char *key)
{
	const char *secret = strchr(key, ' ');

	secret = secret ? secret + 1 : key;
	post->may_repeat =
		post->kind->repeats_answers && strncmp(key, "Basic ", 6) != 0 && !post->secret_headers[0];
	snprintf(post->key_begins, sizeof(post->key_begins), "%s", secret);
}

int post_begin(struct post *post, const char *key, const struct batch *batch)
{
	int r = set_headers(post, key, batch->format);

	if (r < 0)
		return r;
	watch_for(post, key);
	post->answer_bytes = post->answer_n = 0;
	post->answer[0] = '\0';
	post->written = -1;
	post->words[0] = '\0';
	curl_easy_setopt(post->easy, CURLOPT_POSTFIELDS, batch->data);
	curl_easy_setopt(post->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)batch->n);
	return curl_multi_add_handle(post->multi, post->easy) == CURLM_OK ? 0 : -ENOMEM;
}

static void blank_unprintable(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = ' ';
}

static void add_answer(struct post *post, struct post_result *result)
{
	size_t n = strlen(result->words);
	bool tells_key = post->key_begins[0] && strstr(post->answer, post->key_begins);

	if (!post->may_repeat || tells_key || !post->answer[0])
		return;
	post->answer[ANSWER_SHOWN] = '\0';
	blank_unprintable(post->answer);
	snprintf(result->words + n, sizeof(result->words) - n, ": %s", post->answer);
}

static void take_partial_success(struct post *post, struct post_result *result)
{
	char words[ANSWER_SHOWN] = "";

	if (post->kind->refused)
		result->refused = post->kind->refused((const uint8_t *)post->answer, post->answer_n, words,
						      sizeof(words));
	if (!result->refused || !post->may_repeat || (post->key_begins[0] && strstr(words, post->key_begins)))
		return;
	blank_unprintable(words);
	snprintf(result->words, sizeof(result->words), "%s", words);
}

static void explain_post(struct post *post, CURLcode code, struct post_result *result)
{
	const char *words = *post->words ? post->words : curl_easy_strerror(code);

	if (result->status >= 200 && result->status < 300) {
		take_partial_success(post, result);
		return;
	}
	if (result->status) {
		result->failure = NET_FAILED_STATUS;
		snprintf(result->words, sizeof(result->words), "it answers with status %ld", result->status);
		add_answer(post, result);
		return;
	}
	result->failure = net_failure_of(post->easy, code, words);
	net_explain(result->failure, &post->places, words, result->words, sizeof(result->words));
}

bool post_step(struct post *post, struct post_result *ret_result)
{
	CURLMsg *message;
	int running, left;

	curl_multi_perform(post->multi, &running);
	message = curl_multi_info_read(post->multi, &left);
	if (!message || message->msg != CURLMSG_DONE)
		return false;
	*ret_result = (struct post_result){ .written = post->written };
	CURLcode code = message->data.result;
	curl_off_t retry_after = 0;
	curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &ret_result->status);
	curl_easy_getinfo(post->easy, CURLINFO_RETRY_AFTER, &retry_after);
	ret_result->retry_after_ns = CLAMP(retry_after, 0, RETRY_AFTER_MAX_S) * NSEC_PER_SEC;
	explain_post(post, code, ret_result);
	curl_multi_remove_handle(post->multi, post->easy);
	curl_easy_setopt(post->easy, CURLOPT_HTTPHEADER, NULL);
	forget_headers(post);
	return true;
}

bool post_wait(struct post *post, int fd, int timeout_ms)
{
	struct curl_waitfd wait = { .fd = fd, .events = CURL_WAIT_POLLIN };
	int n;

	curl_multi_poll(post->multi, &wait, fd >= 0, timeout_ms, &n);
	return wait.revents != 0;
}

static void name_places(struct post *post, const char *section, const char *url)
{
	snprintf(post->place_name, sizeof(post->place_name), "%s.%s", section, url);
	snprintf(post->place_ca, sizeof(post->place_ca), "%s.ca_file", section);
	snprintf(post->place_certificate, sizeof(post->place_certificate), "%s.certificate_file", section);
	post->places.of[NET_PLACE_NAME] = post->place_name;
	post->places.of[NET_PLACE_CA] = post->place_ca;
	post->places.of[NET_PLACE_CERTIFICATE] = post->place_certificate;
}

int post_new(const struct push_kind *kind, const struct push_settings *settings, struct post **ret_post)
{
	_cleanup_(post_freep) struct post *post = calloc(1, sizeof(*post));
	int r;

	if (!post || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	post->kind = kind;
	name_places(post, kind->section, kind->url);
	memcpy(post->more_headers, settings->headers, sizeof(post->more_headers));
	post->multi = curl_multi_init();
	post->easy = curl_easy_init();
	if (!post->multi || !post->easy)
		return -ENOMEM;
	set_post_limits(post);
	set_ca(post->easy, settings->ca_file);
	r = set_address(post, settings);
	if (r < 0)
		return r;
	*ret_post = TAKE_PTR(post);
	return 0;
}

void post_free(struct post *post)
{
	if (!post)
		return;
	if (post->multi && post->easy)
		curl_multi_remove_handle(post->multi, post->easy);
	curl_easy_cleanup(post->easy);
	curl_multi_cleanup(post->multi);
	forget_headers(post);
	explicit_bzero(post->secret_headers, sizeof(post->secret_headers));
	free(post);
}
