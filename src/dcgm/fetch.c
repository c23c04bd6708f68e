// SPDX-License-Identifier: Apache-2.0
#include "dcgm/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "net/failure.h"
#include "net/transfer.h"

#define CYCLE_NS (30 * NSEC_PER_SEC)
#define PAGE_NS (10 * NSEC_PER_SEC)

enum {
	PAGE_MS = 10000,
	PAGE_BYTES_MAX = 512 << 20,
	POLL_MS = 1000,
};

/* One page while it comes. */
struct transfer {
	CURL *easy; /* kept for the next page */
	struct page *page; /* NULL: the transfer is free */
	int64_t cpu_ns, cpu_max_ns; /* that it took; that it may take, 0: no limit */
	struct dcgm_outcome outcome;
	int error; /* of page_feed() */
	char words[CURL_ERROR_SIZE];
};

struct fetcher {
	CURLM *multi;
	struct curl_slist *headers;
	struct transfer transfers[FETCH_AT_ONCE];
};

int fetcher_new(struct fetcher **ret_fetcher)
{
	_cleanup_(fetcher_freep) struct fetcher *f = calloc(1, sizeof(*f));

	if (!f || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -ENOMEM;
	f->multi = curl_multi_init();
	f->headers = curl_slist_append(NULL, "Accept: text/plain;version=0.0.4, */*;q=0.1");
	if (!f->multi || !f->headers)
		return -ENOMEM;
	curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, (long)FETCH_AT_ONCE);
	*ret_fetcher = TAKE_PTR(f);
	return 0;
}

void fetcher_free(struct fetcher *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < FETCH_AT_ONCE; i++) {
		if (f->transfers[i].page)
			curl_multi_remove_handle(f->multi, f->transfers[i].easy);
		page_free(f->transfers[i].page);
		curl_easy_cleanup(f->transfers[i].easy);
	}
	curl_slist_free_all(f->headers);
	curl_multi_cleanup(f->multi);
	free(f);
}

/* ---- a transfer ---- */

/* A page's text alone is parsed; that of an error is nobody's. */
static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct transfer *t = userdata;
	const int64_t begin_ns = clock_thread_cpu_ns();
	long status = 0;

	n *= size;
	t->outcome.bytes += n;
	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200)
		t->error = page_feed(t->page, data, n);
	if (t->error == 0 && t->outcome.bytes > PAGE_BYTES_MAX)
		t->error = -EFBIG;
	t->cpu_ns += clock_thread_cpu_ns() - begin_ns;
	if (t->error == 0 && t->cpu_max_ns > 0 && t->cpu_ns > t->cpu_max_ns)
		t->error = -EDQUOT;
	return t->error == 0 ? n : 0;
}

static int set_up(const struct fetcher *f, struct transfer *t, const char *ca_file, const char *url)
{
	CURL *easy = t->easy ? t->easy : curl_easy_init();

	if (!easy)
		return -ENOMEM;
	t->easy = easy;
	net_set_up(easy, t->words);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, f->headers);
	if (*ca_file) {
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
		curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file);
		curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* it may be replaced */
	}
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)PAGE_MS);
	curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 64L << 10);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
	return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK ? 0 : -ENOMEM;
}

static void set_failed_page(struct transfer *t, enum scrape_failure failure, const char *words)
{
	t->outcome.failure = failure;
	snprintf(t->outcome.error, sizeof(t->outcome.error), "%s", words);
	utf8_sanitize(t->outcome.error);
}

static int begin_page(struct fetcher *f, const struct fetch_config *config, struct transfer *t,
		      const struct dcgm_asked *asked, uint32_t target)
{
	int r;

	memset(&t->outcome, 0, sizeof(t->outcome));
	t->outcome.message = DCGM_TARGET;
	t->outcome.target = target;
	t->error = 0;
	t->cpu_ns = 0;
	t->cpu_max_ns = config->page_cpu_ns;
	t->words[0] = '\0';
	r = page_new(config->strict, config->here, asked->node, config->nodes, &t->page);
	if (r == 0)
		r = set_up(f, t, config->ca_file, asked->url);
	if (r == 0 && curl_multi_add_handle(f->multi, t->easy) != CURLM_OK)
		r = -ENOMEM;
	if (r < 0)
		page_free(TAKE_PTR(t->page));
	return r;
}

/* ---- what became of it ---- */

static void judge_page(struct transfer *t)
{
	static const char *const words[SCRAPE_LINES] = {
#define SCRAPE_LINE(id_, name_, words_) [SCRAPE_LINE_##id_] = (words_),
#include "model/scraped.def"
	};
	const struct exposition *exposition = page_exposition(t->page);
	char text[sizeof(t->outcome.error)];

	if (t->error == -EBADMSG) {
		snprintf(text, sizeof(text), "line %llu: %s (dcgm.strict)",
			 (unsigned long long)exposition->lines, words[exposition->failed]);
		set_failed_page(t, SCRAPE_FAILED_BODY, text);
	} else if (t->error == -EFBIG) {
		set_failed_page(t, SCRAPE_FAILED_TOO_LONG, "longer than 512 MiB");
	} else if (t->error == -EDQUOT) {
		snprintf(text, sizeof(text), "more than %lld ms", (long long)(t->cpu_max_ns / NSEC_PER_MSEC));
		set_failed_page(t, SCRAPE_FAILED_CPU, text);
	} else if (t->error < 0) {
		set_failed_page(t, t->error == -ENOMEM ? SCRAPE_FAILED_LOCAL : SCRAPE_FAILED_TRANSPORT,
				strerror(-t->error));
	}
}

