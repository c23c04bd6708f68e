// SPDX-License-Identifier: Apache-2.0
#include "serve/atop_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "serve/listener.h"

enum {
	HEADER_BYTES = 4,
	LISTENERS = 4,
	/*
	 * After this many answers to one client in a second it is the first to be disconnected, and its
	 * requests wait for the rest of the second.
	 */
	GREEDY = 8,
	ANSWERS_MAX = 250,
	/* Dead peers are detected by TCP keepalive only, after KEEPALIVE_S + 3 * KEEPALIVE_STEP_S. */
	KEEPALIVE_S = 60,
	KEEPALIVE_STEP_S = 20,
};
/*
 * A new client may not be replaced for GRACE_NS, so that it can send a request; a full server checks again
 * after AGAIN_NS.
 */
static const int64_t GRACE_NS = 20 * NSEC_PER_MSEC, AGAIN_NS = 5 * NSEC_PER_MSEC;

struct client {
	struct atop_server *server;
	int fd;
	sd_event_source *io;
	uint8_t request[2];
	unsigned have; /* bytes of the request */
	struct strbuf out; /* answer being sent, header included; len 0: none */
	size_t sent;
	bool asked; /* has received an answer */
	bool told; /* has received the types of the GPU layout below */
	uint64_t layout;
	uint64_t exit_seq; /* exit records up to this one are delivered */
	uint64_t next_exit_seq; /* the value of exit_seq once `out` has been sent */
	int64_t since_ns; /* when it connected, last sent a request, or last received a part of an answer */
	int64_t second_ns; /* begin of the second in which there were */
	unsigned answers;
	bool paused; /* it has received ANSWERS_MAX in this second */
};

struct atop_server {
	sd_event *event;
	const struct atop_source *source;
	void *userdata;
	struct listener *listeners[LISTENERS];
	unsigned n_listeners;
	struct client *clients[ATOP_CLIENTS];
	unsigned n_clients;
	sd_event_source *stuck_check;
	bool checking;
	struct strbuf text;
	struct atop_server_stats stats;
};

static void client_free(struct client *c)
{
	struct atop_server *s = c->server;

	for (unsigned i = 0; i < s->n_clients; i++) {
		if (s->clients[i] == c) {
			s->clients[i] = s->clients[--s->n_clients];
			break;
		}
	}
	sd_event_source_disable_unref(c->io);
	close(c->fd);
	strbuf_done(&c->out);
	free(c);
}

static void client_drop(struct client *c)
{
	c->server->stats.dropped++;
	client_free(c);
}

static bool is_stuck(const struct client *c, int64_t now_ns)
{
	return c->out.len > 0 && now_ns - c->since_ns >= ATOP_STUCK_S * NSEC_PER_SEC;
}

static void check_later(struct atop_server *s)
{
	if (s->checking)
		return;
	s->checking = sd_event_source_set_time_relative(s->stuck_check, USEC_PER_SEC) >= 0 &&
		      sd_event_source_set_enabled(s->stuck_check, SD_EVENT_ONESHOT) >= 0;
}

static void count_answer(struct client *c)
{
	int64_t now_ns = clock_mono_ns();

	if (now_ns - c->second_ns >= NSEC_PER_SEC) {
		c->second_ns = now_ns;
		c->answers = 0;
	}
	c->paused = ++c->answers >= ANSWERS_MAX;
}

static bool is_greedy(const struct client *c, int64_t now_ns)
{
	return now_ns - c->second_ns < NSEC_PER_SEC && c->answers >= GREEDY;
}

static int listen_to(struct client *c)
{
	if (c->paused && c->out.len == 0)
		return sd_event_source_set_enabled(c->io, SD_EVENT_OFF);
	return sd_event_source_set_io_events(c->io, c->out.len > 0 ? EPOLLOUT : EPOLLIN);
}

static void resume(struct client *c)
{
	c->paused = false;
	sd_event_source_set_enabled(c->io, SD_EVENT_ON);
	listen_to(c);
}

static int on_stuck_check(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct atop_server *s = userdata;
	int64_t now_ns = clock_mono_ns();
	bool more = false;

	(void)source;
	(void)usec;
	s->checking = false;
	for (unsigned i = s->n_clients; i-- > 0;) {
		struct client *c = s->clients[i];

		if (is_stuck(c, now_ns)) {
			client_drop(c);
			continue;
		}
		if (c->paused && now_ns - c->second_ns >= NSEC_PER_SEC)
			resume(c);
		more |= c->paused || c->out.len > 0;
	}
	if (more)
		check_later(s);
	return 0;
}

/* 1: everything was sent; 0: the rest is sent later; -errno. */
static int client_flush(struct client *c)
{
	if (c->out.len == 0)
		return 1;
	while (c->sent < c->out.len) {
		ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		c->sent += (size_t)n;
		c->since_ns = clock_mono_ns();
	}
	strbuf_reset(&c->out);
	c->exit_seq = c->next_exit_seq;
	c->asked = true;
	return 1;
}

static int answer(struct client *c)
{
	struct atop_server *s = c->server;
	unsigned version = c->request[1];
	uint8_t header[HEADER_BYTES];
	int r;

	if (version == 0 || version > ATOP_VERSION_NEWEST)
		version = ATOP_VERSION_NEWEST;
	strbuf_reset(&s->text);
	c->next_exit_seq = c->exit_seq;
	if (c->request[0] == 'T') {
		c->told = true;
		c->layout = s->source->layout(s->userdata);
		r = s->source->types(version, &s->text, s->userdata);
	} else if (c->told && c->layout != s->source->layout(s->userdata)) {
		r = -ESTALE;
	} else {
		r = s->source->stats(version, c->exit_seq, &s->text, &c->next_exit_seq, s->userdata);
	}
	if (r < 0)
		return r;
	header[0] = (uint8_t)version;
	header[1] = (uint8_t)(s->text.len >> 16);
	header[2] = (uint8_t)(s->text.len >> 8);
	header[3] = (uint8_t)s->text.len;
	strbuf_add(&c->out, header, sizeof(header));
	strbuf_add(&c->out, s->text.data, s->text.len);
	if (s->text.failed || c->out.failed)
		return -EMSGSIZE;
	c->sent = 0;
	c->since_ns = clock_mono_ns();
	s->stats.requests++;
	count_answer(c);
	return 0;
}

