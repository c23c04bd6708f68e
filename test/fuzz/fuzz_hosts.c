// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as a file of hosts ("#" first), and as what gpusonde-hosts says of two of them: messages, each
 * behind its length in two bytes. Hosts that are taken have addresses that the process takes, too.
 */
#include "fuzz.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/top/hosts.h"
#include "hosts/fetch.h"

static void check_urls(const struct host_list *list)
{
	static const struct fetcher_ops ops;
	struct hosts_begin *begin = calloc(1, sizeof(*begin));
	_cleanup_(fetcher_freep) struct fetcher *fetcher = NULL;
	size_t at = 0;

	for (; begin && begin->n < list->n; begin->n++) {
		const char *url = list->list[begin->n].url;

		if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
			abort();
		for (const char *c = url; *c; c++)
			if (!isgraph((unsigned char)*c) || *c == '@' || *c == '?')
				abort();
		if (at + strlen(url) + 1 > sizeof(begin->urls))
			break;
		at += strlen(strcpy(begin->urls + at, url)) + 1;
	}
	if (begin && fetcher_new(begin, &ops, NULL, &fetcher) == -EBADMSG)
		abort();
	fetcher_freep(&fetcher);
	fetcher = NULL;
	free(begin);
}

static void read_list(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("hosts", MFD_CLOEXEC);
	struct host_list list = { 0 };
	char path[32], why[HOST_WHY_TEXT] = "";

	if (fd < 0 || write_all(fd, data, size) < 0)
		return;
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	if (host_list_read(&list, path, why) == -EINVAL && !*why)
		abort();
	if (list.n > HOSTS_MAX)
		abort();
	check_urls(&list);
	host_list_done(&list);
}

static void take_messages(const struct host_list *list, const uint8_t *data, size_t size)
{
	static const struct options options;
	struct sample sample = { 0 };
	sd_event *event = NULL;
	struct hosts *hosts = NULL;
	size_t n;

	if (sd_event_new(&event) < 0 || hosts_new(event, &options, list, &hosts) < 0)
		return;
	for (; size > 2; data += n, size -= n) {
		_cleanup_free_ uint8_t *message = NULL;

		n = MIN((size_t)data[0] | (size_t)data[1] << 8, size - 2);
		data += 2, size -= 2;
		message = malloc(n + 1); /* so that what is read behind it is seen */
		if (!message)
			break;
		memcpy(message, data, n);
		if (!hosts_take(hosts, message, n))
			break;
	}
	if (hosts_fill(hosts, &sample) == 0 && sample.parts_n != list->n)
		abort();
	for (uint32_t i = 0; i < sample.parts_n; i++)
		sample_free(sample.parts[i].sample);
	free(sample.parts);
	hosts_free(hosts);
	sd_event_unref(event);
}

int fuzz_one(const uint8_t *data, size_t size)
{
	struct named_host two[] = { { "one", "http://one:9470" }, { "two", "http://two:9470" } };
	const struct host_list list = { 2, two };

	if (size > 0 && data[0] == '#')
		read_list(data, size);
	else
		take_messages(&list, data, size);
	return 0;
}
