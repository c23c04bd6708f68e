// SPDX-License-Identifier: Apache-2.0
/*
 * The owner's end of unwind/reader.h: asks the helper for one thing after the other, and takes what it says,
 * which is hostile.
 *
 * A user's processes and files may take CREDIT_NS of its time at once, and a part of it from then on; none of
 * them is looked at for PENALTY_NS after one has made it hang or crash.
 */
#include "unwind/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process_id.h"
#include "config.h"
#include "helper/helper.h"
#include "proc/proc.h"
#include "proc/user.h"
#include "unwind/reader.h"

enum {
	WANTED = 256, /* processes that wait for their first list */
	SLOWER = 50, /* a user has a fiftieth of the helper's time once its credit is used */
	TRIES = 4, /* processes that are asked for a file */
	MESSAGES = 8192, /* of an answer */
};
#define PATIENCE_NS (5 * NSEC_PER_SEC) /* for each message */
#define ANSWER_NS (60 * NSEC_PER_SEC) /* for all of them */
#define CREDIT_NS (10 * NSEC_PER_SEC)
#define PENALTY_NS (60 * NSEC_PER_SEC)
#define RETRY_NS (100 * NSEC_PER_MSEC)

enum asked { ASKED_NOTHING, ASKED_LIST, ASKED_FILE, ASKED_NAMES };

struct unwind_remote {
	struct unwind *u;
	struct helper *helper;
	sd_event_source *timer;
	struct unwind_names *names; /* NULL: none are asked for */
	struct {
		pid_t pid;
		uint32_t user;
	} wanted[WANTED]; /* a ring */
	uint32_t first, wanted_n;
	int64_t busy_until_ns[USER_SHARES_USERS]; /* of each user's credit, SLOWER times as fast */
	/* What was asked for. */
	enum asked asked;
	uint32_t user;
	int64_t asked_ns;
	struct process_id id; /* of the process that was asked about */
	bool dropped; /* it runs another program since; the names are no more */
	uint32_t messages; /* of its answer */
	uint32_t number; /* of the list before */
	struct listing listing;
	uint32_t file; /* of ASKED_FILE, ASKED_NAMES */
	bool told; /* it was sent */
	int error; /* why the rest of its answer is of no use */
	uint32_t rules_n, rules_got, rows_got;
	struct unwind_rule *rules;
	uint32_t *numbers; /* of the rules, for all files */
	uint32_t names_n;
	uint32_t name_numbers[UNWIND_ASKED_NAMES];
	bool pumping;
	struct unwind_question question;
};

/* ---- users ---- */

static bool may_ask(const struct unwind_remote *remote, uint32_t user)
{
	return remote->busy_until_ns[user] - clock_mono_ns() < SLOWER * CREDIT_NS;
}

static void spend(struct unwind_remote *remote, int64_t ns)
{
	int64_t *until_ns = &remote->busy_until_ns[remote->user];

	*until_ns = MAX(*until_ns, clock_mono_ns()) + ns;
}

void remote_want(struct unwind *u, pid_t pid)
{
	struct unwind_remote *remote = u->remote;
	uint32_t own = 0, user, uid;
	uint64_t id;

	if (proc_answers_for("/proc", (uint32_t)pid, &id, &uid) < 0)
		return;
	user = user_shares_user(&u->shares, id);
	for (uint32_t i = 0; i < remote->wanted_n; i++) {
		own += remote->wanted[(remote->first + i) % WANTED].user == user;
		if (remote->wanted[(remote->first + i) % WANTED].pid == pid)
			return;
	}
	/* Who has no place is wanted again by its next stack. */
	if (remote->wanted_n == WANTED || own >= USER_SHARE * (WANTED - remote->wanted_n))
		return;
	remote->wanted[(remote->first + remote->wanted_n++) % WANTED].pid = pid;
	remote->wanted[(remote->first + remote->wanted_n - 1) % WANTED].user = user;
	remote_pump(u);
}

void remote_event(struct unwind *u, const struct trace_header *event)
{
	struct unwind_remote *remote = u->remote;

	if (remote->asked == ASKED_LIST && remote->id.pid == event->tgid &&
	    (uint64_t)remote->asked_ns < event->time_ns)
		remote->dropped = true;
}

/* ---- asking ---- */

