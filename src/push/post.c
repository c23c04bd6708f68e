// SPDX-License-Identifier: Apache-2.0
#include "push/post.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "config.h"
#include "net/failure.h"

enum {
	CONNECT_MS = 30 * 1000,
	WHOLE_MS = 120 * 1000,
	ANSWER_BYTES_MAX = 64 << 10, /* of which nothing is kept */
};

struct post {
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers; /* of what is under way */
	size_t answer_bytes;
	char words[CURL_ERROR_SIZE];
};

/* What a server says after a page of it is not waited for. */
static size_t on_body(_unused_ char *data, size_t size, size_t n, void *userdata)
{
	struct post *post = userdata;

	post->answer_bytes += n * size;
	return post->answer_bytes > ANSWER_BYTES_MAX ? 0 : n * size;
}

static int set_address(CURL *easy, const struct push_settings *settings)
{
	_cleanup_free_ char *url = NULL;
	char *cluster = curl_easy_escape(easy, settings->cluster, 0);
	int n;

	if (!cluster)
		return -ENOMEM;
	n = asprintf(&url, "%s/v1/kubernetes/clusters/%s/gpu-metrics", settings->url, cluster);
	curl_free(cluster);
	if (n < 0) {
		url = NULL;
		return -ENOMEM;
	}
	curl_easy_setopt(easy, CURLOPT_URL, url);
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

static int set_headers(struct post *post, const char *key)
{
	char line[PUSH_KEY_MAX + 32];
	int r;

	forget_headers(post);
	snprintf(line, sizeof(line), "X-API-Key: %s", key);
	r = add_header(post, line);
	explicit_bzero(line, sizeof(line));
	if (r == 0)
		r = add_header(post, "Content-Type: application/protobuf");
	if (r == 0)
		r = add_header(post, "Content-Encoding: gzip");
	/* Nothing is gained by asking first: batches are small. */
	if (r == 0)
		r = add_header(post, "Expect:");
	curl_easy_setopt(post->easy, CURLOPT_HTTPHEADER, post->headers);
	return r;
}

int post_begin(struct post *post, const char *key, const void *data, size_t n)
{
	int r = set_headers(post, key);

	if (r < 0)
		return r;
	post->answer_bytes = 0;
	post->words[0] = '\0';
	curl_easy_setopt(post->easy, CURLOPT_POSTFIELDS, data);
	curl_easy_setopt(post->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
	return curl_multi_add_handle(post->multi, post->easy) == CURLM_OK ? 0 : -ENOMEM;
}

static void explain_post(struct post *post, CURLcode code, struct post_result *result)
{
	static const struct net_places places = { {
		[NET_PLACE_NAME] = "push.url",
		[NET_PLACE_CA] = "push.ca_file",
	} };
	const char *words = *post->words ? post->words : curl_easy_strerror(code);

	if (result->status >= 200 && result->status < 300)
		return;
	if (result->status) {
		result->failure = NET_FAILED_STATUS;
		snprintf(result->words, sizeof(result->words), "it answers with status %ld", result->status);
		return;
	}
	result->failure = net_failure_of(post->easy, code, words);
	net_explain(result->failure, &places, words, result->words, sizeof(result->words));
}

bool post_step(struct post *post, struct post_result *ret_result)
{
	CURLMsg *message;
	int running, left;

	curl_multi_perform(post->multi, &running);
	message = curl_multi_info_read(post->multi, &left);
	if (!message || message->msg != CURLMSG_DONE)
		return false;
	*ret_result = (struct post_result){ 0 };
	CURLcode code = message->data.result;
	curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &ret_result->status);
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

	curl_multi_poll(post->multi, &wait, 1, timeout_ms, &n);
	return wait.revents != 0;
}

int post_new(const struct push_settings *settings, struct post **ret_post)
{
	_cleanup_(post_freep) struct post *post = calloc(1, sizeof(*post));
	int r;

	if (!post || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	post->multi = curl_multi_init();
	post->easy = curl_easy_init();
	if (!post->multi || !post->easy)
		return -ENOMEM;
	set_post_limits(post);
	set_ca(post->easy, settings->ca_file);
	r = set_address(post->easy, settings);
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
	free(post);
}
