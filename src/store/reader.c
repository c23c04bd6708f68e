// SPDX-License-Identifier: Apache-2.0
#include "store/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"
#include "config.h"
#include "helper/helper.h"
#include "store/protocol.h"

enum { LAYOUTS_MAX = 64, WAIT_MS = 60000, DATA_MAX = 256 << 20 };

struct known_layout {
	int64_t id;
	struct stored_layout layout;
};

struct store_reader {
	sd_event *event;
	struct helper *helper;
	struct fields fields[STORE_TABLES];
	struct stored_block *blocks;
	size_t blocks_n;
	struct known_layout layouts[LAYOUTS_MAX];
	unsigned layouts_n;
	struct block *block;
	/* the answer that is waited for */
	bool answered, lost;
	struct store_answer answer;
	int fd;
	char error[300];
};

/* ---- questions ---- */

static void on_store_answer(const void *message, size_t n, int fd, void *userdata)
{
	struct store_reader *reader = userdata;

	closep(&reader->fd);
	reader->fd = fd;
	if (n != sizeof(reader->answer) || reader->answered) {
		helper_reject(reader->helper);
		return;
	}
	memcpy(&reader->answer, message, n);
	reader->answer.text[sizeof(reader->answer.text) - 1] = '\0';
	reader->answered = true;
}

static void on_store_lost(_unused_ bool hung, void *userdata)
{
	struct store_reader *reader = userdata;

	reader->lost = true;
}

static int fail_reading(struct store_reader *reader, int error, const char *text)
{
	snprintf(reader->error, sizeof(reader->error), "%s", *text ? text : strerror(-error));
	utf8_sanitize(reader->error);
	return error;
}

static int ask_store(struct store_reader *reader, const struct store_question *question, int fd)
{
	int r;

	closep(&reader->fd);
	reader->fd = -1;
	reader->answered = reader->lost = false;
	r = helper_send(reader->helper, question, sizeof(*question), fd);
	if (r < 0)
		return fail_reading(reader, r, "gpusonde-store cannot be started");
	while (!reader->answered && !reader->lost)
		helper_wait(reader->helper, WAIT_MS);
	if (reader->lost)
		return fail_reading(reader, -EIO, "gpusonde-store ended: the file may be damaged");
	return reader->answer.error < 0 ? fail_reading(reader, reader->answer.error, reader->answer.text) : 0;
}

static struct store_question question_of(enum store_ask what, int64_t id)
{
	struct store_question question = { .ask = what, .id = id };

	snprintf(question.version, sizeof(question.version), "%s", GPUSONDE_VERSION);
	return question;
}

/* What came with the answer; the caller's. */
static int take_data(struct store_reader *reader, void **ret_data, size_t *ret_n)
{
	uint64_t n = reader->answer.bytes;
	_cleanup_free_ char *data = n <= DATA_MAX ? malloc(n + 1) : NULL;

	if (!data || reader->fd < 0)
		return fail_reading(reader, data ? -EBADMSG : -ENOMEM, "");
	for (uint64_t at = 0; at < n;) {
		ssize_t got = pread(reader->fd, data + at, n - at, (off_t)at);

		if (got <= 0)
			return fail_reading(reader, -EBADMSG, "");
		at += (uint64_t)got;
	}
	*ret_data = TAKE_PTR(data);
	*ret_n = n;
	return 0;
}

static int ask_for(struct store_reader *reader, enum store_ask what, int64_t id, void **ret_data,
		   size_t *ret_n)
{
	struct store_question question = question_of(what, id);
	int r = ask_store(reader, &question, -1);

	return r < 0 ? r : take_data(reader, ret_data, ret_n);
}

/* ---- blocks ---- */

static bool is_sane(const struct stored_block *block)
{
	return block->tier < TIERS && block->frames > 0 && block->frames <= BLOCK_FRAMES_MAX &&
	       store_time_is_sane(block->real_first_ns) && store_time_is_sane(block->real_last_ns) &&
	       block->real_first_ns <= block->real_last_ns;
}

static int list_blocks(struct store_reader *reader)
{
	void *data = NULL;
	size_t n = 0, kept = 0;
	int r = ask_for(reader, STORE_LIST, 0, &data, &n);

	if (r < 0)
		return r;
	free(reader->blocks);
	reader->blocks = data;
	for (size_t i = 0; i < n / sizeof(*reader->blocks); i++)
		if (is_sane(&reader->blocks[i]))
			reader->blocks[kept++] = reader->blocks[i];
	reader->blocks_n = kept;
	return 0;
}

int store_reader_refresh(struct store_reader *reader)
{
	return list_blocks(reader);
}

pid_t store_reader_pid(const struct store_reader *reader)
{
	struct helper_stats stats;

	helper_stats(reader->helper, &stats);
	return stats.pid;
}