static int remote_ask(struct unwind_remote *remote, enum asked asked, enum unwind_op op, pid_t pid,
		      uint32_t user, int fd)
{
	struct unwind_question *question = &remote->question;
	int r;

	memcpy(question->version, GPUSONDE_VERSION, sizeof(GPUSONDE_VERSION));
	question->op = op;
	question->pid = (int32_t)pid;
	r = helper_send(remote->helper, question, sizeof(*question), fd);
	if (r < 0)
		return r;
	helper_deadline(remote->helper, PATIENCE_NS);
	remote->asked = asked;
	remote->user = user;
	remote->asked_ns = clock_mono_ns();
	remote->error = 0;
	remote->dropped = remote->told = false;
	remote->messages = 0;
	return 1;
}

static int ask_list(struct unwind_remote *remote, pid_t pid)
{
	struct unwind *u = remote->u;
	const struct space *space = space_of(u, (uint32_t)pid);
	int r;

	if (proc_process_id("/proc", (uint32_t)pid, &remote->id) < 0 ||
	    listing_init(&remote->listing, u, pid) < 0)
		return 0;
	remote->number = space ? space->number : 0;
	r = may_ask(remote, remote->listing.user) ?
		    remote_ask(remote, ASKED_LIST, UNWIND_ASK_LIST, pid, remote->listing.user, -1) :
		    0;
	if (r <= 0)
		listing_done(&remote->listing);
	return r;
}

/* 1: it was asked; 0: there is nothing to ask; -errno: nothing can be asked now. */
static int ask_wanted(struct unwind_remote *remote)
{
	int r = 0;

	while (r == 0 && remote->wanted_n > 0) {
		r = ask_list(remote, remote->wanted[remote->first].pid);
		if (r < 0)
			return r;
		remote->first = (remote->first + 1) % WANTED;
		remote->wanted_n--;
	}
	return r;
}

static int ask_again(struct unwind_remote *remote)
{
	pid_t pid;
	int r = 0;

	while (r == 0 && (pid = space_take_due(remote->u, clock_mono_ns())) != 0) {
		r = ask_list(remote, pid);
		if (r < 0)
			unwind_again(remote->u, pid, false);
	}
	return r;
}

/* A process that has the file, but not the one that did not. 0: there is none. */
static pid_t mapper_of(const struct unwind *u, uint32_t file)
{
	for (uint32_t i = 0; i < u->spaces_n; i++) {
		const struct space *space = &u->spaces[i];

		if (!space->number || space->retired_ns || (pid_t)space->tgid == u->files[file].failed_by)
			continue;
		for (uint32_t k = 0; k < space->n; k++)
			if (space->mappings[k].file == file)
				return (pid_t)space->tgid;
	}
	return 0;
}

static int ask_file(struct unwind_remote *remote)
{
	struct unwind *u = remote->u;
	int r = 0;

	for (uint32_t i = 1; r == 0 && i <= u->files_n; i++) {
		struct file *file = &u->files[i];
		pid_t pid;

		if (file->state != FILE_QUEUED || file->users == 0 || !may_ask(remote, file->user))
			continue;
		pid = file->mapped_by ? file->mapped_by : mapper_of(u, i);
		if (pid == 0) {
			/* Until another process maps it. */
			file->unreachable = true;
			file->state = FILE_MADE;
			file->none = TRACE_NATIVE_NO_FILE;
			file_publish(u, i);
			continue;
		}
		remote->question.dev = file->dev;
		remote->question.ino = file->ino;
		remote->question.stamp = file->stamp;
		r = remote_ask(remote, ASKED_FILE, UNWIND_ASK_FILE, pid, file->user, -1);
		if (r <= 0)
			continue;
		remote->file = u->making_of = i;
		remote->rules_n = remote->rules_got = remote->rows_got = 0;
		file->asked = pid;
	}
	return r;
}

static bool names_ready(uint32_t number, void *userdata)
{
	const struct unwind_remote *remote = userdata;
	const struct file *file = &remote->u->files[number];

	return (file->made_by || file->state == FILE_MADE) && may_ask(remote, file->user);
}

/* Of a file that was not opened, and of code whose process is over, there are only addresses. */
static int ask_names(struct unwind_remote *remote)
{
	struct unwind_question *question = &remote->question;
	struct file *file;
	int r = 0;

	while (r == 0 && remote->names) {
		uint32_t n = unwind_names_ask(remote->names, names_ready, remote, UNWIND_ASKED_NAMES,
					      &remote->file, remote->name_numbers);

		if (n == 0)
			return 0;
		file = &remote->u->files[remote->file];
		remote->names_n = n;
		if (file->path)
			unwind_names_of_file(remote->names, remote->name_numbers, n, file->path);
		for (uint32_t i = 0; i < n; i++)
			question->addresses[i] = unwind_names_address(remote->names, remote->name_numbers[i]);
		question->names = n;
		if (file->fd >= 0 || file->made_by > 0)
			r = remote_ask(remote, ASKED_NAMES, UNWIND_ASK_NAMES, MAX(file->made_by, 0),
				       file->user, file->fd);
		for (uint32_t i = 0; r <= 0 && i < n; i++)
			unwind_names_give(remote->names, remote->name_numbers[i], NULL);
	}
	return r;
}

