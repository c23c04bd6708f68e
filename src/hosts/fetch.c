// SPDX-License-Identifier: Apache-2.0
#include "hosts/fetch.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "net/failure.h"
#include "net/transfer.h"

enum {
	CONNECT_MS = 3000,
	PAGE_MS = 8000,
	NAME_STACK_BYTES = 256 << 10, /* of a thread that resolves a name; there may be one for each host */
};

/* A host, and its page that comes. */
struct host {
	struct fetcher *fetcher;
	uint32_t number;
	const char *url;
	CURL *easy; /* kept for its connection */
	uint32_t left; /* pages that are still to come, that which comes now included; 0: nothing is asked */
	uint32_t path; /* which comes now */
	struct curl_slist *headers;
	struct strbuf body;
	char words[CURL_ERROR_SIZE];
};

struct fetcher {
	const struct hosts_begin *begin;
	const struct fetcher_ops *ops;
	void *userdata;
	CURLM *multi;
	char token[HOSTS_TOKEN_MAX];
	uint32_t n;
	struct host hosts[HOSTS_MAX];
};

static size_t keep_body(char *data, size_t size, size_t n, void *userdata)
{
	struct host *host = userdata;

	strbuf_add(&host->body, data, size * n);
	return host->body.failed ? 0 : size * n;
}

static void set_blob(CURL *easy, CURLoption option, const char *pem)
{
	struct curl_blob blob = { (void *)(uintptr_t)pem, strlen(pem), CURL_BLOB_NOCOPY };

	if (*pem)
		curl_easy_setopt(easy, option, &blob);
}

/* What it never does: follow to elsewhere, or speak another protocol. */
static int set_up(struct host *host)
{
	const struct hosts_begin *begin = host->fetcher->begin;
	CURL *easy = curl_easy_init();

	if (!easy)
		return -ENOMEM;
	host->easy = easy;
	net_set_up(easy, host->words);
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (*begin->ca) {
		/* Of the system's certificates none is trusted then. */
		curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
		set_blob(easy, CURLOPT_CAINFO_BLOB, begin->ca);
	}
	set_blob(easy, CURLOPT_SSLCERT_BLOB, begin->certificate);
	set_blob(easy, CURLOPT_SSLKEY_BLOB, begin->key);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)PAGE_MS);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, host);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, host);
	return 0;
}

/* ---- who is told a token ---- */

/* Over TLS, and to this machine. */
static bool may_have_token(const char *url)
{
	static const char *const near[] = { "http://127.0.0.1", "http://localhost", "http://[::1]" };

	if (strncmp(url, "https://", strlen("https://")) == 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(near); i++) {
		size_t n = strlen(near[i]);

		if (strncmp(url, near[i], n) == 0 && strchr(":/", url[n]))
			return true;
	}
	return false;
}

static int make_headers(struct host *host)
{
	const char *token = host->fetcher->token;
	char line[HOSTS_TOKEN_MAX + 32];

	curl_slist_free_all(host->headers);
	host->headers = curl_slist_append(NULL, "Accept: application/json");
	if (!host->headers)
		return -ENOMEM;
	if (!*token || !may_have_token(host->url))
		return 0;
	snprintf(line, sizeof(line), "Authorization: Bearer %s", token);
	/* The list begins as before. */
	return curl_slist_append(host->headers, line) ? 0 : -ENOMEM;
}

/* ---- a round ---- */

/* The first page last: when it has come, all have. */
static uint32_t next_path(uint32_t left)
{
	return left & ~1u ? (uint32_t)__builtin_ctz(left & ~1u) : 0;
}

static int begin_page(struct host *host)
{
	struct fetcher *f = host->fetcher;
	char url[HOSTS_URLS_MAX + HOSTS_PATH_MAX];
	int r = host->easy ? 0 : set_up(host);

	if (r == 0)
		r = make_headers(host);
	if (r < 0)
		return r;
	strbuf_reset(&host->body);
	host->words[0] = '\0';
	host->path = next_path(host->left);
	snprintf(url, sizeof(url), "%s%s", host->url, f->begin->paths[host->path]);
	curl_easy_setopt(host->easy, CURLOPT_HTTPHEADER, host->headers);
	if (curl_easy_setopt(host->easy, CURLOPT_URL, url) != CURLE_OK ||
	    curl_multi_add_handle(f->multi, host->easy) != CURLM_OK)
		return -ENOMEM;
	return 0;
}

int fetcher_round(struct fetcher *f, const struct hosts_round *round)
{
	int r = 0;

	snprintf(f->token, sizeof(f->token), "%.*s", HOSTS_TOKEN_MAX - 1, round->token);
	for (uint32_t i = 0; r == 0 && i < f->n; i++) {
		if (f->hosts[i].left || round->pages == 0)
			continue;
		f->hosts[i].left = round->pages & ((1u << HOSTS_PATHS) - 1);
		r = begin_page(&f->hosts[i]);
	}
	return r;
}