/* The first rows of model/scraped.def are these. */
_Static_assert((int)SCRAPE_FAILED_LOCAL == (int)NET_FAILED_LOCAL, "those of every server are the first");

static void judge_transfer(struct transfer *t, CURLcode code)
{
	static const struct net_places places = { {
		[NET_PLACE_NAME] = "dcgm.host",
		[NET_PLACE_CA] = "dcgm.ca_file",
	} };
	const char *words = t->words[0] ? t->words : curl_easy_strerror(code);
	enum net_failure failure = net_failure_of(t->easy, code, words);
	char advice[sizeof(t->outcome.error)];

	net_advise(failure, &places, words, advice, sizeof(advice));
	set_failed_page(t, (enum scrape_failure)failure, advice);
}

static void judge_end(struct transfer *t, CURLcode code)
{
	char text[64];
	long status = 0;

	curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK && status == 200)
		t->error = page_end(t->page);
	if (t->error < 0) {
		judge_page(t);
	} else if (code != CURLE_OK) {
		judge_transfer(t, code);
	} else if (status != 200) {
		snprintf(text, sizeof(text), "status %ld", status);
		set_failed_page(t, SCRAPE_FAILED_STATUS, text);
	} else if (t->outcome.bytes == 0) {
		set_failed_page(t, SCRAPE_FAILED_EMPTY, "an empty page");
	}
}

/* The transfer is free afterwards. */
static int finish(struct fetcher *f, const struct fetch_config *config, struct transfer *t)
{
	_cleanup_(page_freep) struct page *page = TAKE_PTR(t->page);

	curl_multi_remove_handle(f->multi, t->easy);
	t->outcome.boot_ns = clock_boot_ns();
	t->outcome.real_ns = clock_real_ns();
	t->outcome.simulated = page_simulated(page);
	memcpy(t->outcome.dropped, page_exposition(page)->dropped, sizeof(t->outcome.dropped));
	return config->done(&t->outcome, t->outcome.failure == SCRAPE_READ ? page : NULL, config->userdata);
}

/* ---- a cycle ---- */

static int begin_some(struct fetcher *f, const struct fetch_config *config, const struct dcgm_asked *asked,
		      uint32_t n, uint32_t *next)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < FETCH_AT_ONCE && *next < n; i++)
		if (!f->transfers[i].page) {
			r = begin_page(f, config, &f->transfers[i], &asked[*next], *next);
			++*next;
		}
	return r;
}

static int finish_some(struct fetcher *f, const struct fetch_config *config, bool *ret_any)
{
	struct CURLMsg *message;
	int left, r = 0;

	*ret_any = false;
	while (r == 0 && (message = curl_multi_info_read(f->multi, &left))) {
		CURLcode code = message->data.result;
		struct transfer *t;
		char *private = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private);
		t = (struct transfer *)private;
		judge_end(t, code);
		r = finish(f, config, t);
		*ret_any = true;
	}
	return r;
}

/* What has not come by now does not come any more; the others have not even begun. */
static int give_up_rest(struct fetcher *f, const struct fetch_config *config, uint32_t n, uint32_t next)
{
	struct dcgm_outcome outcome = { .message = DCGM_TARGET, .failure = SCRAPE_FAILED_DEADLINE };
	int r = 0;

	for (unsigned i = 0; r == 0 && i < FETCH_AT_ONCE; i++) {
		struct transfer *t = &f->transfers[i];

		if (!t->page)
			continue;
		set_failed_page(t, SCRAPE_FAILED_DEADLINE, "30 seconds for all exporters are over");
		r = finish(f, config, t);
	}
	snprintf(outcome.error, sizeof(outcome.error), "30 seconds for all exporters were over");
	for (outcome.target = next; r == 0 && outcome.target < n; outcome.target++) {
		outcome.boot_ns = clock_boot_ns();
		outcome.real_ns = clock_real_ns();
		r = config->done(&outcome, NULL, config->userdata);
	}
	return r;
}

static void abandon(struct fetcher *f)
{
	for (unsigned i = 0; i < FETCH_AT_ONCE; i++)
		if (f->transfers[i].page) {
			curl_multi_remove_handle(f->multi, f->transfers[i].easy);
			page_free(TAKE_PTR(f->transfers[i].page));
		}
}

int fetcher_run(struct fetcher *f, const struct fetch_config *config, const struct dcgm_asked *asked,
		uint32_t n)
{
	const int64_t end_ns = clock_mono_ns() + CYCLE_NS;
	uint32_t next = 0;
	int running = 1, r = 0;

	while (r == 0 && (running > 0 || next < n)) {
		bool any;

		r = begin_some(f, config, asked, n, &next);
		if (r == 0 && curl_multi_perform(f->multi, &running) != CURLM_OK)
			r = -EIO;
		if (r == 0)
			r = finish_some(f, config, &any);
		if (r == 0 && clock_mono_ns() >= end_ns)
			return give_up_rest(f, config, n, next);
		if (r == 0 && running > 0 && !any)
			curl_multi_poll(f->multi, NULL, 0, POLL_MS, NULL);
	}
	if (r < 0)
		abandon(f);
	return r;
}
