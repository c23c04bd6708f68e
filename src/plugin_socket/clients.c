// SPDX-License-Identifier: Apache-2.0
#include "plugin_socket/clients.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

enum { EVENTS = 64 };

struct plugin_clients {
	const struct plugin_protocol *protocol;
	void *userdata;
	struct plugin_client *list[PLUGIN_CLIENTS_MAX];
	uint32_t n;
	uint64_t refused;
	int epoll, listener;
	char channel; /* its address is what events of the channel are told by, as the listener's is */
	_Alignas(8) uint8_t message[PLUGIN_WIRE_BYTES];
};

static const uint8_t *record_at(const struct plugin_protocol *protocol, const void *message, unsigned i)
{
	return (const uint8_t *)message + sizeof(struct plugin_wire) + (size_t)i * protocol->record_bytes;
}

bool plugin_message_is_valid(const struct plugin_protocol *protocol, const void *message, size_t n)
{
	const struct plugin_wire *wire = message;

	if (n < sizeof(*wire) || wire->magic != protocol->magic || wire->version != protocol->version ||
	    wire->n > protocol->records || n != sizeof(*wire) + (size_t)wire->n * protocol->record_bytes)
		return false;
	for (unsigned i = 0; i < wire->n; i++)
		if (!protocol->is_valid(record_at(protocol, message, i)))
			return false;
	return true;
}

static void client_free(const struct plugin_clients *clients, struct plugin_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	if (client->data && clients->protocol->end)
		clients->protocol->end(client);
	free(client->data);
	free(client);
}

static void client_end(struct plugin_client *client)
{
	close(client->fd);
	client->fd = -1;
}

static uint32_t clients_of(const struct plugin_clients *clients, uid_t uid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < clients->n; i++)
		n += clients->list[i]->uid == uid;
	return n;
}

static struct plugin_client *client_new(struct plugin_clients *clients, int fd)
{
	struct ucred peer = { .pid = 0 };
	socklen_t n = sizeof(peer);
	struct plugin_client *client;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid <= 0 ||
	    clients_of(clients, peer.uid) >= PLUGIN_CLIENTS_MAX - clients->n)
		return NULL;
	client = calloc(1, sizeof(*client));
	if (!client)
		return NULL;
	client->fd = fd;
	client->pid = peer.pid;
	client->uid = peer.uid;
	client->since_boot_ns = (uint64_t)clock_boot_ns();
	client->data = calloc(1, clients->protocol->data_bytes);
	if (!client->data) {
		free(client);
		return NULL;
	}
	return client;
}

/* A client that does not take it gets no other. */
static bool client_greet(const struct plugin_clients *clients, int fd)
{
	size_t n = clients->protocol->greeting_bytes;

	return n == 0 || send(fd, clients->protocol->greeting, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

static int clients_watch(struct plugin_clients *clients, int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(clients->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

bool plugin_clients_add(struct plugin_clients *clients, int fd)
{
	struct plugin_client *client = client_new(clients, fd);

	if (!client || !client_greet(clients, fd) || clients_watch(clients, fd, client) < 0) {
		if (client)
			client_free(clients, client);
		else
			close(fd);
		clients->refused++;
		return false;
	}
	clients->list[clients->n++] = client;
	return true;
}

/* It is the process's count so far, which grows. */
static void lost_add(struct plugin_clients *clients, struct plugin_client *client, uint64_t lost)
{
	uint64_t more = lost > client->lost ? lost - client->lost : 0;

	client->lost += more;
	if (more > 0)
		clients->protocol->lost(client, more, clients->userdata);
}

static void message_take(struct plugin_clients *clients, struct plugin_client *client)
{
	const struct plugin_wire *wire = (const struct plugin_wire *)clients->message;

	lost_add(clients, client, wire->lost);
	for (unsigned i = 0; i < wire->n; i++)
		clients->protocol->record(client, record_at(clients->protocol, wire, i), clients->userdata);
}

static void client_read(struct plugin_clients *clients, struct plugin_client *client)
{
	for (unsigned i = 0; i < PLUGIN_CLIENT_TURN; i++) {
		ssize_t n = recv(client->fd, clients->message, sizeof(clients->message),
				 MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n > 0 && (size_t)n <= sizeof(clients->message) &&
		    plugin_message_is_valid(clients->protocol, clients->message, (size_t)n)) {
			message_take(clients, client);
			continue;
		}
		clients->refused += n != 0;
		client_end(client);
		return;
	}
}

static void clients_accept(struct plugin_clients *clients)
{
	int fd;

	for (unsigned i = 0; i < PLUGIN_CLIENTS_MAX; i++) {
		fd = accept4(clients->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		plugin_clients_add(clients, fd);
	}
}

int plugin_clients_listen(struct plugin_clients *clients, int listener)
{
	clients->listener = listener;
	return clients_watch(clients, listener, &clients->listener);
}

int plugin_clients_channel(struct plugin_clients *clients, int channel)
{
	return clients_watch(clients, channel, &clients->channel);
}

int plugin_clients_fd(const struct plugin_clients *clients)
{
	return clients->epoll;
}

int plugin_clients_wait(struct plugin_clients *clients, int timeout_ms, bool *ret_channel)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(clients->epoll, events, EVENTS, timeout_ms);

	*ret_channel = false;
	for (int i = 0; i < n; i++) {
		struct plugin_client *client = events[i].data.ptr;

		if (events[i].data.ptr == &clients->channel)
			*ret_channel = true;
		else if (events[i].data.ptr == &clients->listener)
			clients_accept(clients);
		else if (client->fd >= 0)
			client_read(clients, client);
	}
	return n < 0 ? -errno : n;
}

uint32_t plugin_clients_count(const struct plugin_clients *clients)
{
	return clients->n;
}

struct plugin_client *plugin_clients_at(struct plugin_clients *clients, uint32_t i)
{
	return clients->list[i];
}

void plugin_clients_forget(struct plugin_clients *clients)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < clients->n; i++) {
		if (clients->list[i]->fd < 0)
			client_free(clients, clients->list[i]);
		else
			clients->list[left++] = clients->list[i];
	}
	clients->n = left;
}

uint64_t plugin_clients_refused(const struct plugin_clients *clients)
{
	return clients->refused;
}

bool plugin_rows_fit(const struct row_list *rows, const struct plugin_client *client, uint32_t n)
{
	const uint8_t *at = rows->list;
	struct plugin_row row;

	for (uint32_t i = 0; i < rows->n; i++, at += rows->size) {
		memcpy(&row, at, sizeof(row));
		n += row.uid == client->uid;
	}
	return n <= rows->max - rows->n;
}

struct plugin_clients *plugin_clients_new(const struct plugin_protocol *protocol, void *userdata)
{
	struct plugin_clients *clients = calloc(1, sizeof(*clients));

	if (!clients)
		return NULL;
	clients->protocol = protocol;
	clients->userdata = userdata;
	clients->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (clients->epoll < 0) {
		free(clients);
		return NULL;
	}
	return clients;
}

void plugin_clients_free(struct plugin_clients *clients)
{
	if (!clients)
		return;
	for (uint32_t i = 0; i < clients->n; i++)
		client_free(clients, clients->list[i]);
	close(clients->epoll);
	free(clients);
}