/*
 * Reads one request and answers it. Reads at most two bytes: further requests remain in the kernel. 1:
 * answered; 0: the request is incomplete; -errno: close the connection.
 */
static int take_request(struct client *c)
{
	ssize_t n = recv(c->fd, c->request + c->have, sizeof(c->request) - c->have, 0);
	int r;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	c->have += (unsigned)n;
	if (c->request[0] != 'T' && c->request[0] != 'S') {
		c->server->stats.malformed++;
		return -EPROTO;
	}
	if (c->have < sizeof(c->request))
		return 0;
	c->have = 0;
	r = answer(c);
	return r < 0 ? r : 1;
}

static int on_client(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct client *c = userdata;
	int r = client_flush(c);

	(void)source;
	(void)fd;
	(void)events;
	/* One answer per turn, so that other clients get theirs. */
	if (r > 0 && !c->paused)
		r = take_request(c);
	if (r > 0)
		r = client_flush(c);
	if (r >= 0)
		r = listen_to(c);
	if (r < 0)
		client_free(c);
	else if (c->paused || c->out.len > 0)
		check_later(c->server);
	return 0;
}

void atop_server_add(struct atop_server *server, int fd)
{
	struct client *c = server->n_clients < ATOP_CLIENTS ? calloc(1, sizeof(*c)) : NULL;
	int one = 1, idle = KEEPALIVE_S, step = KEEPALIVE_STEP_S, probes = 3;

	if (!c) {
		close(fd);
		return;
	}
	/* Fails on UNIX sockets, which do not need it. */
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof(step));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	strbuf_init(&c->out, HEADER_BYTES + ATOP_TEXT_MAX);
	c->server = server;
	c->fd = fd;
	c->since_ns = clock_mono_ns();
	c->exit_seq = c->next_exit_seq = server->source->newest_exit(server->userdata);
	server->clients[server->n_clients++] = c;
	if (sd_event_add_io(server->event, &c->io, fd, EPOLLIN, on_client, c) < 0)
		client_drop(c);
}

/*
 * Selects the client to disconnect: the one with the most answers; if none is greedy, one that has never sent
 * a request before others; among equals the one idle for longest.
 */
static struct client *victim(struct atop_server *s)
{
	struct client *v = NULL, *greediest = NULL;
	int64_t now_ns = clock_mono_ns();

	for (unsigned i = 0; i < s->n_clients; i++) {
		struct client *c = s->clients[i];

		if (is_greedy(c, now_ns) && (!greediest || c->answers > greediest->answers))
			greediest = c;
		if (!v || c->asked < v->asked || (c->asked == v->asked && c->since_ns < v->since_ns))
			v = c;
	}
	if (greediest)
		return greediest;
	return v && now_ns - v->since_ns >= GRACE_NS ? v : NULL;
}

static int64_t room(void *userdata)
{
	struct atop_server *s = userdata;
	struct client *v;

	if (s->n_clients < ATOP_CLIENTS)
		return 0;
	v = victim(s);
	if (!v)
		return AGAIN_NS;
	client_drop(v);
	return 0;
}

static void exhausted(void *userdata)
{
	struct client *v = victim(userdata);

	if (v)
		client_drop(v);
}

static void accepted(int fd, bool local, void *userdata)
{
	(void)local;
	atop_server_add(userdata, fd);
}

static const struct listener_ops listener_ops = { .room = room,
						  .accepted = accepted,
						  .exhausted = exhausted };

int atop_server_new(sd_event *event, const struct atop_source *source, void *userdata,
		    struct atop_server **ret_server)
{
	struct atop_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->event = sd_event_ref(event);
	s->source = source;
	s->userdata = userdata;
	strbuf_init(&s->text, ATOP_TEXT_MAX);
	r = sd_event_add_time_relative(event, &s->stuck_check, CLOCK_MONOTONIC, 0, 0, on_stuck_check, s);
	if (r >= 0)
		r = sd_event_source_set_enabled(s->stuck_check, SD_EVENT_OFF);
	if (r < 0) {
		atop_server_free(s);
		return r;
	}
	*ret_server = s;
	return 0;
}

void atop_server_free(struct atop_server *server)
{
	if (!server)
		return;
	atop_server_unlisten(server);
	while (server->n_clients > 0)
		client_free(server->clients[0]);
	sd_event_source_disable_unref(server->stuck_check);
	sd_event_unref(server->event);
	strbuf_done(&server->text);
	free(server);
}

int atop_server_listen_fd(struct atop_server *server, int fd)
{
	int r;

	if (server->n_listeners == LISTENERS) {
		close(fd);
		return -ENOSPC;
	}
	r = listener_new(server->event, fd, NULL, &listener_ops, server,
			 &server->listeners[server->n_listeners]);
	if (r == 0)
		server->n_listeners++;
	return r;
}

void atop_server_unlisten(struct atop_server *server)
{
	while (server->n_listeners > 0)
		listener_free(server->listeners[--server->n_listeners]);
}

void atop_server_stats(const struct atop_server *server, struct atop_server_stats *ret_stats)
{
	*ret_stats = server->stats;
	ret_stats->clients = server->n_clients;
}
