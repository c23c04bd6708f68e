// SPDX-License-Identifier: Apache-2.0
#include "push/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "helper/below.h"
#include "helper/confine.h"
#include "helper/message.h"
#include "push/sender.h"

#define MEMORY_BYTES (UINT64_C(256) << 20) /* libraries (60 MiB), rows and what is made of them, a thread */
#define WAIT_MAX_NS (60 * NSEC_PER_SEC)

struct push_server {
	int folder; /* of the queue; -1: it has none */
	struct below below; /* what it may read */
	struct queue *queue; /* NULL: the same */
	struct post *post;
	struct sender *sender;
	uint64_t unmade; /* batches that could not be made of their rows, since the answer before */
	char queue_error[200]; /* why there is no queue; "" */
};

/* ---- questions ---- */

#define END(member_) member_[sizeof(member_) - 1] = '\0'

static void terminate(struct push_question *question)
{
	struct push_settings *settings = &question->settings;

	END(question->key);
	END(settings->url);
	END(settings->cluster);
	END(settings->proxy);
	END(settings->no_proxy);
	END(settings->folder);
	END(settings->ca_file);
}

static void terminate_row(struct push_row *row)
{
#define PUSH_LABEL(member_, bytes_, name_) END(row->member_);
#include "push/labels.def"
}

int push_receive(int channel, struct push_question *ret_question, int *ret_rows)
{
	int r = receive_question(channel, ret_question, sizeof(*ret_question), ret_rows);

	if (r == 0)
		terminate(ret_question);
	return r;
}

/* -EBADMSG: it has other rows than the question says. */
static int load_rows(int fd, uint32_t n, struct push_row **ret_rows)
{
	size_t bytes = n * sizeof(struct push_row);
	_cleanup_free_ struct push_row *rows = malloc(bytes);

	if (!rows)
		return -ENOMEM;
	for (size_t at = 0; at < bytes;) {
		ssize_t got = pread(fd, (char *)rows + at, bytes - at, (off_t)at);

		if (got <= 0)
			return -EBADMSG;
		at += (size_t)got;
	}
	for (uint32_t i = 0; i < n; i++)
		terminate_row(&rows[i]);
	*ret_rows = TAKE_PTR(rows);
	return 0;
}

static void take_rows(struct push_server *server, const struct push_question *question, int fd)
{
	_cleanup_free_ struct push_row *rows = NULL;
	struct batch batch = { 0 };
	int r = -EBADMSG;

	if (question->rows == 0)
		return;
	if (question->rows <= PUSH_ROWS_MAX && question->row_bytes == sizeof(*rows))
		r = load_rows(fd, question->rows, &rows);
	if (r == 0)
		r = batch_make(rows, question->rows, &batch);
	if (r < 0)
		server->unmade++;
	else if (batch.n > 0)
		sender_put(server->sender, &batch);
}

/* ---- answers ---- */

static void explain_push(struct push_server *server, const struct sender_figures *figures,
			 struct push_end *end)
{
	snprintf(end->error, sizeof(end->error), "%s%s%s", figures->error,
		 *figures->error && *server->queue_error ? "; " : "", server->queue_error);
	utf8_sanitize(end->error);
}

static void tell(struct push_server *server, struct push_end *end)
{
	struct queue_figures queue = { 0 };
	struct sender_figures sender;

	if (server->queue)
		queue_take_figures(server->queue, &queue);
	sender_take_figures(server->sender, &sender);
	*end = (struct push_end){
		.outcome = sender.outcome,
		.batches = queue.batches,
		.bytes = queue.bytes,
		.sent = sender.sent,
		.queued = sender.queued,
		.refused = sender.refused,
	};
	memcpy(end->failures, sender.failures, sizeof(end->failures));
	end->lost[PUSH_LOST_FULL] = queue.full + sender.full;
	end->lost[PUSH_LOST_TORN] = queue.torn;
	end->lost[PUSH_LOST_UNKEPT] = sender.lost + server->unmade;
	server->unmade = 0;
	explain_push(server, &sender, end);
}

int push_answer(struct push_server *server, int channel, struct push_question *question, int rows)
{
	struct push_end end;

	sender_step(server->sender, clock_mono_ns());
	sender_set_key(server->sender, question->key);
	explicit_bzero(question->key, sizeof(question->key));
	take_rows(server, question, rows);
	tell(server, &end);
	return send_with_fd(channel, &end, sizeof(end), -1);
}

int push_server_wait(struct push_server *server, int channel)
{
	for (;;) {
		int64_t now_ns = clock_mono_ns();
		int64_t left_ns = sender_step(server->sender, now_ns) - now_ns;

		left_ns = CLAMP(left_ns, INT64_C(0), WAIT_MAX_NS);
		if (post_wait(server->post, channel, (int)(left_ns / NSEC_PER_MSEC)))
			return 0;
	}
}

/* ---- life ---- */

int push_server_confine(struct push_server *server, pid_t owner)
{
	const struct confinement confinement = {
		.name = "gpusonde-push",
		.opens = true,
		.connects = true,
		.below = server->below.list,
		.keeps_files = server->folder >= 0,
		.folder = server->folder,
		.file_bytes = BATCH_BYTES_MAX + 4096,
		.memory_bytes = MEMORY_BYTES,
	};

	return confine(&confinement, owner);
}

static void open_queue(struct push_server *server, const struct push_settings *settings)
{
	int r = settings->queue_bytes > 0 ? queue_open_folder(settings->folder) : -ENOENT;

	server->folder = r < 0 ? -1 : r;
	if (r >= 0)
		r = queue_new(server->folder, settings->queue_bytes, &server->queue);
	if (r < 0 && settings->queue_bytes > 0)
		snprintf(server->queue_error, sizeof(server->queue_error),
			 "batches cannot be kept in the folder push of state.dir: %s", strerror(-r));
}

int push_server_new(const struct push_settings *settings, struct push_server **ret_server)
{
	_cleanup_(push_server_freep) struct push_server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return -ENOMEM;
	server->folder = -1;
	below_add_network(&server->below);
	below_add_folder_of(&server->below, settings->ca_file);
	open_queue(server, settings);
	r = post_new(settings, &server->post);
	if (r == 0)
		r = sender_new(server->post, server->queue, &server->sender);
	if (r < 0)
		return r;
	*ret_server = TAKE_PTR(server);
	return 0;
}

void push_server_free(struct push_server *server)
{
	if (!server)
		return;
	sender_free(server->sender);
	post_free(server->post);
	queue_free(server->queue);
	closep(&server->folder);
	free(server);
}