static void remote_arm(struct unwind_remote *remote, int r)
{
	int64_t next_ns = unwind_next_ns(remote->u);

	/* What could not be asked, and users whose credit is used. */
	if (r < 0 || remote->wanted_n > 0)
		next_ns = MIN(next_ns, clock_mono_ns() + RETRY_NS);
	if (next_ns == INT64_MAX)
		return;
	sd_event_source_set_time(remote->timer, (uint64_t)next_ns / NSEC_PER_USEC + 1);
	sd_event_source_set_enabled(remote->timer, SD_EVENT_ONESHOT);
}

void remote_pump(struct unwind *u)
{
	struct unwind_remote *remote = u->remote;
	int r = 0;

	if (remote->pumping || remote->asked != ASKED_NOTHING)
		return;
	remote->pumping = true; /* a helper that cannot be started is lost at once */
	/* Names wait for files, and files for lists: so none of them waits for ever. */
	if (r == 0)
		r = ask_wanted(remote);
	if (r == 0)
		r = ask_again(remote);
	if (r == 0)
		r = ask_file(remote);
	if (r == 0)
		r = ask_names(remote);
	remote->pumping = false;
	if (r <= 0)
		remote_arm(remote, r);
}

/* ---- answers ---- */

static uint32_t file_of_area(struct unwind_remote *remote, const struct unwind_told_area *area)
{
	pid_t pid = (pid_t)remote->id.pid;
	bool made = area->ino == 0;
	const struct file listed = {
		.dev = made ? 0 : area->dev,
		.ino = area->ino,
		.stamp = made ? 0 : area->stamp,
		.fd = -1,
		.state = made ? FILE_MADE : FILE_QUEUED,
		.none = made ? TRACE_NATIVE_NO_FILE : TRACE_NATIVE_PENDING,
		.made_by = made ? pid : 0,
		.mapped_by = pid,
		.user = remote->listing.user,
	};

	return file_get_listed(remote->u, &listed);
}

static int told_areas(struct unwind_remote *remote, const void *from, uint32_t n, size_t bytes)
{
	struct listing *listing = &remote->listing;
	struct unwind_told_area area;

	if (bytes != n * sizeof(area) || n > UNWIND_AREAS_OF_PROCESS - listing->n)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		struct mapping mapping = { .none = TRACE_NATIVE_NO_FILE };
		uint64_t before = listing->n ? listing->areas[listing->n - 1].end : 0;

		memcpy(&area, (const char *)from + i * sizeof(area), sizeof(area));
		if (area.start < before || area.end <= area.start)
			return -EBADMSG;
		if (area.ino ? area.none == 0 : area.dev == 1) {
			mapping.file = file_of_area(remote, &area);
			mapping.bias = area.ino ? area.bias : 0;
			if (mapping.file == 0)
				mapping.none = TRACE_NATIVE_CROWDED;
		}
		listing_add(listing, area.start, area.end, &mapping);
	}
	return 0;
}

static int told_file(struct unwind_remote *remote, const void *from, size_t bytes, int *fd)
{
	struct file *file = &remote->u->files[remote->file];
	struct unwind_told_file told;
	int r = 0;

	if (bytes != sizeof(told) || *fd < 0 || remote->told)
		return -EBADMSG;
	memcpy(&told, from, sizeof(told));
	if (told.rows > UNWIND_ROWS || told.rules > UNWIND_RULES || (told.rows > 0) != (told.rules > 0))
		return -EBADMSG;
	told.name[sizeof(told.name) - 1] = '\0';
	remote->told = true;
	/* It was told before where its rows had to make room for others'. */
	closep(&file->fd);
	free(file->path);
	file->fd = TAKE_FD(*fd);
	file->path = strdup(told.name);
	file->base = told.base;
	if (told.rows == 0)
		return 0;
	remote->rules_n = told.rules;
	remote->rules = calloc(told.rules, sizeof(*remote->rules));
	remote->numbers = calloc(told.rules, sizeof(*remote->numbers));
	r = remote->rules && remote->numbers ? rows_room(remote->u, file, told.rows) : -ENOMEM;
	remote->error = r;
	return 0;
}

