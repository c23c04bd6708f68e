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
#include "samples/page.h"

#define MEMORY_BYTES (UINT64_C(384) << 20) /* libraries (60 MiB), a page and what is made of it, a thread */
#define FAREWELL_NS (2 * NSEC_PER_SEC) /* for what is still to be sent when the agent ends */
#define WAIT_MAX_NS (60 * NSEC_PER_SEC)

struct push_server {
	const struct push_kind *kind;
	void *state; /* of the kind */
	int folder; /* of the queue; -1: it has none */
	struct below below; /* what it may read */
	struct queue *queue; /* NULL: the same */
	struct post *post;
	struct sender *sender;
	uint64_t unmade; /* of what was handed over, since the answer before */
	char queue_error[160]; /* why there is no queue; "" */
};

/* ---- questions ---- */

#define END(member_) member_[sizeof(member_) - 1] = '\0'

static void terminate(struct push_question *question)
{
	struct push_settings *settings = &question->settings;

	END(question->key);
	END(question->certificate);
	END(question->certificate_key);
	END(question->headers);
	END(settings->url);
	END(settings->cluster);
	END(settings->proxy);
	END(settings->no_proxy);
	END(settings->folder);
	END(settings->ca_file);
	END(settings->headers);
	END(settings->labels);
}

int push_receive(int channel, struct push_question *ret_question, int *ret_fd)
{
	int r = receive_question(channel, ret_question, sizeof(*ret_question), ret_fd);

	if (r == 0)
		terminate(ret_question);
	return r;
}

/* -EBADMSG: the file has less than the question says. */
static int load(int fd, uint32_t bytes, void **ret_data)
{
	_cleanup_free_ char *data = bytes <= PAGE_BYTES_MAX ? malloc(bytes) : NULL;

	if (!data)
		return -ENOMEM;
	for (size_t at = 0; at < bytes;) {
		ssize_t got = pread(fd, data + at, bytes - at, (off_t)at);

		if (got <= 0)
			return -EBADMSG;
		at += (size_t)got;
	}
	*ret_data = TAKE_PTR(data);
	return 0;
}

static void batch_page(struct push_server *server, const struct push_question *question, int fd)
{
	_cleanup_free_ void *data = NULL;
	struct batches batches = { .n = 0 };
	int r;

	if (question->bytes == 0)
		return;
	r = load(fd, question->bytes, &data);
	if (r == 0)
		r = server->kind->make(server->state, data, question->bytes, &batches);
	if (r < 0)
		server->unmade++;
	if (batches.n > 0)
		sender_put(server->sender, &batches);
}

/* The last of all, and for a moment whatever else waits. */
static void finish_push(struct push_server *server)
{
	int64_t until_ns = clock_mono_ns() + FAREWELL_NS, now_ns, next_ns;
	struct batches batches = { .n = 0 };

	if (server->kind->finish && server->kind->finish(server->state, clock_real_ns(), &batches) < 0)
		server->unmade++;
	if (batches.n > 0)
		sender_put(server->sender, &batches);
	while ((now_ns = clock_mono_ns()) < until_ns && sender_is_busy(server->sender)) {
		next_ns = MIN(sender_step(server->sender, now_ns), until_ns);
		if (!sender_is_busy(server->sender))
			break;
		post_wait(server->post, -1, (int)(MAX(next_ns - now_ns, NSEC_PER_MSEC) / NSEC_PER_MSEC));
	}
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
		.refused_samples = sender.refused_samples,
	};
	memcpy(end->failures, sender.failures, sizeof(end->failures));
	end->lost[PUSH_LOST_FULL] = queue.full + sender.full;
	end->lost[PUSH_LOST_TORN] = queue.torn;
	end->lost[PUSH_LOST_OLD] = queue.old;
	end->lost[PUSH_LOST_UNKEPT] = sender.lost + server->unmade;
	server->unmade = 0;
	explain_push(server, &sender, end);
}

int push_answer(struct push_server *server, int channel, struct push_question *question, int fd)
{
	struct push_end end;

	sender_step(server->sender, clock_mono_ns());
	sender_set_key(server->sender, question->key, question->waits);
	post_show(server->post, question->certificate, question->certificate_key);
	post_set_headers(server->post, question->headers);
	explicit_bzero(question->key, sizeof(question->key));
	explicit_bzero(question->certificate_key, sizeof(question->certificate_key));
	explicit_bzero(question->headers, sizeof(question->headers));
	batch_page(server, question, fd);
	if (question->ends)
		finish_push(server);
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
	int r = -ENOENT;

	if (settings->queue_bytes > 0)
		r = queue_open_folder(settings->folder, server->kind->name);

	server->folder = r < 0 ? -1 : r;
	if (r >= 0)
		r = queue_new(server->folder, settings->queue_bytes, settings->queue_age_ns, &server->queue);
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
	if (settings->kind >= PUSH_KINDS)
		return -EBADMSG;
	server->kind = push_kinds[settings->kind];
	server->folder = -1;
	below_add_network(&server->below);
	below_add_folder_of(&server->below, settings->ca_file);
	open_queue(server, settings);
	r = server->kind->begin ? server->kind->begin(settings, &server->state) : 0;
	if (r == 0)
		r = post_new(server->kind, settings, &server->post);
	if (r == 0)
		r = sender_new(server->kind, server->state, server->post, server->queue, &server->sender);
	if (r < 0)
		return r;
	*ret_server = TAKE_PTR(server);
	return 0;
}

void push_server_free(struct push_server *server)
{
	if (!server)
		return;
	if (server->state)
		server->kind->end(server->state);
	sender_free(server->sender);
	post_free(server->post);
	queue_free(server->queue);
	closep(&server->folder);
	free(server);
}
