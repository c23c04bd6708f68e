// SPDX-License-Identifier: Apache-2.0
#include "agent/plugin_socket.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/macro.h"
#include "base/text.h"
#include "config.h"
#include "helper/helper.h"
#include "plugin_socket/listen.h"
#include "proc/proc.h"

#define ANSWER_NS (10 * NSEC_PER_SEC)

struct plugin_socket {
	struct plugin_socket_config config;
	struct plugin_question question;
	struct helper *helper;
	char *path;
	int listener;
	bool asked;
	struct arriving tables[PLUGIN_TABLES];
	uint64_t refused, refused_before; /* before: of processes that were replaced */
};

/* ---- rows ---- */

bool plugin_text_ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

bool plugin_number_is_sane(double value)
{
	return isfinite(value) && value >= 0;
}

static bool is_same_connection(const struct plugin_row *a, const struct plugin_row *b)
{
	return a->pid == b->pid && a->since_boot_ns == b->since_boot_ns;
}

/* NULL: none. */
static const uint8_t *row_find(const struct plugin_layout *layout, const struct plugin_row *row,
			       const uint8_t *rows, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++, rows += layout->row_bytes)
		if (is_same_connection(row, (const struct plugin_row *)rows))
			return rows;
	return NULL;
}

bool plugin_row_is_of_process(const struct plugin_row *row)
{
	struct proc_identity identity;

	return proc_identify("/proc", row->pid, &identity) < 0 ||
	       process_boot_ns(identity.id.start_ticks) <= (int64_t)row->since_boot_ns;
}

/* False: the process is another one. */
static bool row_name(const struct plugin_layout *layout, uint8_t *at, const void *before, uint32_t before_n)
{
	const struct plugin_row *row = (const struct plugin_row *)at;
	const uint8_t *known = row_find(layout, row, before, before_n);
	struct proc_identity identity;
	bool lives = proc_identify("/proc", row->pid, &identity) >= 0;

	if (lives && process_boot_ns(identity.id.start_ticks) > (int64_t)row->since_boot_ns)
		return at[layout->gone_at];
	/* It may have ended already: what it said is shown by its number. */
	if (known || lives)
		memcpy(at + layout->comm_at, known ? (const char *)known + layout->comm_at : identity.comm,
		       NCCL_COMM);
	return true;
}

uint32_t plugin_rows_name(const struct plugin_layout *layout, void *rows, uint32_t n, const void *before,
			  uint32_t before_n)
{
	struct plugin_row last = { .pid = 0 };
	char comm[NCCL_COMM] = "";
	uint8_t *to = rows, *at = rows;
	bool shown = false;

	/* Rows of a connection stand together: one look at /proc for each. */
	for (uint32_t i = 0; i < n; i++, at += layout->row_bytes) {
		if (is_same_connection((const struct plugin_row *)at, &last))
			memcpy(at + layout->comm_at, comm, NCCL_COMM);
		else
			shown = row_name(layout, at, before, before_n);
		memcpy(&last, at, sizeof(last));
		memcpy(comm, at + layout->comm_at, NCCL_COMM);
		if (!shown)
			continue;
		memmove(to, at, layout->row_bytes);
		to += layout->row_bytes;
	}
	return (uint32_t)((size_t)(to - (uint8_t *)rows) / layout->row_bytes);
}

/* ---- the process that receives ---- */

static bool answer_is_valid(const struct plugin_socket *socket, const struct plugin_answer *answer, size_t n)
{
	const uint64_t none[PLUGIN_TABLES] = { 0 };

	if (n != sizeof(*answer) || answer->message != PLUGIN_ANSWER ||
	    !parts_are_whole(socket->tables, PLUGIN_TABLES, answer->digest, none))
		return false;
	for (unsigned k = 0; k < PLUGIN_TABLES; k++) {
		const uint8_t *rows = socket->tables[k].list;

		if (answer->rows[k] != socket->tables[k].n)
			return false;
		for (uint32_t i = 0; i < socket->tables[k].n; i++)
			if (!socket->config.row_is_valid(rows + (size_t)i * socket->tables[k].row_bytes, k))
				return false;
	}
	return true;
}

