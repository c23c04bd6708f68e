// SPDX-License-Identifier: Apache-2.0
#include "needs.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "kmsg/kmsg.h"

enum { SEEN_MAX = 1024 };

struct lab {
	sd_event *event;
	struct kmsg *kmsg;
	char path[64];
	unsigned seen;
	struct kmsg_xid xids[SEEN_MAX];
};

static void on_xid(const struct kmsg_xid *xid, void *userdata)
{
	struct lab *lab = userdata;

	assert_true(lab->seen < SEEN_MAX);
	lab->xids[lab->seen++] = *xid;
}

static int setup(void **state)
{
	struct lab *lab = calloc(1, sizeof(*lab));
	int fd;

	snprintf(lab->path, sizeof(lab->path), "/tmp/gpusonde-test-XXXXXX");
	fd = mkstemp(lab->path);
	if (fd < 0 || close(fd) < 0 || sd_event_new(&lab->event) < 0)
		return -1;
	*state = lab;
	return 0;
}

static int teardown(void **state)
{
	struct lab *lab = *state;

	kmsg_free(lab->kmsg);
	sd_event_unref(lab->event);
	unlink(lab->path);
	free(lab);
	return 0;
}

static void append(struct lab *lab, const char *text)
{
	_cleanup_close_ int fd = open(lab->path, O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), strlen(text));
}

static void start(struct lab *lab)
{
	assert_int_equal(kmsg_new(lab->event, lab->path, on_xid, lab, &lab->kmsg), 0);
}

/* Runs the loop until so many were seen; a file is looked at once a second. */
static void run_until(struct lab *lab, unsigned seen)
{
	for (unsigned i = 0; i < 100 && lab->seen < seen; i++)
		assert_true(sd_event_run(lab->event, 100 * 1000) >= 0);
	assert_int_equal(lab->seen, seen);
}

/* Runs the loop until nothing is left to do at once. */
static void drain(struct lab *lab)
{
	while (sd_event_run(lab->event, 0) > 0)
		;
}

static void a_file_is_read_and_followed(void **state)
{
	struct lab *lab = *state;
	struct kmsg_stats stats;
	int64_t before;

	append(lab, "4,1,5000000,-;NVRM: Xid (PCI:0000:01:00): 13, a\n"
		    "6,2,5000001,-;usb 1-1: new device\n"
		    " SUBSYSTEM=usb\n"
		    "4,3,5000002,-;NVRM: Xid (broken\n"
		    "4,4,5000003,-;NVRM: Xid (PCI:0000:01:00): 31, b\n"
		    "4,5,5000004,-;NVRM: Xid (PCI:0000:01:00): 43");
	start(lab);
	run_until(lab, 2);
	assert_int_equal(lab->xids[0].code, 13);
	assert_int_equal(lab->xids[0].boot_ns, INT64_C(5000000000)); /* its own time: it was there before */
	assert_int_equal(lab->xids[1].sequence, 4);
	before = clock_boot_ns();
	append(lab, ", c\n"); /* the half line is whole now */
	run_until(lab, 3);
	assert_int_equal(lab->xids[2].code, 43);
	assert_string_equal(lab->xids[2].text, "c");
	assert_true(lab->xids[2].boot_ns >= before); /* and happened while we looked */
	kmsg_stats(lab->kmsg, &stats);
	assert_int_equal(stats.xids, 3);
	assert_int_equal(stats.unreadable, 1);
	assert_int_equal(stats.sequence, 5);
	assert_false(stats.failed);
}

static void a_fifo_outlives_its_writers(void **state)
{
	struct lab *lab = *state;
	struct kmsg_stats stats;

	unlink(lab->path);
	assert_int_equal(mkfifo(lab->path, 0600), 0);
	start(lab);
	for (unsigned i = 0; i < 3; i++) {
		append(lab, "4,1,1,-;NVRM: Xid (PCI:0000:01:00): 79, gone\n");
		run_until(lab, i + 1);
		drain(lab);
	}
	kmsg_stats(lab->kmsg, &stats);
	assert_false(stats.failed);
	assert_true(lab->xids[0].boot_ns > NSEC_PER_USEC); /* not the record's microsecond */
}

static void a_burst_is_bounded_and_nothing_is_lost(void **state)
{
	struct lab *lab = *state;
	unsigned first;

	for (unsigned i = 0; i < 900; i++) {
		char line[9000];
		/* Long ones, so that a buffer holds but one. */
		int n = snprintf(line, sizeof(line), "4,%u,1,-;NVRM: Xid (PCI:0000:01:00): 31, %04500d\n", i,
				 0);

		assert_true(n > 0);
		append(lab, line);
	}
	start(lab);
	assert_true(sd_event_run(lab->event, UINT64_MAX) > 0);
	first = lab->seen;
	assert_true(first > 0 && first < 900);
	run_until(lab, 900);
	for (unsigned i = 0; i < 900; i++)
		assert_int_equal(lab->xids[i].sequence, i);
}

static void a_line_without_end_is_skipped(void **state)
{
	struct lab *lab = *state;
	char *huge = malloc(50001);

	memset(huge, 'x', 50000);
	huge[50000] = '\0';
	append(lab, "4,1,1,-;NVRM: Xid (PCI:0000:01:00): 1, a\n4,2,1,-;NVRM: Xid (PCI:0000:01:00): 2, ");
	append(lab, huge);
	append(lab, "4,3,1,-;NVRM: Xid (PCI:0000:01:00): 3, within that line\n"
		    "4,4,1,-;NVRM: Xid (PCI:0000:01:00): 4, b\n");
	free(huge);
	start(lab);
	run_until(lab, 2);
	assert_int_equal(lab->xids[0].code, 1);
	assert_int_equal(lab->xids[1].code, 4);
}

static void what_cannot_be_opened(void **state)
{
	struct lab *lab = *state;
	struct kmsg *kmsg = NULL;

	assert_int_equal(kmsg_new(lab->event, "/nowhere", on_xid, lab, &kmsg), -ENOENT);
	assert_null(kmsg);
	kmsg_free(NULL);
}

/* Where it may be read, whatever it holds: the loop comes to rest and nothing fails. */
static void the_real_log(void **state)
{
	struct lab *lab = *state;
	struct kmsg_stats stats;
	int r = kmsg_new(lab->event, NULL, on_xid, lab, &lab->kmsg);

	if (r == -EPERM || r == -EACCES || r == -ENOENT)
		need_unmet("/dev/kmsg cannot be read here");
	assert_int_equal(r, 0);
	drain(lab);
	kmsg_stats(lab->kmsg, &stats);
	assert_false(stats.failed);
	assert_int_equal(stats.xids, lab->seen);
}

int main(void)
{
#define CASE(name_) cmocka_unit_test_setup_teardown(name_, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_file_is_read_and_followed),
		CASE(a_fifo_outlives_its_writers),
		CASE(a_burst_is_bounded_and_nothing_is_lost),
		CASE(a_line_without_end_is_skipped),
		CASE(what_cannot_be_opened),
		CASE(the_real_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
