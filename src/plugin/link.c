// SPDX-License-Identifier: Apache-2.0
#include "plugin/link.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void link_init(struct plugin_link *link, const char *path, const char *standard)
{
	path = path && *path ? path : standard;
	link->fd = -1;
	link->address.sun_family = AF_UNIX;
	if (strlen(path) < sizeof(link->address.sun_path))
		strcpy(link->address.sun_path, path);
}

bool link_connect(struct plugin_link *link)
{
	int fd;

	if (link->fd >= 0)
		return true;
	if (link->address.sun_path[0] == '\0')
		return false;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	if (connect(fd, (const struct sockaddr *)&link->address, sizeof(link->address)) < 0) {
		close(fd);
		return false;
	}
	link->fd = fd;
	link->lost_before = link->lost_told;
	return true;
}

void link_close(struct plugin_link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
}

enum link_sent link_send(struct plugin_link *link, struct plugin_wire *message, size_t record_bytes,
			 uint64_t lost)
{
	size_t n = sizeof(*message) + message->n * record_bytes;

	message->lost = lost - link->lost_before;
	if (send(link->fd, message, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n) {
		link->lost_told = lost;
		return LINK_SENT;
	}
	if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
		return LINK_FULL;
	link_close(link);
	return LINK_GONE;
}

void plugin_sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&time, &time) < 0 && errno == EINTR)
		;
}

uint64_t plugin_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool plugin_thread(const char *name, void *(*run)(void *userdata), size_t stack_bytes)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;
	bool made;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, stack_bytes > (size_t)PTHREAD_STACK_MIN ?
						       stack_bytes :
						       (size_t)PTHREAD_STACK_MIN);
	made = pthread_create(&thread, &attributes, run, NULL) == 0;
	if (made)
		pthread_setname_np(thread, name);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return made;
}