static void plugin_answered(const void *message, size_t n, int fd, void *userdata)
{
	struct plugin_socket *socket = userdata;
	const struct plugin_answer *answer = message;
	uint32_t type = 0;

	closep(&fd);
	memcpy(&type, message, MIN(n, sizeof(type)));
	if (socket->asked && type == PART_ROWS && parts_take(socket->tables, PLUGIN_TABLES, message, n))
		return; /* more comes */
	if (!socket->asked || !answer_is_valid(socket, answer, n)) {
		helper_reject(socket->helper);
		return;
	}
	socket->asked = false;
	helper_deadline(socket->helper, 0);
	socket->refused = answer->refused;
	socket->config.taken(socket->tables, answer, socket->refused_before + socket->refused,
			     socket->config.userdata);
	parts_forget(socket->tables, PLUGIN_TABLES);
}

/* Programs connect again; what they have sent since the newest answer is gone. */
static void plugin_lost(bool hung, void *userdata)
{
	struct plugin_socket *socket = userdata;

	socket->asked = false;
	socket->refused_before += socket->refused;
	socket->refused = 0;
	socket->config.lost(socket->config.userdata);
	parts_forget(socket->tables, PLUGIN_TABLES);
	log_warning("the process that receives what %s plugin measures %s; it is replaced",
		    socket->config.plugin, hung ? "hung" : "ended");
}

void plugin_socket_tick(struct plugin_socket *socket)
{
	if (socket->asked ||
	    helper_send(socket->helper, &socket->question, sizeof(socket->question), socket->listener) < 0)
		return;
	socket->asked = true;
	helper_deadline(socket->helper, ANSWER_NS);
}

/* ---- life ---- */

static void question_init(struct plugin_question *question, const struct plugin_socket_config *config)
{
	*question = (struct plugin_question){ .version = GPUSONDE_VERSION };
	if (config->greeting)
		memcpy(question->greeting, config->greeting,
		       MIN(config->greeting_bytes, sizeof(question->greeting)));
}

int plugin_socket_new(sd_event *event, const struct plugin_socket_config *config,
		      struct plugin_socket **ret_socket)
{
	static const struct helper_ops ops = { plugin_answered, plugin_lost };
	const struct helper_config helper = { .role = config->role, .max_stuck = 2 };
	struct plugin_socket *socket = calloc(1, sizeof(*socket));
	int r;

	if (!socket)
		return -ENOMEM;
	socket->config = *config;
	question_init(&socket->question, config);
	for (unsigned i = 0; i < PLUGIN_TABLES; i++)
		socket->tables[i] =
			(struct arriving){ .row_bytes = config->row_bytes, .max = config->rows_max };
	socket->tables[PLUGIN_TABLE_RECORDS] = (struct arriving){
		.row_bytes = MAX(config->record_bytes, 1u), .max = config->records_max
	};
	socket->listener = plugin_listen(config->path);
	r = socket->listener < 0 ? socket->listener : 0;
	if (r < 0)
		log_error("cannot listen for %s plugin on %s: %s; choose another place with %s",
			  config->plugin, config->path, strerror(-r), config->option);
	if (r == 0) {
		socket->path = strdup(config->path);
		r = socket->path ? helper_new(event, &helper, &ops, socket, &socket->helper) : -ENOMEM;
	}
	if (r < 0) {
		plugin_socket_free(socket);
		return r;
	}
	log_info("listening for %s plugin on %s", config->plugin, config->path);
	*ret_socket = socket;
	return 0;
}

void plugin_socket_free(struct plugin_socket *socket)
{
	if (!socket)
		return;
	helper_free(socket->helper);
	parts_forget(socket->tables, PLUGIN_TABLES);
	if (socket->listener >= 0 && socket->path)
		unlink(socket->path);
	closep(&socket->listener);
	free(socket->path);
	free(socket);
}

pid_t plugin_socket_pid(const struct plugin_socket *socket)
{
	struct helper_stats stats;

	helper_stats(socket->helper, &stats);
	return stats.pid;
}
