// SPDX-License-Identifier: Apache-2.0
/* What of a folder of timelines is shown, and parts of its files; others put what they like there. */
#include "test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/record/timelines.h"
#include "base/clock.h"
#include "web/file_arguments.h"

#define FIRST "timeline-20260101T000000.000Z-record.000001.pftrace"
#define SECOND "timeline-20260102T000000.000Z-record.000001.pftrace"

struct folder {
	char path[64];
	struct timelines *timelines;
};

static void put_file(const struct folder *folder, const char *name, size_t bytes)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	if (bytes > 0)
		assert_int_equal(pwrite(fd, "x", 1, (off_t)bytes - 1), 1);
	close(fd);
}

static void begin(struct folder *folder)
{
	strcpy(folder->path, "/tmp/gpusonde-timelines-XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	assert_int_equal(timelines_new(folder->path, &folder->timelines), 0);
}

static void end(struct folder *folder)
{
	char command[128];

	timelines_free(folder->timelines);
	snprintf(command, sizeof(command), "rm -r %s", folder->path);
	assert_int_equal(system(command), 0);
}

/* A part of @file from @at on, or with NULL the list. Until it is no 202. The caller frees the body. */
static unsigned ask(struct folder *folder, const char *file, int64_t at, struct strbuf *ret_body)
{
	const int64_t end_ns = clock_mono_ns() + 60 * NSEC_PER_SEC;
	struct http_request request = { .method = HTTP_GET };
	struct http_reply reply;

	request.numbers[TIMELINE_AT] = at;
	snprintf(request.text, sizeof(request.text), "%s", file ? file : "");
	strbuf_init(ret_body, 0);
	do {
		reply = (struct http_reply){ .status = 200 };
		strbuf_done(ret_body);
		strbuf_init(&reply.body, 0);
		assert_int_equal(file ? timeline_page(folder->timelines, &request, &reply) :
					timelines_page(folder->timelines, NULL, &request, &reply),
				 0);
		*ret_body = reply.body;
	} while (reply.status == 202 && clock_mono_ns() < end_ns);
	return reply.status;
}

static unsigned status_of(struct folder *folder, const char *file, int64_t at, size_t bytes)
{
	struct strbuf body;
	unsigned status = ask(folder, file, at, &body);

	if (status == 200)
		assert_int_equal(body.len, bytes);
	strbuf_done(&body);
	return status;
}

static void test_the_list(_unused_ void **state)
{
	struct folder folder;
	struct strbuf body;

	begin(&folder);
	put_file(&folder, FIRST, 5);
	put_file(&folder, SECOND, 7);
	put_file(&folder, "another", 1);
	put_file(&folder, "timeline-\"x", 1);
	assert_int_equal(ask(&folder, NULL, 0, &body), 200);
	assert_non_null(strstr(body.data,
			       "\"possible\":false,\"recording\":null,\"files_left_out\":0,\"files\":[{"
			       "\"file\":\"" SECOND "\",\"bytes\":7,"));
	assert_non_null(strstr(body.data, "},{\"file\":\"" FIRST "\",\"bytes\":5,"));
	assert_null(strstr(body.data, "another"));
	assert_null(strstr(body.data, "\\\"x"));
	strbuf_done(&body);
	end(&folder);
}

static void test_no_folder(_unused_ void **state)
{
	struct folder folder = { 0 };
	struct strbuf body;

	assert_int_equal(timelines_new("/nowhere/at/all", &folder.timelines), 0);
	assert_int_equal(ask(&folder, NULL, 0, &body), 200);
	assert_non_null(strstr(body.data, "\"files\":[]"));
	strbuf_done(&body);
	assert_int_equal(status_of(&folder, FIRST, 0, 0), 404);
	timelines_free(folder.timelines);
}

static void test_parts(_unused_ void **state)
{
	struct folder folder;

	begin(&folder);
	put_file(&folder, FIRST, 5);
	put_file(&folder, SECOND, TIMELINE_PART + 3);
	assert_int_equal(status_of(&folder, FIRST, -1, 5), 200);
	assert_int_equal(status_of(&folder, FIRST, 4, 1), 200);
	assert_int_equal(status_of(&folder, FIRST, 5, 0), 200);
	assert_int_equal(status_of(&folder, SECOND, -1, 0), 413);
	assert_int_equal(status_of(&folder, SECOND, 0, TIMELINE_PART), 200);
	assert_int_equal(status_of(&folder, SECOND, TIMELINE_PART, 3), 200);
	end(&folder);
}

/* Neither other files nor what only looks like one. */
static void test_what_is_no_timeline(_unused_ void **state)
{
	struct folder folder;
	char path[256];

	begin(&folder);
	put_file(&folder, "another", 1);
	snprintf(path, sizeof(path), "%s/timeline-link", folder.path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	snprintf(path, sizeof(path), "%s/timeline-pipe", folder.path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(status_of(&folder, "another", 0, 0), 404);
	assert_int_equal(status_of(&folder, "timeline-link", 0, 0), 404);
	assert_int_equal(status_of(&folder, "timeline-pipe", 0, 0), 404);
	assert_int_equal(status_of(&folder, "timeline-none", 0, 0), 404);
	assert_int_equal(status_of(&folder, "timeline-/../another", 0, 0), 404);
	end(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_list),
		cmocka_unit_test(test_no_folder),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_what_is_no_timeline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
