// SPDX-License-Identifier: Apache-2.0
/*
 * Reading the log. /dev/kmsg gives one record a read and polls; a FIFO and a regular file (for tests and for
 * logs that somebody copied) are split at line ends, and a file, which cannot be polled, is looked at once a
 * second.
 *
 * Records from before we looked carry their own time, which the kernel takes from a clock that drifts against
 * ours by seconds in weeks. Those that come while we look happened now.
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

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"

enum {
	RECORD_MAX = 8192 + 1024, /* the kernel's own limit of a record is 8192 */
	RECORDS_PER_WAKEUP = 128, /* then others get their turn; the rest is still there */
};
#define FILE_POLL_USEC (1 * USEC_PER_SEC)

enum kind { KIND_DEVICE, KIND_FIFO, KIND_FILE };

struct kmsg {
	int fd;
	enum kind kind;
	bool live; /* all that was there at the start has been read */
	sd_event_source *source;
	kmsg_xid_fn *on_xid;
	void *userdata;
	struct kmsg_stats stats;
	size_t filled; /* of buffer, lines that have not ended yet */
	bool skipping; /* within a line that is longer than the buffer */
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

/* Takes in the whole lines of the buffer and moves the rest to its front. */
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

/* One read. 1: there may be more; 0: not now; or why the log cannot be read any more. */
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
		/* records were overwritten before we read them; the next read goes on with the oldest */
		case EPIPE:
			kmsg->stats.overruns++;
			return 1;
		case EINVAL: /* a record longer than any should be: it is skipped */
			kmsg->stats.unreadable++;
			return 1;
		default:
			return -errno;
		}
	}
	if (n == 0) {
		/*
		 * The log never ends; a terminal that was hung up, given in its place, says so again and
		 * again.
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
	/* A log that fails for good is let go of; sd-event would call us without end. */
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

/* A FIFO that has a writer, ourselves, never ends; where we may not write it ends with its last writer. */
static int open_log(const char *path, enum kind *ret_kind)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
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
