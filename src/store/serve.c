// SPDX-License-Identifier: Apache-2.0
#include "store/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "helper/confine.h"
#include "helper/message.h"
#include "store/protocol.h"

#define MEMORY_BYTES (UINT64_C(1) << 30)

struct store_server {
	pid_t owner;
	int folder;
	struct fields fields[STORE_TABLES];
	struct database *database;
	struct tiers *tiers; /* NULL: it only reads */
	struct strbuf frame;
};

/* ---- opening ---- */

static int confine_to(const struct store_server *server)
{
	const struct confinement confinement = {
		.name = "gpusonde-store",
		.keeps_files = true,
		.folder = server->folder,
		.file_bytes = UINT64_MAX, /* the file's own limit tells when it is full */
		.keeps_database = true,
		.keeps_user = true,
		.memory_bytes = MEMORY_BYTES,
	};

	return server->owner ? confine(&confinement, server->owner) : 0;
}

static int open_store(struct store_server *server, const struct store_question *question, int *folder,
		      struct store_answer *answer)
{
	int r;

	if (server->database || *folder < 0 || !*question->name || strchr(question->name, '/'))
		return -EINVAL;
	server->folder = TAKE_FD(*folder);
	r = confine_to(server);
	if (r == 0)
		r = database_open(server->folder, question->name, question->writes, &server->database,
				  answer->text, sizeof(answer->text));
	if (r == 0 && question->writes)
		r = database_limit(server->database, question->settings.max_bytes);
	if (r == 0 && question->writes)
		r = tiers_new(server->database, server->fields, &question->settings, &server->tiers);
	return r;
}

/* ---- frames ---- */

static int load(struct store_server *server, int fd, uint64_t bytes)
{
	char piece[65536];

	strbuf_reset(&server->frame);
	if (bytes > FRAME_BYTES_MAX)
		return -E2BIG;
	for (uint64_t at = 0; at < bytes;) {
		ssize_t n = pread(fd, piece, MIN(sizeof(piece), bytes - at), (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		strbuf_add(&server->frame, piece, (size_t)n);
		at += (uint64_t)n;
	}
	return server->frame.failed ? -ENOMEM : 0;
}

static int take_frame(struct store_server *server, const struct store_question *question, int fd,
		      struct store_answer *answer)
{
	struct frame frame;
	int r = server->tiers ? load(server, fd, question->bytes) : -EINVAL;

	if (r == 0)
		r = frame_read(server->frame.data, server->frame.len, &frame);
	if (r < 0)
		return r;
	r = tiers_add(server->tiers, &frame);
	if (r < 0)
		snprintf(answer->text, sizeof(answer->text), "%s", database_error(server->database));
	return r;
}

static void tell_figures(struct store_server *server, struct store_answer *answer)
{
	if (!server->tiers)
		return;
	tiers_figures(server->tiers, &answer->figures);
	(void)database_figures(server->database, &answer->file);
	answer->want_slow = tiers_want_slow(server->tiers);
}

/* ---- what is read ---- */

static int hand_over(const void *data, size_t n, int *ret_fd)
{
	_cleanup_close_ int fd = memfd_create("gpusonde-store", MFD_CLOEXEC);
	ssize_t r;

	if (fd < 0)
		return -errno;
	r = write_all(fd, data, n);
	if (r < 0)
		return (int)r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int look_up(struct store_server *server, const struct store_question *question,
		   struct store_answer *answer, int *ret_fd)
{
	_cleanup_free_ void *data = NULL;
	struct stored_block *blocks = NULL;
	size_t n = 0;
	int r;

	if (!server->database)
		return -EINVAL;
	if (question->ask == STORE_LIST) {
		r = database_list(server->database, &blocks, &n);
		data = blocks;
		n *= sizeof(*blocks);
	} else if (question->ask == STORE_BLOCK) {
		r = database_get(server->database, question->id, &data, &n);
	} else {
		r = database_get_layout(server->database, question->id, &data, &n);
	}
	if (r == 0)
		r = hand_over(data, n, ret_fd);
	else
		snprintf(answer->text, sizeof(answer->text), "%s", database_error(server->database));
	answer->bytes = n;
	return r;
}

/* ---- questions ---- */

static int answer_store_question(struct store_server *server, struct store_question *question, int *fd,
				 int channel)
{
	struct store_answer answer = { 0 };
	_cleanup_close_ int data = -1;

	question->name[sizeof(question->name) - 1] = '\0';
	switch (question->ask) {
	case STORE_OPEN:
		answer.error = open_store(server, question, fd, &answer);
		break;
	case STORE_FRAME:
		answer.error = take_frame(server, question, *fd, &answer);
		break;
	case STORE_CLOSE:
		if (server->tiers)
			answer.error = tiers_flush(server->tiers);
		break;
	case STORE_LIST:
	case STORE_BLOCK:
	case STORE_LAYOUT:
		answer.error = look_up(server, question, &answer, &data);
		break;
	default:
		answer.error = -EINVAL;
	}
	tell_figures(server, &answer);
	if (answer.error < 0 && !*answer.text)
		snprintf(answer.text, sizeof(answer.text), "%s", strerror(-answer.error));
	utf8_sanitize(answer.text);
	return send_with_fd(channel, &answer, sizeof(answer), data);
}

int store_serve(struct store_server *server, int channel)
{
	struct store_question question;
	int r = 0;

	while (r == 0) {
		_cleanup_close_ int fd = -1;

		r = receive_question(channel, &question, sizeof(question), &fd);
		if (r == 0)
			r = answer_store_question(server, &question, &fd, channel);
	}
	return r == 1 ? 0 : r;
}

int store_server_new(pid_t owner, struct store_server **ret_server)
{
	struct store_server *server = calloc(1, sizeof(*server));
	int r;

	if (!server)
		return -ENOMEM;
	server->owner = owner;
	server->folder = -1;
	strbuf_init(&server->frame, FRAME_BYTES_MAX);
	r = fields_new(server->fields);
	if (r < 0) {
		free(server);
		return r;
	}
	*ret_server = server;
	return 0;
}

void store_server_free(struct store_server *server)
{
	if (!server)
		return;
	tiers_free(server->tiers);
	database_close(server->database);
	closep(&server->folder);
	fields_done(server->fields);
	strbuf_done(&server->frame);
	free(server);
}
