// SPDX-License-Identifier: Apache-2.0
#include "cupti_plugin/plugin.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "plugin/link.h"

enum { FULL_MS = 1000, FULL_TURN_MS = 10 };

static struct {
	struct plugin_link link;
	struct cupti_wire message;
	uint64_t lost; /* records */
	atomic_uint_fast64_t until_ns; /* of a hurry; 0: there is none */
} sender = { .link.fd = -1 };

void send_init(void)
{
	link_init(&sender.link, getenv(CUPTI_SOCKET_VARIABLE), CUPTI_SOCKET_DEFAULT);
}

bool send_connect(struct cupti_wanted *ret_wanted, int timeout_ms)
{
	struct pollfd ready = { .events = POLLIN };

	if (!link_connect(&sender.link))
		return false;
	ready.fd = sender.link.fd;
	if (poll(&ready, 1, timeout_ms) == 1 &&
	    recv(sender.link.fd, ret_wanted, sizeof(*ret_wanted), MSG_DONTWAIT) == sizeof(*ret_wanted) &&
	    ret_wanted->magic == CUPTI_WIRE_MAGIC && ret_wanted->version == CUPTI_WIRE_VERSION) {
		sender.message.wire.n = 0;
		return true;
	}
	link_close(&sender.link);
	return false;
}

bool send_connected(void)
{
	struct pollfd gone = { .fd = sender.link.fd, .events = POLLIN };

	/* It says nothing more: what can be read is its end, or nothing that is understood. */
	if (sender.link.fd >= 0 && poll(&gone, 1, 0) == 1)
		link_close(&sender.link);
	return sender.link.fd >= 0;
}

void send_pause(int ms)
{
	struct pollfd gone = { .fd = sender.link.fd, .events = POLLIN };

	poll(&gone, 1, ms);
}

static bool is_patient(int waited_ms)
{
	uint64_t until_ns = atomic_load(&sender.until_ns);

	return until_ns ? plugin_now_ns() < until_ns : waited_ms < FULL_MS;
}

/* What is not taken within a second is lost. */
void send_rest(void)
{
	struct pollfd room = { .events = POLLOUT };
	unsigned n = sender.message.wire.n;

	sender.message.wire.magic = CUPTI_WIRE_MAGIC;
	sender.message.wire.version = CUPTI_WIRE_VERSION;
	for (int waited = 0; n > 0 && sender.link.fd >= 0; waited += FULL_TURN_MS) {
		enum link_sent sent = link_send(&sender.link, &sender.message.wire,
						sizeof(sender.message.at[0]), sender.lost);

		if (sent == LINK_SENT)
			n = 0;
		if (sent != LINK_FULL || !is_patient(waited))
			break;
		room.fd = sender.link.fd;
		poll(&room, 1, FULL_TURN_MS);
	}
	sender.lost += n;
	sender.message.wire.n = 0;
}

void send_put(const union cupti_record *record)
{
	if (sender.message.wire.n == CUPTI_WIRE_RECORDS)
		send_rest();
	sender.message.at[sender.message.wire.n++] = *record;
}

void send_hurry(int ms)
{
	atomic_store(&sender.until_ns, plugin_now_ns() + (uint64_t)ms * 1000000);
}

bool send_hurries(void)
{
	return atomic_load(&sender.until_ns);
}

/* The connection says that the parent lives. */
void send_in_child(void)
{
	link_close(&sender.link);
}