/* What the kernel side knows. */
static bool is_known(const struct unwind_rule *rule)
{
	return rule->kind <= UNWIND_SIGNAL && rule->fp_saved <= UNWIND_AT_FP &&
	       rule->ra_saved <= UNWIND_AT_FP && rule->pad == 0;
}

static int told_rules(struct unwind_remote *remote, const void *from, uint32_t n, size_t bytes)
{
	if (remote->error < 0)
		return 0;
	/* None, also when all are there: they are taken once. */
	if (n == 0 || n > remote->rules_n - remote->rules_got || bytes != n * sizeof(*remote->rules))
		return -EBADMSG;
	memcpy(&remote->rules[remote->rules_got], from, bytes);
	for (uint32_t i = 0; i < n; i++)
		if (!is_known(&remote->rules[remote->rules_got + i]))
			return -EBADMSG;
	remote->rules_got += n;
	if (remote->rules_got == remote->rules_n)
		remote->error = file_take_rules(remote->u, &remote->u->files[remote->file], remote->rules,
						remote->rules_n, remote->numbers);
	return 0;
}

static int told_rows(struct unwind_remote *remote, const void *from, uint32_t n, size_t bytes)
{
	const struct file *file = &remote->u->files[remote->file];
	struct unwind_row row;

	if (remote->error < 0)
		return 0;
	if (bytes != n * sizeof(row) || n > file->rows - remote->rows_got || remote->rules_n == 0 ||
	    remote->rules_got < remote->rules_n)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		memcpy(&row, (const char *)from + i * sizeof(row), sizeof(row));
		if (row.rule >= remote->rules_n)
			return -EBADMSG;
		row.rule = remote->numbers[row.rule];
		remote->u->rows[file->first + remote->rows_got++] = row;
	}
	return 0;
}

static int told_name(struct unwind_remote *remote, const char *text, uint32_t i, size_t bytes)
{
	if (remote->dropped)
		return 0;
	if (i >= remote->names_n || bytes == 0 || text[bytes - 1] != '\0')
		return -EBADMSG;
	unwind_names_give(remote->names, remote->name_numbers[i], text);
	return 0;
}

/* ---- ends of answers ---- */

static void list_over(struct unwind_remote *remote, int r)
{
	pid_t pid = (pid_t)remote->id.pid;
	struct process_id now;

	if (r == 0 && !remote->dropped && proc_process_id("/proc", remote->id.pid, &now) == 0 &&
	    process_id_equal(remote->id, now))
		space_listed(remote->u, pid, &remote->listing);
	listing_done(&remote->listing);
	space_was_read(remote->u, pid, remote->number, remote->asked_ns);
}

/* The process has it no longer, or cannot be looked at: others may have it. */
static bool is_of_process(int r)
{
	return r == -ESRCH || r == -ENOENT || r == -ESTALE || r == -EACCES || r == -EPERM;
}

static void file_over(struct unwind_remote *remote, int r)
{
	struct unwind *u = remote->u;
	struct file *file = &u->files[remote->file];

	u->making_of = 0;
	if (!remote->told && is_of_process(r) && ++file->tries < TRIES) {
		file->mapped_by = 0;
		file->failed_by = file->asked;
	} else {
		if (r == 0)
			r = remote->error;
		if (r == 0 && remote->rows_got < file->rows)
			r = -ENOBUFS; /* it ended early */
		if (r < 0)
			rows_give(u, file);
		file_is_made(file, r);
		/* Where the helper was lost there are rules, and nothing is guessed. */
		if (!remote->told || r == -EIO)
			file->none = r == -EIO ? TRACE_NATIVE_FULL : TRACE_NATIVE_NO_FILE;
		file_publish(u, remote->file);
	}
	free(TAKE_PTR(remote->rules));
	free(TAKE_PTR(remote->numbers));
}

static void names_over(struct unwind_remote *remote)
{
	for (uint32_t i = 0; i < remote->names_n; i++)
		unwind_names_give(remote->names, remote->name_numbers[i], NULL);
}

/* @r: 0, or why the answer is not whole; -EIO: the helper was lost over it. */
static void question_over(struct unwind_remote *remote, int r)
{
	enum asked asked = remote->asked;

	remote->asked = ASKED_NOTHING;
	spend(remote, SLOWER * (r == -EIO ? CREDIT_NS : clock_mono_ns() - remote->asked_ns));
	if (r == -EIO)
		spend(remote, PENALTY_NS);
	if (asked == ASKED_LIST)
		list_over(remote, r);
	else if (asked == ASKED_FILE)
		file_over(remote, r);
	else if (asked == ASKED_NAMES)
		names_over(remote);
	remote_pump(remote->u);
}

