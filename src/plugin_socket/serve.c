// SPDX-License-Identifier: Apache-2.0
#include "plugin_socket/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "config.h"
#include "helper/message.h"

/* They are sent once, so that nothing is compared by their digest. */
static int send_records(int channel, const struct plugin_server *server, struct plugin_answer *answer)
{
	struct row_list *records = server->records ? server->records(server->userdata) : NULL;
	int r = 0;

	if (!records)
		return 0;
	answer->rows[PLUGIN_TABLE_RECORDS] = records->n;
	answer->digest[PLUGIN_TABLE_RECORDS] = records->n > 0;
	if (records->n > 0)
		r = parts_send(channel, PLUGIN_TABLE_RECORDS, 1, records);
	answer->records_dropped = server->records_sent(server->userdata);
	return r;
}

static int send_answer(int channel, const struct plugin_server *server, struct row_list *rows)
{
	struct plugin_answer answer = { .message = PLUGIN_ANSWER };
	int r = 0;

	for (unsigned i = 0; r == 0 && i < PLUGIN_TABLE_RECORDS; i++) {
		row_list_clear(rows);
		answer.lost = server->table(i, rows, server->userdata);
		if (i == PLUGIN_TABLE_ROWS)
			answer.dropped = rows->dropped;
		answer.rows[i] = rows->n;
		answer.digest[i] = rows->n > 0 ? row_list_digest(rows) : 0;
		if (rows->n > 0)
			r = parts_send(channel, i, answer.digest[i], rows);
	}
	if (r == 0)
		r = send_records(channel, server, &answer);
	answer.refused = plugin_clients_refused(server->clients);
	return r == 0 ? send_with_fd(channel, &answer, sizeof(answer), -1) : r;
}

/* What comes with the first question. */
static int listen_begin(const struct plugin_server *server, const struct plugin_question *question,
			int listener)
{
	if (server->greeting)
		server->greeting(question->greeting, server->userdata);
	return plugin_clients_listen(server->clients, listener);
}

int plugin_serve(int channel, const struct plugin_server *server)
{
	struct row_list rows = { .size = server->row_bytes, .max = server->rows_max };
	struct plugin_question question;
	int listener = -1, fd = -1, r = plugin_clients_channel(server->clients, channel);
	ssize_t n = 1;
	bool asked;

	while (r >= 0 && n > 0) {
		r = plugin_clients_wait(server->clients, -1, &asked);
		if (r == -EINTR)
			r = 0;
		if (r < 0 || !asked)
			continue;
		n = receive_with_fd(channel, &question, sizeof(question), &fd);
		if (n <= 0)
			break;
		if (n != sizeof(question) ||
		    strncmp(question.version, GPUSONDE_VERSION, sizeof(question.version)) != 0) {
			row_list_done(&rows);
			return HELPER_FOREIGN;
		}
		if (fd >= 0 && listener < 0) {
			listener = TAKE_FD(fd);
			r = listen_begin(server, &question, listener);
		}
		closep(&fd);
		r = r < 0 ? r : send_answer(channel, server, &rows);
	}
	row_list_done(&rows);
	return r >= 0 && n == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