/* Why it did not come; "": it has. Of a page that not every agent has, its absence is no failure. */
static void judge(struct host *host, CURLcode code, char *why, size_t size)
{
	static const struct net_places places = { {
		[NET_PLACE_NAME] = "the host",
		[NET_PLACE_CA] = "client.ca_file",
		[NET_PLACE_CERTIFICATE] = "client.certificate_file",
	} };
	const char *words = host->words[0] ? host->words : curl_easy_strerror(code);
	long status = 0;

	why[0] = '\0';
	curl_easy_getinfo(host->easy, CURLINFO_RESPONSE_CODE, &status);
	if (host->body.failed)
		snprintf(why, size, "its page is longer than %d MiB", HOSTS_PAGE_MAX >> 20);
	else if (code != CURLE_OK)
		net_explain(net_failure_of(host->easy, code, words), &places, words, why, size);
	else if (status == 401 || status == 403)
		snprintf(why, size,
			 "it refuses us, with status %ld: a token (client.token_file) is sent over https "
			 "only; http.hosts of the agent has the names that it answers to",
			 status);
	else if (status != 200 && host->path == 0)
		snprintf(why, size, "its answer has status %ld: is an agent there?", status);
	utf8_sanitize(why);
}

static int end_page(struct host *host, CURLcode code)
{
	struct fetcher *f = host->fetcher;
	char why[HOSTS_WORDS_MAX];
	long status = 0;
	int r = 0;

	judge(host, code, why, sizeof(why));
	curl_easy_getinfo(host->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_multi_remove_handle(f->multi, host->easy);
	if (!*why && status == 200)
		r = f->ops->page(host->number, host->path, host->body.data, host->body.len, f->userdata);
	host->left = *why ? 0 : host->left & ~(1u << host->path);
	if (r == 0 && host->left)
		return begin_page(host);
	strbuf_done(&host->body);
	strbuf_init(&host->body, HOSTS_PAGE_MAX);
	return r < 0 ? r : f->ops->end(host->number, why, f->userdata);
}

int fetcher_wait(struct fetcher *f, int fd, int timeout_ms)
{
	struct curl_waitfd wait = { .fd = fd, .events = CURL_WAIT_POLLIN };
	struct CURLMsg *message;
	int running, left, r = 0;

	if (curl_multi_perform(f->multi, &running) != CURLM_OK)
		return -EIO;
	while (r == 0 && (message = curl_multi_info_read(f->multi, &left))) {
		CURLcode code = message->data.result;
		struct host *host = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &host);
		r = end_page(host, code);
		timeout_ms = 0; /* what has been begun now does not wait */
	}
	if (r == 0)
		curl_multi_poll(f->multi, &wait, 1, timeout_ms, NULL);
	return r;
}

/* ---- life ---- */

static int list_hosts(struct fetcher *f)
{
	const struct hosts_begin *begin = f->begin;
	const char *at = begin->urls, *end = begin->urls + sizeof(begin->urls);

	for (; f->n < begin->n; f->n++) {
		const char *stop = memchr(at, '\0', (size_t)(end - at));

		if (!stop || f->n == HOSTS_MAX)
			return -EBADMSG;
		f->hosts[f->n] = (struct host){ .fetcher = f, .number = f->n, .url = at };
		strbuf_init(&f->hosts[f->n].body, HOSTS_PAGE_MAX);
		at = stop + 1;
	}
	return 0;
}

/* Threads that resolve names: small ones, since there may be as many as hosts. */
static void shrink_stacks(void)
{
	pthread_attr_t attributes;

	if (pthread_attr_init(&attributes) != 0)
		return;
	if (pthread_attr_setstacksize(&attributes, NAME_STACK_BYTES) == 0)
		pthread_setattr_default_np(&attributes);
	pthread_attr_destroy(&attributes);
}

int fetcher_new(const struct hosts_begin *begin, const struct fetcher_ops *ops, void *userdata,
		struct fetcher **ret_fetcher)
{
	_cleanup_(fetcher_freep) struct fetcher *f = calloc(1, sizeof(*f));
	int r;

	if (!f || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	shrink_stacks();
	f->begin = begin;
	f->ops = ops;
	f->userdata = userdata;
	r = list_hosts(f);
	if (r < 0)
		return r;
	f->multi = curl_multi_init();
	if (!f->multi)
		return -ENOMEM;
	curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)HOSTS_MAX);
	*ret_fetcher = TAKE_PTR(f);
	return 0;
}

void fetcher_free(struct fetcher *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->n; i++) {
		if (f->hosts[i].left)
			curl_multi_remove_handle(f->multi, f->hosts[i].easy);
		curl_easy_cleanup(f->hosts[i].easy);
		curl_slist_free_all(f->hosts[i].headers);
		strbuf_done(&f->hosts[i].body);
	}
	curl_multi_cleanup(f->multi);
	free(f);
}
