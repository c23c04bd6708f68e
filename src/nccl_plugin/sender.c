// SPDX-License-Identifier: Apache-2.0
#include "nccl_plugin/plugin.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/futex.h>

#include "plugin/link.h"

enum { GATHER_MS = 20, RETRY_MS = 1000, STACK_BYTES = 64 << 10, FLUSH_TURNS = 100, FLUSH_TURN_MS = 1 };

static struct {
	pthread_once_t once;
	pthread_mutex_t lock; /* of what follows */
	struct plugin_link link;
	struct nccl_wire message; /* to be sent, if n > 0 */
	/* without the lock */
	atomic_uint waiting; /* something is to be sent; a futex */
	atomic_bool child;
} sender = { .once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER, .link.fd = -1 };

static void message_fill(void)
{
	struct nccl_wire *message = &sender.message;

	message->wire.magic = NCCL_WIRE_MAGIC;
	message->wire.version = NCCL_WIRE_VERSION;
	while (message->wire.n < NCCL_WIRE_OPERATIONS && ring_take(&message->at[message->wire.n]))
		message->wire.n++;
}

/* Until there is nothing left, or the socket takes no more. False: later. */
static bool sender_drain(void)
{
	for (;;) {
		uint64_t lost = ring_lost();

		message_fill();
		if (sender.message.wire.n == 0)
			return true;
		if (!link_connect(&sender.link) || link_send(&sender.link, &sender.message.wire,
							     sizeof(sender.message.at[0]), lost) != LINK_SENT)
			return false;
		sender.message.wire.n = 0;
	}
}

static void *sender_run(void *userdata)
{
	(void)userdata;
	for (;;) {
		bool done;

		while (atomic_load(&sender.waiting) == 0)
			syscall(SYS_futex, &sender.waiting, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		plugin_sleep_ms(GATHER_MS);
		atomic_store(&sender.waiting, 0);
		pthread_mutex_lock(&sender.lock);
		done = sender_drain();
		pthread_mutex_unlock(&sender.lock);
		if (!done) {
			atomic_store(&sender.waiting, 1);
			plugin_sleep_ms(sender.link.fd >= 0 ? GATHER_MS : RETRY_MS);
		}
	}
	return NULL;
}

static void in_child(void)
{
	atomic_store(&sender.child, true);
	/* The connection says that the parent lives. */
	link_close(&sender.link);
}

static void thread_start(void)
{
	link_init(&sender.link, getenv(NCCL_SOCKET_VARIABLE), NCCL_SOCKET_DEFAULT);
	pthread_atfork(NULL, NULL, in_child);
	/* Without it operations are sent when communicators end, as far as there is room. */
	plugin_thread("gpusonde-nccl", sender_run, STACK_BYTES);
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
		plugin_sleep_ms(FLUSH_TURN_MS);
	}
	for (unsigned i = 0; i < FLUSH_TURNS && !sender_drain() && sender.link.fd >= 0; i++) {
		full.fd = sender.link.fd;
		poll(&full, 1, FLUSH_TURN_MS);
	}
	pthread_mutex_unlock(&sender.lock);
}

bool sender_is_child(void)
{
	return atomic_load(&sender.child);
}
