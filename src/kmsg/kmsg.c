// SPDX-License-Identifier: Apache-2.0
/*
 * Reading the log. A read from /dev/kmsg returns one record, and the device can be polled. A FIFO and a
 * regular file (for tests and copies of logs) are split into lines; a file cannot be polled, so it is read
 * once a second.
 *
 * Records from before the start have their own time stamps, from a kernel clock that may differ from ours by
 * seconds after weeks. New records get the current time.
 */
#include "kmsg/kmsg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/raised.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"

enum {
	RECORD_MAX = 8192 + 1024, /* the kernel's own limit of a record is 8192 */
	/* the rest is read in the next iteration, so that other event sources are served */
	RECORDS_PER_WAKEUP = 128,
};
#define FILE_POLL_USEC (1 * USEC_PER_SEC)

enum kind { KIND_DEVICE, KIND_FIFO, KIND_FILE };

struct kmsg {
	int fd;
	enum kind kind;
	bool live; /* all records that existed at the start have been read */
	sd_event_source *source;
	kmsg_xid_fn *on_xid;
	void *userdata;
	struct kmsg_stats stats;
	size_t filled; /* bytes in buffer: lines that are still incomplete */
	bool skipping; /* the current line is longer than the buffer */
	char buffer[RECORD_MAX];
};

static void take_record(struct kmsg *kmsg, const char *record, size_t length)
{
	struct kmsg_xid xid;
	int r = kmsg_parse(record, length, &xid);

	if (r == -EBADMSG)
		kmsg->stats.unreadable++;
	if (r < 0)
		return;
	if (kmsg->live)
		xid.boot_ns = clock_boot_ns();
	kmsg->stats.xids++;
	kmsg->stats.sequence = xid.sequence;
	kmsg->on_xid(&xid, kmsg->userdata);
}

/* Processes the complete lines of the buffer and moves the rest to its front. */
static void take_lines(struct kmsg *kmsg)
{
	char *line = kmsg->buffer, *end = kmsg->buffer + kmsg->filled, *newline;

	while ((newline = memchr(line, '\n', (size_t)(end - line)))) {
		if (!kmsg->skipping)
			take_record(kmsg, line, (size_t)(newline - line));
		kmsg->skipping = false;
		line = newline + 1;
	}
	kmsg->filled = (size_t)(end - line);
	if (kmsg->filled == sizeof(kmsg->buffer)) {
		kmsg->skipping = true;
		kmsg->filled = 0;
	}
	memmove(kmsg->buffer, line, kmsg->filled);
}

/* Reads once. 1: there may be more; 0: nothing available; -errno: the log cannot be read any more. */
static int read_some(struct kmsg *kmsg)
{
	ssize_t n = read(kmsg->fd, kmsg->buffer + kmsg->filled, sizeof(kmsg->buffer) - kmsg->filled);

	if (n < 0) {
		switch (errno) {
		case EINTR:
			return 1;
		case EAGAIN:
			kmsg->live = true;
			return 0;
		/* records were overwritten before we read them; the next read returns the oldest */
		case EPIPE:
			kmsg->stats.overruns++;
			return 1;
		case EINVAL: /* the record is longer than the buffer: skipped */
			kmsg->stats.unreadable++;
			return 1;
		default:
			return -errno;
		}
	}
	if (n == 0) {
		/*
		 * The log never ends, but a terminal given in its place may report end of file repeatedly
		 * after a hang-up.
		 */
		if (kmsg->kind == KIND_DEVICE)
			return -EIO;
		kmsg->live = true;
		return 0;
	}
	if (kmsg->kind == KIND_DEVICE) {
		take_record(kmsg, kmsg->buffer, (size_t)n);
	} else {
		kmsg->filled += (size_t)n;
		take_lines(kmsg);
	}
	return 1;
}

static int read_burst(struct kmsg *kmsg)
{
	int r = 1;

	for (unsigned i = 0; i < RECORDS_PER_WAKEUP && r > 0; i++)
		r = read_some(kmsg);
	return r;
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct kmsg *kmsg = userdata;

	(void)fd;
	/* A log that fails permanently is closed; otherwise sd-event would call us in a busy loop. */
	if (read_burst(kmsg) < 0 || (revents & (EPOLLERR | EPOLLHUP) && !(revents & EPOLLIN)))
		kmsg->stats.failed = true;
	if (kmsg->stats.failed)
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct kmsg *kmsg = userdata;
	int r = read_burst(kmsg);

	if (r < 0) {
		kmsg->stats.failed = true;
		return 0;
	}
	sd_event_source_set_time(source, r > 0 ? usec : usec + FILE_POLL_USEC);
	sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	return 0;
}

int kmsg_open(const char *path, int flags)
{
	if (STRV_EQ(path, "/dev/kmsg")) {
		WITH_CAPABILITIES;

		return open(path, flags);
	}
	return open(path, flags);
}

/*
 * Opened for writing too, a FIFO never reports end of file; without write permission it ends with its last
 * writer.
 */
static int open_log(const char *path, enum kind *ret_kind)
{
	_cleanup_close_ int fd = kmsg_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISFIFO(st.st_mode)) {
		int both = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);

		if (both >= 0) {
			close(fd);
			fd = both;
		}
	}
	*ret_kind = S_ISFIFO(st.st_mode) ? KIND_FIFO : S_ISREG(st.st_mode) ? KIND_FILE : KIND_DEVICE;
	return TAKE_FD(fd);
}

int kmsg_new(sd_event *event, const char *path, kmsg_xid_fn *on_xid, void *userdata, struct kmsg **ret_kmsg)
{
	_cleanup_(kmsg_freep) struct kmsg *kmsg = calloc(1, sizeof(*kmsg));
	int r;

	if (!kmsg)
		return -ENOMEM;
	kmsg->fd = open_log(path ? path : "/dev/kmsg", &kmsg->kind);
	if (kmsg->fd < 0)
		return kmsg->fd;
	kmsg->on_xid = on_xid;
	kmsg->userdata = userdata;
	kmsg->live = kmsg->kind == KIND_FIFO;
	if (kmsg->kind == KIND_FILE)
		r = sd_event_add_time_relative(event, &kmsg->source, CLOCK_BOOTTIME, 0, 0, on_time, kmsg);
	else
		r = sd_event_add_io(event, &kmsg->source, kmsg->fd, EPOLLIN, on_readable, kmsg);
	if (r < 0)
		return r;
	*ret_kmsg = TAKE_PTR(kmsg);
	return 0;
}

void kmsg_free(struct kmsg *kmsg)
{
	if (!kmsg)
		return;
	sd_event_source_disable_unref(kmsg->source);
	if (kmsg->fd >= 0)
		close(kmsg->fd);
	free(kmsg);
}

void kmsg_stats(const struct kmsg *kmsg, struct kmsg_stats *ret_stats)
{
	*ret_stats = kmsg->stats;
}
