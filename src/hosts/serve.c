// SPDX-License-Identifier: Apache-2.0
#include "hosts/serve.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "hosts/fetch.h"

enum { WAIT_MS = 1000 };

int hosts_receive_begin(int channel, struct hosts_begin *ret_begin)
{
	int r = receive_question(channel, ret_begin, sizeof(*ret_begin), NULL);

	if (r != 0)
		return r;
	ret_begin->ca[sizeof(ret_begin->ca) - 1] = '\0';
	ret_begin->certificate[sizeof(ret_begin->certificate) - 1] = '\0';
	ret_begin->key[sizeof(ret_begin->key) - 1] = '\0';
	for (size_t i = 0; i < HOSTS_PATHS; i++)
		ret_begin->paths[i][HOSTS_PATH_MAX - 1] = '\0';
	return ret_begin->message == HOSTS_BEGIN ? 0 : -EBADMSG;
}

static int send_page(uint32_t host, uint32_t path, const char *data, size_t n, void *userdata)
{
	const int channel = *(const int *)userdata;
	_cleanup_free_ struct hosts_part *part = malloc(sizeof(*part));
	int r = part ? 0 : -ENOMEM;

	for (size_t at = 0; r == 0 && at < n; at += part->n) {
		part->message = HOSTS_PART;
		part->host = host;
		part->path = path;
		part->n = (uint32_t)MIN(n - at, (size_t)HOSTS_PART_MAX);
		part->rest = (uint32_t)(n - at - part->n);
		memcpy(part->data, data + at, part->n);
		r = send_with_fd(channel, part, offsetof(struct hosts_part, data) + part->n, -1);
	}
	return r;
}

static int send_end(uint32_t host, const char *why, void *userdata)
{
	struct hosts_end end = { .message = HOSTS_END, .host = host, .failed = *why != '\0' };

	snprintf(end.words, sizeof(end.words), "%s", why);
	return send_with_fd(*(const int *)userdata, &end, sizeof(end), -1);
}

static int receive_round(int channel, struct hosts_round *round)
{
	int fd = -1;
	ssize_t n = receive_with_fd(channel, round, sizeof(*round), &fd);

	closep(&fd);
	if (n <= 0)
		return n < 0 ? (int)n : 1;
	return (size_t)n == sizeof(*round) && round->message == HOSTS_ROUND ? 0 : -EBADMSG;
}

int hosts_serve(int channel, const struct hosts_begin *begin)
{
	static const struct fetcher_ops ops = { send_page, send_end };
	_cleanup_(fetcher_freep) struct fetcher *fetcher = NULL;
	static struct hosts_round round;
	int r = fetcher_new(begin, &ops, &channel, &fetcher);

	while (r == 0) {
		struct pollfd p = { .fd = channel, .events = POLLIN };

		if (poll(&p, 1, 0) == 1) {
			r = receive_round(channel, &round);
			if (r == 0)
				r = fetcher_round(fetcher, &round);
		}
		if (r == 0)
			r = fetcher_wait(fetcher, channel, WAIT_MS);
	}
	return r;
}
