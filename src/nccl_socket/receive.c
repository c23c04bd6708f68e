// SPDX-License-Identifier: Apache-2.0
#include "nccl_socket/receive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/saturated.h"
#include "base/text.h"

enum { RANKS_MAX = 1 << 20, NODES_MAX = 1 << 20, EVENTS = 64 };

struct client {
	int fd;
	bool gone;
	pid_t pid;
	uid_t uid;
	uint64_t since_boot_ns, lost;
	uint32_t rows_n;
	struct nccl_measured *rows; /* NCCL_CLIENT_ROWS of them */
};

struct nccl_receiver {
	struct client *clients[NCCL_CLIENTS_MAX];
	uint32_t n;
	uint64_t refused;
	struct nccl_totals totals;
	struct nccl_wire message;
	int epoll, listener;
	char channel; /* its address is what events of the channel are told by, as the listener's is */
};

/* ---- messages ---- */

static bool operation_is_valid(const struct nccl_wire_operation *o)
{
	return o->operation < NCCL_OPERATIONS && o->algorithm < NCCL_ALGORITHMS &&
	       o->protocol < NCCL_PROTOCOLS && o->timing < NCCL_TIMINGS && o->ranks <= RANKS_MAX &&
	       o->nodes <= NODES_MAX && o->duration_ns <= NCCL_WIRE_DURATION_MAX_NS &&
	       (o->timing == NCCL_TIMING_NONE) == (o->duration_ns == 0);
}

bool nccl_wire_is_valid(const struct nccl_wire *message, size_t n)
{
	if (n < offsetof(struct nccl_wire, at) || message->magic != NCCL_WIRE_MAGIC ||
	    message->version != NCCL_WIRE_VERSION || message->n > NCCL_WIRE_OPERATIONS ||
	    n != offsetof(struct nccl_wire, at) + message->n * sizeof(message->at[0]))
		return false;
	for (unsigned i = 0; i < message->n; i++)
		if (!operation_is_valid(&message->at[i]))
			return false;
	return true;
}

static const char *algorithm_name(uint8_t algorithm)
{
	static const char *const names[NCCL_ALGORITHMS] = {
		"",
#define NCCL_ALGORITHM(id_, name_) name_,
#define NCCL_PROTOCOL(id_, name_)
#include "model/nccl_names.def"
	};

	return names[algorithm];
}

static const char *protocol_name(uint8_t protocol)
{
	static const char *const names[NCCL_PROTOCOLS] = {
		"",
#define NCCL_ALGORITHM(id_, name_)
#define NCCL_PROTOCOL(id_, name_) name_,
#include "model/nccl_names.def"
	};

	return names[protocol];
}

static struct nccl_measured *row_find(struct client *client, const struct nccl_wire_operation *o)
{
	struct nccl_measured *row;

	for (uint32_t i = 0; i < client->rows_n; i++) {
		row = &client->rows[i];
		if (row->operation == NCCL_OPERATIONS ||
		    (row->operation == o->operation && row->ranks == o->ranks &&
		     STRV_EQ(row->algorithm, algorithm_name(o->algorithm)) &&
		     STRV_EQ(row->protocol, protocol_name(o->protocol))))
			return row;
	}
	row = &client->rows[client->rows_n++];
	*row = (struct nccl_measured){ .pid = (uint32_t)client->pid,
				       .uid = client->uid,
				       .since_boot_ns = client->since_boot_ns,
				       .ranks = o->ranks,
				       .operation = o->operation };
	/* All that comes after is in the last one. */
	if (client->rows_n == NCCL_CLIENT_ROWS) {
		row->operation = NCCL_OPERATIONS;
		row->ranks = NCCL_RANKS_OTHER;
		return row;
	}
	strcpy(row->algorithm, algorithm_name(o->algorithm));
	strcpy(row->protocol, protocol_name(o->protocol));
	return row;
}

/* As a row of one call. Without the ranks neither traffic nor the factor of the bus is known. */
static struct nccl_measured measured_of(const struct nccl_wire_operation *o)
{
	enum nccl_operation operation = (enum nccl_operation)o->operation;
	struct nccl_measured row = { .calls = 1,
				     .bytes = o->bytes,
				     .ranks = o->ranks,
				     .channels = o->channels,
				     .proxy_operations = o->proxy_operations };

	if (o->timing == NCCL_TIMING_NONE)
		return row;
	row.timed = 1;
	row.seconds = (double)o->duration_ns / 1e9;
	row.host_timed = o->timing == NCCL_TIMING_HOST;
	if (o->ranks == NCCL_RANKS_UNKNOWN)
		return row;
	row.traffic =
		nccl_operation_is_per_rank(operation) ? multiply_saturated(o->bytes, o->ranks) : o->bytes;
	row.bus_traffic = (double)row.traffic * nccl_bus_factor(operation, o->ranks);
	return row;
}

static void operation_add(struct nccl_receiver *receiver, struct client *client,
			  const struct nccl_wire_operation *o)
{
	const struct nccl_measured row = measured_of(o);

	nccl_measured_add(row_find(client, o), &row);
	nccl_measured_add(nccl_totals_row(&receiver->totals, o->operation, o->ranks), &row);
}

/* It is the process's count so far, which grows. */
static void lost_add(struct nccl_receiver *receiver, struct client *client, uint64_t lost)
{
	if (lost <= client->lost)
		return;
	receiver->totals.lost = add_saturated(receiver->totals.lost, lost - client->lost);
	client->lost = lost;
}

