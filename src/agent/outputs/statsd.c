// SPDX-License-Identifier: Apache-2.0
#include "agent/outputs/statsd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "agent/outputs/statsd_packets.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

struct statsd {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sockaddr_un local;
	} address;
	socklen_t address_bytes;
	const char *families;
	int64_t interval_ns, sent_ns; /* boot clock; 0: never */
	uint64_t sent_seq; /* of the snapshot */
	int socket; /* -1: not connected */
	uint64_t sent, lost; /* datagrams of this round */
	uint64_t left_out; /* counted before */
	int failure; /* errno of this round; 0: none */
	struct statsd_packets packets;
	char error[160];
};

/* ---- the address ---- */

static bool parse_port(const char *text, in_port_t *ret_port)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	*ret_port = htons((in_port_t)port);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && port > 0 && port <= UINT16_MAX;
}

/* @host is changed. */
static int parse_ip(struct statsd *s, char *host, const char *port)
{
	size_t n = strlen(host);

	if (host[0] == '[' && n > 2 && host[n - 1] == ']') {
		host[n - 1] = '\0';
		s->address.v6.sin6_family = AF_INET6;
		s->address_bytes = sizeof(s->address.v6);
		return inet_pton(AF_INET6, host + 1, &s->address.v6.sin6_addr) == 1 &&
				       parse_port(port, &s->address.v6.sin6_port) ?
			       0 :
			       -EINVAL;
	}
	s->address.v4.sin_family = AF_INET;
	s->address_bytes = sizeof(s->address.v4);
	return inet_pton(AF_INET, host, &s->address.v4.sin_addr) == 1 &&
			       parse_port(port, &s->address.v4.sin_port) ?
		       0 :
		       -EINVAL;
}

static int parse_statsd_address(struct statsd *s, const char *text)
{
	char host[64];
	const char *colon = strrchr(text, ':');

	if (strncmp(text, "unix://", 7) == 0)
		text += 7;
	if (text[0] == '/') {
		if (strlen(text) >= sizeof(s->address.local.sun_path))
			return -EINVAL;
		s->address.local.sun_family = AF_UNIX;
		strcpy(s->address.local.sun_path, text);
		s->address_bytes = sizeof(s->address.local);
		return 0;
	}
	if (!colon || (size_t)(colon - text) >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	return parse_ip(s, host, colon + 1);
}

/* ---- sending ---- */

static int connect_statsd(struct statsd *s)
{
	int fd = socket(s->address.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, &s->address.any, s->address_bytes) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	s->socket = fd;
	return 0;
}

static void send_datagram(const void *data, size_t n, void *userdata)
{
	struct statsd *s = userdata;
	ssize_t r = s->socket < 0 ? -1 : send(s->socket, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (r >= 0) {
		s->sent++;
		return;
	}
	s->lost++;
	if (s->socket >= 0)
		s->failure = errno;
	/* Of UDP this is about the datagram before, and this one was not sent. */
	if (s->failure == ECONNREFUSED || s->failure == ENOTCONN)
		s->failure = ECONNREFUSED;
}

static void receive_value(const struct statsd_value *value, void *userdata)
{
	struct statsd *s = userdata;

	statsd_packets_add(&s->packets, value);
}

static void explain_statsd(struct statsd *s, int r)
{
	char error[sizeof(s->error)] = "";

	if (r == -ENOENT)
		snprintf(error, sizeof(error), "there is no such socket: does the receiver run?");
	else if (r == -ECONNREFUSED)
		snprintf(error, sizeof(error), "nobody receives there");
	else if (r == -EAGAIN || r == -ENOBUFS)
		snprintf(error, sizeof(error), "the receiver is too slow, datagrams are lost");
	else if (r < 0)
		snprintf(error, sizeof(error), "%s", strerror(-r));
	if (*error && !STRV_EQ(error, s->error))
		log_warning("sending to StatsD: %s (statsd.address)", error);
	else if (!*error && *s->error)
		log_notice("sending to StatsD works again");
	strcpy(s->error, error);
}

static int send_round(struct statsd *s, const struct snapshot *snapshot)
{
	int r = s->socket < 0 ? connect_statsd(s) : 0, walked;

	s->sent = s->lost = 0;
	s->failure = 0;
	walked = view_statsd(snapshot, s->families, receive_value, s);
	statsd_packets_end(&s->packets, clock_real_ns());
	if (r == 0)
		r = s->failure ? -s->failure : walked;
	/* A receiver that began anew has another socket. */
	if (r < 0 && r != -EAGAIN) {
		closep(&s->socket);
		s->socket = -1;
	}
	return r;
}

void statsd_tick(struct statsd *s, const struct snapshot *snapshot, struct model *model)
{
	int64_t now_ns = clock_boot_ns();
	int r;

	if (!snapshot->fresh || snapshot->seq == s->sent_seq ||
	    (s->sent_ns && now_ns - s->sent_ns < s->interval_ns))
		return;
	s->sent_ns = now_ns;
	s->sent_seq = snapshot->seq;
	r = send_round(s, snapshot);
	explain_statsd(s, r);
	model_agent_set(model, AGENT_STATSD_UP, r == 0);
	model_agent_add(model, AGENT_STATSD_SENT, (double)s->sent);
	model_agent_add(model, AGENT_STATSD_LOST, (double)s->lost);
	model_agent_add(model, AGENT_DROPPED_STATSD_SERIES, (double)(s->packets.left_out - s->left_out));
	s->left_out = s->packets.left_out;
}

const char *statsd_error(const struct statsd *s)
{
	return s->error;
}

/* ---- life ---- */

int statsd_new(const struct options *options, struct statsd **ret_statsd)
{
	const char *address = options_text(options, OPT_statsd_address);
	_cleanup_(statsd_freep) struct statsd *s = NULL;
	int r;

	*ret_statsd = NULL;
	if (!address)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->socket = -1;
	s->families = options_text(options, OPT_statsd_families);
	s->interval_ns = options_number(options, OPT_statsd_interval);
	r = parse_statsd_address(s, address);
	if (r == 0)
		r = statsd_packets_init(&s->packets,
					s->address.any.sa_family == AF_UNIX ? STATSD_UNIX_BYTES :
									      STATSD_UDP_BYTES,
					send_datagram, s);
	if (r < 0)
		return r;
	*ret_statsd = TAKE_PTR(s);
	return 0;
}

void statsd_free(struct statsd *s)
{
	if (!s)
		return;
	closep(&s->socket);
	statsd_packets_done(&s->packets);
	free(s);
}
