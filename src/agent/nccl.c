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
#include "plugin_socket/listen.h"
#include "nccl_socket/protocol.h"
#include "proc/proc.h"

#define ANSWER_NS (10 * NSEC_PER_SEC)

struct nccl_socket {
	struct model *model;
	struct helper *helper;
	char *path;
	int listener;
	bool asked;
	struct arriving tables[NCCL_TABLES];
	struct nccl_measurements *newest; /* NULL: none yet */
	/* of the process that receives now, as of its newest answer; of those before */
	struct nccl_totals totals, totals_before;
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

/* Totals are nobody's. */
static bool row_is_valid(const struct nccl_measured *row, enum nccl_table table)
{
	bool other = row->operation == NCCL_OPERATIONS;

	return (row->pid > 0) == (table == NCCL_TABLE_ROWS) && (!other || row->ranks == NCCL_RANKS_OTHER) &&
	       row->operation <= NCCL_OPERATIONS && row->gone <= 1 && row->host_timed <= 1 &&
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

static void totals_take(struct nccl_socket *socket, uint64_t lost)
{
	const struct arriving *table = &socket->tables[NCCL_TABLE_TOTALS];
	const struct nccl_measured *rows = table->list;

	socket->totals = (struct nccl_totals){ .lost = lost };
	for (uint32_t i = 0; i < table->n; i++) {
		nccl_measured_add(nccl_totals_row(&socket->totals, rows[i].operation, rows[i].ranks),
				  &rows[i]);
		/* Where it is counted does not change any more. */
		nccl_totals_row(&socket->totals_before, rows[i].operation, rows[i].ranks);
	}
}

static void rows_take(struct nccl_socket *socket)
{
	const struct arriving *table = &socket->tables[NCCL_TABLE_ROWS];
	struct nccl_measured *rows = table->list;
	struct nccl_measured last = { .pid = 0 };
	struct nccl_measurements *taken;
	bool shown = false;
	uint32_t n = 0;

	/* Rows of a connection stand together: one look at /proc for each. */
	for (uint32_t i = 0; i < table->n; i++) {
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
	taken->totals = socket->totals_before;
	nccl_totals_add(&taken->totals, &socket->totals);
	nccl_measurements_unref(socket->newest);
	socket->newest = taken;
	model_set_measured(socket->model, taken);
}

/* ---- the process that receives ---- */

static bool answer_is_valid(const struct nccl_socket *socket, const struct nccl_answer *answer, size_t n)
{
	const uint64_t none[NCCL_TABLES] = { 0 };

	if (n != sizeof(*answer) || answer->message != NCCL_ANSWER ||
	    !parts_are_whole(socket->tables, NCCL_TABLES, answer->digest, none))
		return false;
	for (unsigned k = 0; k < NCCL_TABLES; k++) {
		const struct nccl_measured *rows = socket->tables[k].list;

		if (answer->rows[k] != socket->tables[k].n ||
		    (k == NCCL_TABLE_TOTALS && answer->rows[k] > NCCL_TOTALS_MAX))
			return false;
		for (uint32_t i = 0; i < socket->tables[k].n; i++)
			if (!row_is_valid(&rows[i], k))
				return false;
	}
	return true;
}

static void nccl_answered(const void *message, size_t n, int fd, void *userdata)
{
	struct nccl_socket *socket = userdata;
	const struct nccl_answer *answer = message;
	uint32_t type = 0;

	closep(&fd);
	memcpy(&type, message, MIN(n, sizeof(type)));
	if (socket->asked && type == PART_ROWS && parts_take(socket->tables, NCCL_TABLES, message, n))
		return; /* more comes */
	if (!socket->asked || !answer_is_valid(socket, answer, n)) {
		helper_reject(socket->helper);
		return;
	}
	socket->asked = false;
	helper_deadline(socket->helper, 0);
	socket->refused = answer->refused;
	socket->left_out = answer->dropped;
	totals_take(socket, answer->lost);
	rows_take(socket);
	parts_forget(socket->tables, NCCL_TABLES);
}

/* Programs connect again; what they have sent since the newest answer is gone. */
static void nccl_lost(bool hung, void *userdata)
{
	struct nccl_socket *socket = userdata;

	socket->asked = false;
	socket->refused_before += socket->refused;
	socket->refused = 0;
	nccl_totals_add(&socket->totals_before, &socket->totals);
	socket->totals = (struct nccl_totals){ 0 };
	parts_forget(socket->tables, NCCL_TABLES);
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
	for (unsigned i = 0; i < NCCL_TABLES; i++)
		socket->tables[i] = (struct arriving){ .row_bytes = sizeof(struct nccl_measured),
						       .max = NCCL_MEASURED_MAX };
	socket->listener = plugin_listen(path);
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
	parts_forget(socket->tables, NCCL_TABLES);
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
