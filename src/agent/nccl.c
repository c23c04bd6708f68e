// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "config.h"
#include "helper/helper.h"
#include "nccl_socket/listen.h"
#include "nccl_socket/protocol.h"
#include "proc/proc.h"

#define ANSWER_NS (10 * NSEC_PER_SEC)

struct nccl_socket {
	struct model *model;
	struct helper *helper;
	char *path;
	int listener;
	bool asked;
	struct arriving rows;
	struct nccl_measurements *newest; /* NULL: none yet */
	uint64_t left_out; /* of the newest answer */
	uint64_t refused, refused_before; /* before: of processes that were replaced */
};

/* ---- rows ---- */

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool is_positive(double value)
{
	return isfinite(value) && value >= 0;
}

static bool row_is_valid(const struct nccl_measured *row)
{
	return row->pid > 0 && row->operation <= NCCL_OPERATIONS && row->gone <= 1 && row->host_timed <= 1 &&
	       is_text(row->algorithm, sizeof(row->algorithm)) &&
	       is_text(row->protocol, sizeof(row->protocol)) && is_positive(row->seconds) &&
	       is_positive(row->bus_traffic) && row->comm[0] == '\0';
}

static const struct nccl_measured *known(const struct nccl_socket *socket, const struct nccl_measured *row)
{
	for (uint32_t i = 0; socket->newest && i < socket->newest->n; i++)
		if (socket->newest->rows[i].pid == row->pid &&
		    socket->newest->rows[i].since_boot_ns == row->since_boot_ns)
			return &socket->newest->rows[i];
	return NULL;
}

/*
 * False: the process is another one, which began after the connection and has the PID of one that has
 * ended.
 */
static bool name_process(const struct nccl_socket *socket, struct nccl_measured *row)
{
	const struct nccl_measured *before = known(socket, row);
	struct proc_identity identity;
	bool lives = proc_identify("/proc", row->pid, &identity) >= 0;

	if (lives && process_boot_ns(identity.id.start_ticks) > (int64_t)row->since_boot_ns)
		return row->gone;
	/* It may have ended already: what it said is shown by its number. */
	if (before || lives)
		memcpy(row->comm, before ? before->comm : identity.comm, sizeof(row->comm));
	return true;
}

static int by_process(const void *a, const void *b)
{
	const struct nccl_measured *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->since_boot_ns != y->since_boot_ns)
		return x->since_boot_ns < y->since_boot_ns ? -1 : 1;
	return memcmp(&x->ranks, &y->ranks, sizeof(x->ranks) + sizeof(x->operation));
}

static void rows_take(struct nccl_socket *socket)
{
	struct nccl_measured *rows = socket->rows.list;
	struct nccl_measured last = { .pid = 0 };
	struct nccl_measurements *taken;
	bool shown = false;
	uint32_t n = 0;

	/* Rows of a connection stand together: one look at /proc for each. */
	for (uint32_t i = 0; i < socket->rows.n; i++) {
		struct nccl_measured *row = &rows[i];

		if (row->pid == last.pid && row->since_boot_ns == last.since_boot_ns)
			memcpy(row->comm, last.comm, sizeof(row->comm));
		else
			shown = name_process(socket, row);
		last = *row;
		if (shown)
			rows[n++] = last;
	}
	if (n > 0)
		qsort(rows, n, sizeof(rows[0]), by_process);
	taken = nccl_measurements_new(rows, n);
	if (!taken)
		return;
	taken->refused = socket->refused_before + socket->refused;
	taken->left_out = socket->left_out;
	nccl_measurements_unref(socket->newest);
	socket->newest = taken;
	model_set_measured(socket->model, taken);
}

/* ---- the process that receives ---- */

static bool answer_is_valid(const struct nccl_socket *socket, const struct nccl_answer *answer, size_t n)
{
	const uint64_t none = 0;

	if (n != sizeof(*answer) || answer->message != NCCL_ANSWER || answer->rows != socket->rows.n ||
	    !parts_are_whole(&socket->rows, 1, &answer->digest, &none))
		return false;
	for (uint32_t i = 0; i < socket->rows.n; i++)
		if (!row_is_valid(&((const struct nccl_measured *)socket->rows.list)[i]))
			return false;
	return true;
}

static void nccl_answered(const void *message, size_t n, int fd, void *userdata)
{
	struct nccl_socket *socket = userdata;
	const struct nccl_answer *answer = message;
	uint32_t type = 0;

	closep(&fd);
	memcpy(&type, message, MIN(n, sizeof(type)));
	if (socket->asked && type == PART_ROWS && parts_take(&socket->rows, 1, message, n))
		return; /* more comes */
	if (!socket->asked || !answer_is_valid(socket, answer, n)) {
		helper_reject(socket->helper);
		return;
	}
	socket->asked = false;
	helper_deadline(socket->helper, 0);
	socket->refused = answer->refused;
	socket->left_out = answer->dropped;
	rows_take(socket);
	parts_forget(&socket->rows, 1);
}

/* Programs connect again; what they have sent is gone. */
static void nccl_lost(bool hung, void *userdata)
{
	struct nccl_socket *socket = userdata;

	socket->asked = false;
	socket->refused_before += socket->refused;
	socket->refused = 0;
	parts_forget(&socket->rows, 1);
	log_warning("the process that receives what NCCL's plugin measures %s; it is replaced",
		    hung ? "hung" : "ended");
}

void nccl_socket_tick(struct nccl_socket *socket)
{
	const struct nccl_question question = { .version = GPUSONDE_VERSION };

	if (socket->asked || helper_send(socket->helper, &question, sizeof(question), socket->listener) < 0)
		return;
	socket->asked = true;
	helper_deadline(socket->helper, ANSWER_NS);
}

/* ---- life ---- */

int nccl_socket_new(sd_event *event, struct model *model, const char *path, struct nccl_socket **ret_socket)
{
	static const struct helper_ops ops = { nccl_answered, nccl_lost };
	const struct helper_config helper = { .role = "nccl", .max_stuck = 2 };
	struct nccl_socket *socket = calloc(1, sizeof(*socket));
	int r;

	if (!socket)
		return -ENOMEM;
	socket->model = model;
	socket->rows =
		(struct arriving){ .row_bytes = sizeof(struct nccl_measured), .max = NCCL_MEASURED_MAX };
	socket->listener = nccl_listen(path);
	r = socket->listener < 0 ? socket->listener : 0;
	if (r < 0)
		log_error("cannot listen for NCCL's plugin on %s: %s; choose another place with nccl.socket",
			  path, strerror(-r));
	if (r == 0) {
		socket->path = strdup(path);
		r = socket->path ? helper_new(event, &helper, &ops, socket, &socket->helper) : -ENOMEM;
	}
	if (r < 0) {
		nccl_socket_free(socket);
		return r;
	}
	log_info("listening for NCCL's plugin on %s", path);
	*ret_socket = socket;
	return 0;
}

void nccl_socket_free(struct nccl_socket *socket)
{
	if (!socket)
		return;
	helper_free(socket->helper);
	parts_forget(&socket->rows, 1);
	nccl_measurements_unref(socket->newest);
	if (socket->listener >= 0 && socket->path)
		unlink(socket->path);
	closep(&socket->listener);
	free(socket->path);
	free(socket);
}

pid_t nccl_socket_pid(const struct nccl_socket *socket)
{
	struct helper_stats stats;

	helper_stats(socket->helper, &stats);
	return stats.pid;
}
