// SPDX-License-Identifier: Apache-2.0
#include "agent/record/timelines.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/answers.h"
#include "agent/record/record.h"
#include "agent/record/record_folder.h"
#include "agent/record/record_page.h"
#include "base/clock.h"
#include "base/fd.h"
#include "web/file_arguments.h"

#define STUCK_NS (10 * NSEC_PER_SEC)
enum { PAGE_LIST, PAGE_PART };

struct timelines {
	char *path;
	struct answers *answers;
};

/* Names of the time sort as the times do. */
struct timeline_file {
	char name[NAME_MAX + 1];
	uint64_t bytes;
	int64_t real_ns; /* when it was written to last */
};

/* ---- the thread: the folder ---- */

/* -ENOENT: the folder or the file is not there, or it is no file. */
static int open_timeline(const char *path, const char *name, struct stat *ret_st)
{
	_cleanup_close_ int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_close_ int fd = -1;

	if (folder < 0)
		return -errno;
	if (!record_is_file(name))
		return -ENOENT;
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, ret_st) < 0)
		return -errno;
	return S_ISREG(ret_st->st_mode) ? TAKE_FD(fd) : -ENOENT;
}

static int newest_first(const void *a, const void *b)
{
	const struct timeline_file *x = a, *y = b;

	return strcmp(y->name, x->name);
}

/* Adds it where there is room, or in place of the oldest. Returns whether one was left out. */
static bool keep_newest(struct timeline_file *files, unsigned *n, const struct timeline_file *file)
{
	if (*n < TIMELINE_FILES) {
		files[(*n)++] = *file;
		return false;
	}
	qsort(files, *n, sizeof(*files), newest_first);
	if (newest_first(file, &files[*n - 1]) < 0)
		files[*n - 1] = *file;
	return true;
}

