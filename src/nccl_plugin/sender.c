// SPDX-License-Identifier: Apache-2.0
#include "nccl_plugin/plugin.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <linux/futex.h>

enum { GATHER_MS = 20, RETRY_MS = 1000, STACK_BYTES = 64 << 10, FLUSH_TURNS = 100, FLUSH_TURN_MS = 1 };

static struct {
	pthread_once_t once;
	pthread_mutex_t lock; /* of what follows */
	int fd; /* -1: not connected */
	uint64_t lost_told, lost_before; /* by the newest message; by those of earlier connections */
	struct nccl_wire message; /* to be sent, if n > 0 */
	/* without the lock */
	atomic_uint waiting; /* something is to be sent; a futex */
	atomic_bool child;
	struct sockaddr_un address;
} sender = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&time, &time) < 0 && errno == EINTR)
		;
}

static bool sender_connect(void)
{
	int fd;

	if (sender.fd >= 0)
		return true;
	if (sender.address.sun_path[0] == '\0')
		return false;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	if (connect(fd, (const struct sockaddr *)&sender.address, sizeof(sender.address)) < 0) {
		close(fd);
		return false;
	}
	sender.fd = fd;
	sender.lost_before = sender.lost_told;
	return true;
}

static void message_fill(void)
{
	struct nccl_wire *message = &sender.message;

	message->magic = NCCL_WIRE_MAGIC;
	message->version = NCCL_WIRE_VERSION;
	while (message->n < NCCL_WIRE_OPERATIONS && ring_take(&message->at[message->n]))
		message->n++;
}

/* Until there is nothing left, or the socket takes no more. False: later. */
static bool sender_drain(void)
{
	for (;;) {
		uint64_t lost = ring_lost();
		size_t n;

		message_fill();
		if (sender.message.n == 0)
			return true;
		if (!sender_connect())
			return false;
		sender.message.lost = lost - sender.lost_before;
		n = offsetof(struct nccl_wire, at) + sender.message.n * sizeof(sender.message.at[0]);
		if (send(sender.fd, &sender.message, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n) {
			sender.message.n = 0;
			sender.lost_told = lost;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS) {
			close(sender.fd);
			sender.fd = -1;
		}
		return false;
	}
}

static void *sender_run(void *userdata)
{
	(void)userdata;
	for (;;) {
		bool done;

		while (atomic_load(&sender.waiting) == 0)
			syscall(SYS_futex, &sender.waiting, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		sleep_ms(GATHER_MS);
		atomic_store(&sender.waiting, 0);
		pthread_mutex_lock(&sender.lock);
		done = sender_drain();
		pthread_mutex_unlock(&sender.lock);
		if (!done) {
			atomic_store(&sender.waiting, 1);
			sleep_ms(sender.fd >= 0 ? GATHER_MS : RETRY_MS);
		}
	}
	return NULL;
}

static void in_child(void)
{
	atomic_store(&sender.child, true);
	/* The connection says that the parent lives. */
	if (sender.fd >= 0)
		close(sender.fd);
	sender.fd = -1;
}

static void thread_start(void)
{
	const char *path = getenv(NCCL_SOCKET_VARIABLE);
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;

	path = path && *path ? path : NCCL_SOCKET_DEFAULT;
	sender.address.sun_family = AF_UNIX;
	/* One that is too long is none: what it begins with may be another's. */
	if (strlen(path) < sizeof(sender.address.sun_path))
		strcpy(sender.address.sun_path, path);
	pthread_atfork(NULL, NULL, in_child);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes,
				  STACK_BYTES > PTHREAD_STACK_MIN ? STACK_BYTES : PTHREAD_STACK_MIN);
	/* Without it operations are sent when communicators end, as far as there is room. */
	if (pthread_create(&thread, &attributes, sender_run, NULL) == 0)
		pthread_setname_np(thread, "gpusonde-nccl");
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void sender_start(void)
{
	pthread_once(&sender.once, thread_start);
}

void sender_wake(void)
{
	if (atomic_exchange(&sender.waiting, 1) == 0)
		syscall(SYS_futex, &sender.waiting, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The process may end next, and its thread with it. */
void sender_flush(void)
{
	struct pollfd full = { .events = POLLOUT };

	if (sender_is_child())
		return;
	for (unsigned i = 0; pthread_mutex_trylock(&sender.lock) != 0; i++) {
		if (i == FLUSH_TURNS)
			return;
		sleep_ms(FLUSH_TURN_MS);
	}
	for (unsigned i = 0; i < FLUSH_TURNS && !sender_drain() && sender.fd >= 0; i++) {
		full.fd = sender.fd;
		poll(&full, 1, FLUSH_TURN_MS);
	}
	pthread_mutex_unlock(&sender.lock);
}

bool sender_is_child(void)
{
	return atomic_load(&sender.child);
}
