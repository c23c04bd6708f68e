// SPDX-License-Identifier: Apache-2.0
#include "serve/listener.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "serve/address.h"

enum { ROUND = 64, SEND_BUFFER_BYTES = 256 << 10 };
static const int64_t EXHAUSTED_NS = 100 * NSEC_PER_MSEC;

struct listener {
	int fd;
	bool local;
	char *path;
	struct stat identity; /* of the socket file at path */
	sd_event_source *io, *resume;
	const struct listener_ops *ops;
	void *userdata;
};

static int on_resume(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct listener *l = userdata;

	(void)source;
	(void)usec;
	return sd_event_source_set_enabled(l->io, SD_EVENT_ON);
}

static int look_away(struct listener *l, int64_t ns)
{
	int r = sd_event_source_set_time_relative(l->resume, (uint64_t)(ns / NSEC_PER_USEC));

	if (r >= 0)
		r = sd_event_source_set_enabled(l->resume, SD_EVENT_ONESHOT);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->io, SD_EVENT_OFF);
	return r;
}

/* 1: accepted, or try again; 0: no connection is waiting; -errno: out of descriptors or memory. */
static int accept_one(struct listener *l)
{
	static const int send_buffer = SEND_BUFFER_BYTES;
	int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		/* Otherwise the kernel may buffer megabytes for each client that does not read. */
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof(send_buffer));
		l->ops->accepted(fd, l->local, l->userdata);
		return 1;
	}
	switch (errno) {
	case EAGAIN:
		return 0;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return -errno;
	default:
		return 1; /* the connection was closed while queued; try the next one */
	}
}

static bool is_waiting(const struct listener *l)
{
	struct pollfd p = { .fd = l->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static int on_connection(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct listener *l = userdata;

	(void)source;
	(void)fd;
	(void)events;
	for (unsigned i = 0; i < ROUND; i++) {
		int64_t wait_ns;
		int r;

		/* Freeing a slot may close another connection, so do it only if a connection is waiting. */
		if (i > 0 && !is_waiting(l))
			break;
		wait_ns = l->ops->room(l->userdata);
		if (wait_ns > 0)
			return look_away(l, wait_ns);
		r = accept_one(l);
		if (r < 0) {
			l->ops->exhausted(l->userdata);
			return look_away(l, EXHAUSTED_NS);
		}
		if (r == 0)
			break;
	}
	return 0;
}

int listener_new(sd_event *event, int fd, const char *path, const struct listener_ops *ops, void *userdata,
		 struct listener **ret_listener)
{
	struct listener *l = calloc(1, sizeof(*l));
	int r = -ENOMEM;

	if (!l) {
		close(fd);
		return r;
	}
	l->fd = fd;
	l->ops = ops;
	l->userdata = userdata;
	l->local = listen_port(fd) == 0;
	if (path) {
		l->path = strdup(path);
		if (!l->path || lstat(path, &l->identity) < 0) {
			r = l->path ? -errno : -ENOMEM;
			listener_free(l);
			return r;
		}
	}
	r = sd_event_add_io(event, &l->io, fd, EPOLLIN, on_connection, l);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &l->resume, CLOCK_MONOTONIC, 0, USEC_PER_SEC / 1000,
					       on_resume, l);
	if (r >= 0)
		r = sd_event_source_set_enabled(l->resume, SD_EVENT_OFF);
	if (r < 0) {
		listener_free(l);
		return r;
	}
	*ret_listener = l;
	return 0;
}

void listener_free(struct listener *listener)
{
	struct stat now;

	if (!listener)
		return;
	sd_event_source_disable_unref(listener->io);
	sd_event_source_disable_unref(listener->resume);
	/* Another agent may have created its own socket there since. */
	if (listener->path && lstat(listener->path, &now) == 0 && now.st_ino == listener->identity.st_ino &&
	    now.st_dev == listener->identity.st_dev)
		unlink(listener->path);
	close(listener->fd);
	free(listener->path);
	free(listener);
}

unsigned listener_port(const struct listener *listener)
{
	return listen_port(listener->fd);
}