/* ---- clients ---- */

static void client_free(struct client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	free(client->rows);
	free(client);
}

static void client_end(struct client *client)
{
	client->gone = true;
	close(client->fd);
	client->fd = -1;
}

static uint32_t clients_of(const struct nccl_receiver *receiver, uid_t uid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < receiver->n; i++)
		n += receiver->clients[i]->uid == uid;
	return n;
}

static struct client *client_new(struct nccl_receiver *receiver, int fd)
{
	struct ucred peer = { .pid = 0 };
	socklen_t n = sizeof(peer);
	struct client *client;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.pid <= 0 ||
	    clients_of(receiver, peer.uid) >= NCCL_CLIENTS_MAX - receiver->n)
		return NULL;
	client = calloc(1, sizeof(*client));
	if (!client)
		return NULL;
	client->fd = fd;
	client->pid = peer.pid;
	client->uid = peer.uid;
	client->since_boot_ns = (uint64_t)clock_boot_ns();
	client->rows = calloc(NCCL_CLIENT_ROWS, sizeof(*client->rows));
	if (!client->rows) {
		free(client);
		return NULL;
	}
	return client;
}

static int receiver_watch(struct nccl_receiver *receiver, int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	return epoll_ctl(receiver->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

bool nccl_receiver_add(struct nccl_receiver *receiver, int fd)
{
	struct client *client = client_new(receiver, fd);

	if (!client || receiver_watch(receiver, fd, client) < 0) {
		if (client)
			client_free(client);
		else
			close(fd);
		receiver->refused++;
		return false;
	}
	receiver->clients[receiver->n++] = client;
	return true;
}

static void client_read(struct nccl_receiver *receiver, struct client *client)
{
	struct nccl_wire *message = &receiver->message;

	for (unsigned i = 0; i < NCCL_CLIENT_TURN; i++) {
		ssize_t n = recv(client->fd, message, sizeof(*message), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n > 0 && (size_t)n <= sizeof(*message) && nccl_wire_is_valid(message, (size_t)n)) {
			lost_add(receiver, client, message->lost);
			for (unsigned k = 0; k < message->n; k++)
				operation_add(receiver, client, &message->at[k]);
			continue;
		}
		receiver->refused += n != 0;
		client_end(client);
		return;
	}
}

static void clients_accept(struct nccl_receiver *receiver)
{
	int fd;

	for (unsigned i = 0; i < NCCL_CLIENTS_MAX; i++) {
		fd = accept4(receiver->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		nccl_receiver_add(receiver, fd);
	}
}

int nccl_receiver_listen(struct nccl_receiver *receiver, int listener)
{
	receiver->listener = listener;
	return receiver_watch(receiver, listener, &receiver->listener);
}

int nccl_receiver_channel(struct nccl_receiver *receiver, int channel)
{
	return receiver_watch(receiver, channel, &receiver->channel);
}

int nccl_receiver_fd(const struct nccl_receiver *receiver)
{
	return receiver->epoll;
}

int nccl_receiver_wait(struct nccl_receiver *receiver, int timeout_ms, bool *ret_channel)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(receiver->epoll, events, EVENTS, timeout_ms);

	*ret_channel = false;
	for (int i = 0; i < n; i++) {
		struct client *client = events[i].data.ptr;

		if (events[i].data.ptr == &receiver->channel)
			*ret_channel = true;
		else if (events[i].data.ptr == &receiver->listener)
			clients_accept(receiver);
		else if (!client->gone)
			client_read(receiver, client);
	}
	return n < 0 ? -errno : n;
}

/* ---- figures ---- */

/* A user has no more rows than are left for all others. */
static bool is_within_share(const struct row_list *rows, const struct client *client)
{
	const struct nccl_measured *list = rows->list;
	uint32_t n = client->rows_n;

	for (uint32_t i = 0; i < rows->n; i++)
		n += list[i].uid == client->uid;
	return n <= rows->max - rows->n;
}

void nccl_receiver_rows(struct nccl_receiver *receiver, struct row_list *rows)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < receiver->n; i++) {
		struct client *client = receiver->clients[i];

		bool fits = is_within_share(rows, client);

		rows->dropped += fits ? 0 : client->rows_n;
		for (uint32_t k = 0; fits && k < client->rows_n; k++) {
			struct nccl_measured *row = row_list_add(rows);

			if (!row)
				continue;
			*row = client->rows[k];
			row->gone = client->gone;
			row->lost = k == 0 ? client->lost : 0;
		}
		if (client->gone)
			client_free(client);
		else
			receiver->clients[left++] = client;
	}
	receiver->n = left;
}

const struct nccl_totals *nccl_receiver_totals(const struct nccl_receiver *receiver)
{
	return &receiver->totals;
}

uint64_t nccl_receiver_refused(const struct nccl_receiver *receiver)
{
	return receiver->refused;
}

struct nccl_receiver *nccl_receiver_new(void)
{
	struct nccl_receiver *receiver = calloc(1, sizeof(*receiver));

	if (!receiver)
		return NULL;
	receiver->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (receiver->epoll < 0) {
		free(receiver);
		return NULL;
	}
	return receiver;
}

void nccl_receiver_free(struct nccl_receiver *receiver)
{
	if (!receiver)
		return;
	for (uint32_t i = 0; i < receiver->n; i++)
		client_free(receiver->clients[i]);
	close(receiver->epoll);
	free(receiver);
}
