// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "serve/atop_server.h"

/* So small an answer that those to all requests of one input fit into the socket. */
static int types(unsigned version, struct strbuf *out, void *userdata)
{
	(void)userdata;
	strbuf_addc(out, (char)('0' + version));
	return 0;
}

static int stats(unsigned version, uint64_t exit_seq, struct strbuf *out, uint64_t *ret_exit_seq,
		 void *userdata)
{
	(void)userdata;
	*ret_exit_seq = exit_seq + 1;
	strbuf_addc(out, (char)('0' + version));
	return 0;
}

static uint64_t newest_exit(void *userdata)
{
	(void)userdata;
	return 0;
}

static uint64_t layout(void *userdata)
{
	(void)userdata;
	return 1;
}

static const struct atop_source source = {
	.types = types, .stats = stats, .layout = layout, .newest_exit = newest_exit
};

static sd_event *event;
static struct atop_server *server;

static void settle(void)
{
	while (sd_event_run(event, 0) > 0)
		;
}

/*
 * What the protocol says about these bytes: the versions of the answers, and whether the connection survives.
 */
static bool expected(const uint8_t *data, size_t size, uint8_t *versions, size_t *ret_n)
{
	*ret_n = 0;
	for (size_t i = 0; i < size; i += 2) {
		if (data[i] != 'T' && data[i] != 'S')
			return false;
		if (i + 1 < size)
			versions[(*ret_n)++] = data[i + 1] == 1 ? 1 : 2;
	}
	return true;
}

static void check(int fd, const uint8_t *data, size_t size)
{
	uint8_t versions[256], answer[5], more;
	size_t n;
	bool survives = expected(data, size, versions, &n);
	ssize_t end;

	for (size_t i = 0; i < n; i++) {
		const uint8_t want[5] = { versions[i], 0, 0, 1, (uint8_t)('0' + versions[i]) };

		if (recv(fd, answer, sizeof(answer), MSG_WAITALL | MSG_DONTWAIT) != sizeof(answer) ||
		    memcmp(answer, want, sizeof(want)) != 0)
			abort();
	}
	end = recv(fd, &more, 1, MSG_DONTWAIT);
	if (survives ? end >= 0 || errno != EAGAIN : end > 0 || (end < 0 && errno == EAGAIN))
		abort();
}

int fuzz_one(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = -1;
	struct atop_server_stats counters;
	size_t piece;
	int pair[2];

	if (!server && (sd_event_new(&event) < 0 || atop_server_new(event, &source, NULL, &server) < 0))
		abort();
	if (size < 1 || size > 1 + 300)
		return 0;
	/* The first byte says in what pieces the others arrive. */
	piece = data[0] % 8 + 1;
	data++;
	size--;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || fd_nonblock(pair[0]) < 0)
		abort();
	fd = pair[1];
	atop_server_add(server, pair[0]);
	for (size_t done = 0; done < size; done += piece) {
		(void)!send(fd, data + done, MIN(piece, size - done), MSG_NOSIGNAL);
		settle();
	}
	check(fd, data, size);
	close(TAKE_FD(fd));
	settle();
	atop_server_stats(server, &counters);
	if (counters.clients != 0)
		abort();
	return 0;
}