static int remote_take(struct unwind_remote *remote, const struct unwind_told_head *head, const void *from,
		       size_t bytes, int *fd)
{
	/* Who says that it takes longer has not for ever. */
	if (++remote->messages > MESSAGES || clock_mono_ns() - remote->asked_ns > ANSWER_NS)
		return -EBADMSG;
	if (remote->asked == ASKED_LIST && head->kind == UNWIND_TOLD_AREAS)
		return told_areas(remote, from, head->n, bytes);
	if (remote->asked == ASKED_FILE && head->kind == UNWIND_TOLD_FILE)
		return told_file(remote, from, bytes, fd);
	if (remote->asked == ASKED_FILE && head->kind == UNWIND_TOLD_RULES)
		return told_rules(remote, from, head->n, bytes);
	if (remote->asked == ASKED_FILE && head->kind == UNWIND_TOLD_ROWS)
		return told_rows(remote, from, head->n, bytes);
	if (remote->asked == ASKED_NAMES && head->kind == UNWIND_TOLD_NAME)
		return told_name(remote, from, head->n, bytes);
	return remote->asked != ASKED_NOTHING && head->kind == UNWIND_TOLD_ALIVE ? 0 : -EBADMSG;
}

static void remote_answered(const void *message, size_t n, int fd, void *userdata)
{
	struct unwind_remote *remote = userdata;
	struct unwind_told_head head;
	int r = -EBADMSG;

	if (n >= sizeof(head) && remote->asked != ASKED_NOTHING) {
		memcpy(&head, message, sizeof(head));
		if (head.kind == UNWIND_TOLD_END) {
			closep(&fd);
			helper_deadline(remote->helper, 0);
			question_over(remote, MIN(head.error, 0) == -EIO ? -EBADMSG : MIN(head.error, 0));
			return;
		}
		r = remote_take(remote, &head, (const char *)message + sizeof(head), n - sizeof(head), &fd);
	}
	closep(&fd);
	if (r < 0)
		helper_reject(remote->helper);
	else
		helper_deadline(remote->helper, PATIENCE_NS);
}

static void remote_lost(_unused_ bool hung, void *userdata)
{
	struct unwind_remote *remote = userdata;

	if (remote->asked != ASKED_NOTHING)
		question_over(remote, -EIO);
}

/* ---- start and end ---- */

static int remote_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	remote_pump(((struct unwind_remote *)userdata)->u);
	return 0;
}

int unwind_set_reader(struct unwind *u, sd_event *event, const char *program)
{
	const struct helper_config config = {
		.program = program,
		.role = "unwind",
		.capabilities = UNWIND_READER_CAPABILITIES,
		.max_stuck = 2,
		.idle_ns = 10 * NSEC_PER_SEC,
	};
	static const struct helper_ops ops = { .answer = remote_answered, .lost = remote_lost };
	struct unwind_remote *remote = calloc(1, sizeof(*remote));
	int r;

	if (!remote)
		return -ENOMEM;
	u->remote = remote;
	remote->u = u;
	r = helper_new(event, &config, &ops, remote, &remote->helper);
	if (r == 0)
		r = sd_event_add_time(event, &remote->timer, CLOCK_MONOTONIC, UINT64_MAX, 0, remote_timer,
				      remote);
	if (r >= 0)
		r = sd_event_source_set_enabled(remote->timer, SD_EVENT_OFF);
	return MIN(r, 0);
}

void unwind_set_names(struct unwind *u, struct unwind_names *names)
{
	if (u->remote && u->remote->asked == ASKED_NAMES) {
		u->remote->dropped = true;
		u->remote->names_n = 0;
	}
	if (u->remote)
		u->remote->names = names;
}

bool unwind_reader_stats(const struct unwind *u, struct helper_stats *ret_stats)
{
	if (u->remote)
		helper_stats(u->remote->helper, ret_stats);
	return u->remote;
}

void remote_free(struct unwind_remote *remote)
{
	if (!remote)
		return;
	helper_free(remote->helper);
	sd_event_source_unref(remote->timer);
	if (remote->asked == ASKED_LIST)
		listing_done(&remote->listing);
	free(remote->rules);
	free(remote->numbers);
	free(remote);
}