/* -errno; a folder that is not there has no files. */
static int list_files(const char *path, struct timeline_file *files, unsigned *ret_n, unsigned *ret_left_out)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	*ret_n = *ret_left_out = 0;
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while ((entry = readdir(dir))) {
		struct timeline_file file = { 0 };
		struct stat st;

		if (!record_is_file(entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		snprintf(file.name, sizeof(file.name), "%s", entry->d_name);
		file.bytes = (uint64_t)st.st_size;
		file.real_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
		*ret_left_out += keep_newest(files, ret_n, &file);
	}
	closedir(dir);
	qsort(files, *ret_n, sizeof(*files), newest_first);
	return 0;
}

static void put_files(const struct timeline_file *files, unsigned n, unsigned left_out, struct strbuf *out)
{
	strbuf_addf(out, "\"files_left_out\":%u,\"files\":[", left_out);
	for (unsigned i = 0; i < n; i++) {
		char time[32];

		format_rfc3339(files[i].real_ns, time);
		/* Names of these files have no character that JSON would have escaped. */
		strbuf_addf(out, "%s{\"file\":\"%s\",\"bytes\":%llu,\"modified\":\"%s\"}", i ? "," : "",
			    files[i].name, (unsigned long long)files[i].bytes, time);
	}
	strbuf_adds(out, "]");
}

static void timeline_refuse(struct answer *answer, unsigned status, const char *what, int error)
{
	strbuf_reset(&answer->body);
	answer->status = status;
	strbuf_addf(&answer->body, "%u %s: %s\n", status, what, strerror(-error));
}

/* What is in the document beside the state of the recording, which is of now. */
static void make_list(const struct timelines *timelines, struct answer *answer)
{
	_cleanup_free_ struct timeline_file *files = calloc(TIMELINE_FILES, sizeof(*files));
	unsigned n, left_out;
	int r = files ? list_files(timelines->path, files, &n, &left_out) : -ENOMEM;

	if (r < 0)
		timeline_refuse(answer, 503, "the folder of timelines cannot be read", r);
	else
		put_files(files, n, left_out, &answer->body);
}

static int read_part(int fd, int64_t at, struct strbuf *out)
{
	_cleanup_free_ char *part = malloc(TIMELINE_PART);
	size_t n = 0;

	if (!part)
		return -ENOMEM;
	while (n < TIMELINE_PART) {
		ssize_t got = pread(fd, part + n, TIMELINE_PART - n, at + (off_t)n);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0)
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	strbuf_add(out, part, n);
	return out->failed ? -ENOMEM : 0;
}

static void make_part(const struct timelines *timelines, const struct question *question,
		      struct answer *answer)
{
	const int64_t at = question->numbers[TIMELINE_AT];
	struct stat st;
	_cleanup_close_ int fd = open_timeline(timelines->path, question->text, &st);
	int r;

	if (fd < 0) {
		timeline_refuse(answer, 404, "there is no such timeline", fd);
		return;
	}
	if (at < 0 && st.st_size > TIMELINE_PART) {
		answer->status = 413;
		strbuf_addf(&answer->body, "413 content too large: ask for parts of %d bytes: &at=0\n",
			    TIMELINE_PART);
		return;
	}
	r = read_part(fd, MAX(at, INT64_C(0)), &answer->body);
	if (r < 0)
		timeline_refuse(answer, 503, "the timeline cannot be read", r);
	else
		answer->content_type = "application/octet-stream";
}

static void timelines_make(const struct question *question, struct answer *answer, void *userdata)
{
	if (question->page == PAGE_LIST)
		make_list(userdata, answer);
	else
		make_part(userdata, question, answer);
}

/* ---- who asks ---- */

static int put_state(const struct timelines *timelines, struct record *record, const struct strbuf *list,
		     struct strbuf *out)
{
	bool possible = record && record_is_possible(record);
	json_t *state = json_pack("{s:s, s:s, s:b, s:o}", "schema", "gpusonde/timelines/v1", "directory",
				  timelines->path, "possible", possible, "recording",
				  possible ? record_page_status(record) : json_null());
	char *text = state ? json_dumps(state, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	json_decref(state);
	if (!text)
		return -ENOMEM;
	strbuf_add(out, text, strlen(text) - 1); /* without the brace at its end */
	strbuf_addf(out, ",%s}\n", list->data);
	free(text);
	return 0;
}

int timelines_page(struct timelines *timelines, struct record *record, const struct http_request *request,
		   struct http_reply *reply)
{
	struct question question = question_of(PAGE_LIST, 0, request);
	struct http_reply list = { .status = 200, .content_type = reply->content_type };
	int r;

	strbuf_init(&list.body, 0);
	r = answers_reply(timelines->answers, &question, &list);
	if (r == 0 && list.status != 200) {
		reply->status = list.status;
		reply->content_type = list.content_type;
		strbuf_add(&reply->body, list.body.data, list.body.len);
	} else if (r == 0) {
		reply->content_type = "application/json";
		r = put_state(timelines, record, &list.body, &reply->body);
	}
	strbuf_done(&list.body);
	return r;
}

int timeline_page(struct timelines *timelines, const struct http_request *request, struct http_reply *reply)
{
	struct question question = question_of(PAGE_PART, 0, request);

	return answers_reply(timelines->answers, &question, reply);
}

/* ---- life ---- */

int timelines_new(const char *path, struct timelines **ret_timelines)
{
	_cleanup_(timelines_freep) struct timelines *timelines = calloc(1, sizeof(*timelines));
	const struct answers_config config = {
		.name = "timelines",
		.stuck = "the folder of timelines cannot be read: does the disk hang?",
		.slow_ns = STUCK_NS,
		.make = timelines_make,
		.userdata = timelines,
	};
	int r;

	if (!timelines)
		return -ENOMEM;
	timelines->path = strdup(path);
	r = timelines->path ? answers_new(&config, &timelines->answers) : -ENOMEM;
	if (r == 0)
		*ret_timelines = TAKE_PTR(timelines);
	return r;
}

void timelines_free(struct timelines *timelines)
{
	if (!timelines || !answers_free(timelines->answers))
		return;
	free(timelines->path);
	free(timelines);
}
