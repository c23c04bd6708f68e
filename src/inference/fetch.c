// SPDX-License-Identifier: Apache-2.0
#include "inference/fetch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/macro.h"
#include "base/text.h"
#include "inference/page.h"
#include "net/failure.h"
#include "net/transfer.h"

enum { PAGE_MS = 2000, PAGE_BYTES_MAX = 8 << 20 };
#define PAGE_CPU_NS (200 * NSEC_PER_MSEC)

struct fetching {
	CURL *easy;
	struct figure_page page;
	uint64_t bytes;
	int64_t cpu_ns;
	int error;
	char words[CURL_ERROR_SIZE];
};

static size_t take_body(char *data, size_t size, size_t n, void *userdata)
{
	struct fetching *f = userdata;
	const int64_t begin_ns = clock_thread_cpu_ns();
	long status = 0;

	n *= size;
	f->bytes += n;
	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200)
		f->error = figure_page_feed(&f->page, data, n);
	if (f->error == 0 && f->bytes > PAGE_BYTES_MAX)
		f->error = -EFBIG;
	f->cpu_ns += clock_thread_cpu_ns() - begin_ns;
	if (f->error == 0 && f->cpu_ns > PAGE_CPU_NS)
		f->error = -EDQUOT;
	return f->error == 0 ? n : 0;
}

static void set_up_request(struct fetching *f, const struct page_asked *asked)
{
	char address[INET6_ADDRSTRLEN], url[128];

	inet_ntop(asked->is_ipv6 ? AF_INET6 : AF_INET, asked->address, address, sizeof(address));
	snprintf(url, sizeof(url), asked->is_ipv6 ? "http://[%s]:%u/metrics" : "http://%s:%u/metrics",
		 address, asked->port);
	net_set_up(f->easy, f->words);
	curl_easy_setopt(f->easy, CURLOPT_PROTOCOLS_STR, "http");
	curl_easy_setopt(f->easy, CURLOPT_TIMEOUT_MS, (long)PAGE_MS);
	/* Nothing of one server's connection is kept for the next one. */
	curl_easy_setopt(f->easy, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(f->easy, CURLOPT_WRITEDATA, f);
	curl_easy_setopt(f->easy, CURLOPT_URL, url);
}

static void say_why(const struct fetching *f, CURLcode code, const char *remedy, char *buf, size_t size)
{
	const char *words = f->words[0] ? f->words : curl_easy_strerror(code);
	static const struct net_places nowhere;
	long status = 0;

	curl_easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	if (f->error == -EFBIG)
		snprintf(buf, size, "a page longer than %u MiB", PAGE_BYTES_MAX >> 20);
	else if (f->error == -EDQUOT)
		snprintf(buf, size, "a page that takes more than %d ms to read",
			 (int)(PAGE_CPU_NS / NSEC_PER_MSEC));
	else if (f->error == -ENODATA)
		snprintf(buf, size, "a page without the figures of this server%s%s", *remedy ? ": " : "",
			 remedy);
	else if (f->error < 0)
		snprintf(buf, size, "%s", strerror(-f->error));
	else if (code != CURLE_OK)
		net_advise(net_failure_of(f->easy, code, words), &nowhere, words, buf, size);
	else
		snprintf(buf, size, "status %ld%s%s", status, *remedy ? ": " : "", remedy);
}

void page_fetch(CURL *easy, const struct page_asked *asked, struct page_answer *ret_answer)
{
	struct fetching f = { .easy = easy };
	long status = 0;
	CURLcode code;

	memset(ret_answer, 0, sizeof(*ret_answer));
	figure_page_init(&f.page, asked->kind);
	set_up_request(&f, asked);
	code = curl_easy_perform(easy);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (code == CURLE_OK && status == 200)
		f.error = figure_page_end(&f.page, &ret_answer->page);
	ret_answer->read = code == CURLE_OK && status == 200 && f.error == 0;
	if (!ret_answer->read) {
		memset(&ret_answer->page, 0, sizeof(ret_answer->page));
		say_why(&f, code, server_kinds[asked->kind].remedy, ret_answer->error,
			sizeof(ret_answer->error));
		utf8_sanitize(ret_answer->error);
	}
	figure_page_done(&f.page);
}