static int find_layout(struct store_reader *reader, int64_t id, const struct stored_layout **ret_layout)
{
	struct known_layout *known = &reader->layouts[reader->layouts_n];
	void *text = NULL;
	size_t n = 0;
	int r;

	for (unsigned i = 0; i < reader->layouts_n; i++)
		if (reader->layouts[i].id == id) {
			*ret_layout = &reader->layouts[i].layout;
			return 0;
		}
	if (reader->layouts_n == LAYOUTS_MAX)
		return fail_reading(reader, -E2BIG, "it has too many layouts");
	r = ask_for(reader, STORE_LAYOUT, id, &text, &n);
	if (r < 0)
		return r;
	r = layout_read(reader->fields, text, n, &known->layout);
	free(text);
	if (r < 0)
		return fail_reading(reader, r, "the names of its columns are damaged");
	known->id = id;
	reader->layouts_n++;
	*ret_layout = &known->layout;
	return 0;
}

int store_reader_block(struct store_reader *reader, const struct stored_block *stored,
		       struct block **ret_block)
{
	const struct stored_layout *layout = NULL;
	void *data = NULL;
	size_t n = 0;
	int r = find_layout(reader, stored->layout, &layout);

	block_free(TAKE_PTR(reader->block));
	if (r == 0)
		r = ask_for(reader, STORE_BLOCK, stored->id, &data, &n);
	if (r < 0)
		return r;
	r = block_read(reader->fields, layout, data, n, &reader->block);
	free(data);
	if (r < 0)
		return fail_reading(reader, r, "a block of it is damaged");
	*ret_block = reader->block;
	return 0;
}

/* ---- life ---- */

static int open_folder(const char *path, char *why, size_t size, char ret_name[static STORE_NAME_MAX])
{
	char copy[PATH_MAX], *slash;
	struct stat st;
	int fd;

	if (strlen(path) >= sizeof(copy)) {
		snprintf(why, size, "the path is too long");
		return -ENAMETOOLONG;
	}
	strcpy(copy, path);
	slash = strrchr(copy, '/');
	snprintf(ret_name, STORE_NAME_MAX, "%.255s", slash ? slash + 1 : copy);
	if (slash)
		slash[slash == copy] = '\0';
	fd = open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && fstatat(fd, ret_name, &st, 0) == 0 && !S_ISREG(st.st_mode)) {
		snprintf(why, size, "it is no regular file"); /* a FIFO would be waited for */
		closep(&fd);
		return -ENOTSUP;
	}
	if (fd >= 0 && faccessat(fd, ret_name, R_OK, 0) == 0)
		return fd;
	snprintf(why, size, "%s%s", strerror(errno),
		 errno == ENOENT ? " (gpusonde record makes one, or recording.path of the agent)" : "");
	closep(&fd);
	return -errno;
}

static int begin_reading(struct store_reader *reader, const char *path)
{
	static const struct helper_ops ops = { on_store_answer, on_store_lost };
	const struct helper_config config = { .program = "gpusonde-store", .role = "read", .max_stuck = 1 };
	struct store_question question = question_of(STORE_OPEN, 0);
	_cleanup_close_ int folder = open_folder(path, reader->error, sizeof(reader->error), question.name);
	int r = folder < 0 ? folder : sd_event_new(&reader->event);

	if (r < 0)
		return r;
	r = helper_new(reader->event, &config, &ops, reader, &reader->helper);
	if (r < 0)
		return fail_reading(reader, r, "");
	r = ask_store(reader, &question, folder);
	return r < 0 ? r : list_blocks(reader);
}

int store_reader_open(const char *path, struct store_reader **ret_reader, char *why, size_t size)
{
	_cleanup_(store_reader_freep) struct store_reader *reader = calloc(1, sizeof(*reader));
	int r = reader ? fields_new(reader->fields) : -ENOMEM;

	if (reader)
		reader->fd = -1;
	if (r == 0)
		r = begin_reading(reader, path);
	if (r < 0) {
		snprintf(why, size, "%s", reader && *reader->error ? reader->error : strerror(-r));
		return r;
	}
	*ret_reader = TAKE_PTR(reader);
	return 0;
}

void store_reader_free(struct store_reader *reader)
{
	if (!reader)
		return;
	helper_free(reader->helper);
	sd_event_unref(reader->event);
	block_free(reader->block);
	for (unsigned i = 0; i < reader->layouts_n; i++)
		layout_done(&reader->layouts[i].layout);
	fields_done(reader->fields);
	closep(&reader->fd);
	free(reader->blocks);
	free(reader);
}

const struct stored_block *store_reader_blocks(const struct store_reader *reader, size_t *ret_n)
{
	*ret_n = reader->blocks_n;
	return reader->blocks;
}

const struct fields *store_reader_fields(const struct store_reader *reader)
{
	return reader->fields;
}

const char *store_reader_error(const struct store_reader *reader)
{
	return reader->error;
}
