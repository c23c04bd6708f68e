// SPDX-License-Identifier: Apache-2.0
/*
 * A dummy software event on each CPU, and the records that come with it. After a wake-up the rings are not
 * polled for 20 ms, so that a burst of executions costs at most 50 wake-ups a second. Then all rings are
 * read, and records are handled in time order, up to when reading began: a ring that was read earlier may
 * lack newer records.
 *
 * CPUs that come online later are noticed within CPU_CHECK_NS. All events are then created again, and /proc
 * is scanned for what was missed.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/fd.h"
#include "proc/capabilities.h"
#include "proc/proc.h"
#include "trace/target_private.h"

enum {
	RING_BYTES = 64 << 10, /* for each CPU; one page where pages are 64 KiB, as on many arm64 machines */
	GATHER_US = 20 * 1000,
	EVENTS_MAX = 65536, /* read, not yet handled; more count as lost */
	CPUS_MAX = 8192,
};
#define CPU_CHECK_NS (10 * NSEC_PER_SEC)

static size_t ring_size(void)
{
	return MAX((size_t)RING_BYTES, (size_t)sysconf(_SC_PAGESIZE));
}

/* ---- in time order ---- */

static void event_done(struct target_event *event)
{
	free(event->path);
	event->path = NULL;
}

static void lost(struct targets *targets, uint64_t records)
{
	targets->stats.records_lost += records;
	targets_scan_again(targets);
}

void targets_record(struct targets *targets, const struct perf_record *record)
{
	struct target_records *records = &targets->records;
	struct target_event *event;
	size_t cap = records->events_cap;

	targets->stats.records++;
	if (record->kind == PERF_RECORD_KIND_LOST) {
		lost(targets, record->lost);
		return;
	}
	if (record->kind == PERF_RECORD_KIND_MAP && targets->ops->mapping)
		targets->ops->mapping((pid_t)record->pid, targets->userdata);
	if (record->kind == PERF_RECORD_KIND_MAP && !targets->config.pid &&
	    !target_wanted(targets, (pid_t)record->pid, record->path, strlen(record->path)))
		return;
	if (records->events_n == cap) {
		cap = cap ? cap * 2 : 64;
		event = cap > EVENTS_MAX ? NULL : reallocarray(records->events, cap, sizeof(*event));
		if (!event) {
			lost(targets, 1);
			return;
		}
		records->events = event;
		records->events_cap = cap;
	}
	event = &records->events[records->events_n];
	*event = (struct target_event){ .record = *record, .order = records->order++ };
	if (record->kind == PERF_RECORD_KIND_MAP) {
		event->path = strdup(record->path);
		if (!event->path) {
			lost(targets, 1);
			return;
		}
	}
	records->events_n++;
}

static void record_map(struct targets *targets, const struct target_event *event)
{
	const struct target_mapping mapping = { .pid = (pid_t)event->record.pid,
						.start = event->record.start,
						.end = event->record.end,
						.dev = event->record.dev,
						.ino = event->record.ino,
						.generation = event->record.generation,
						.path = event->path,
						.path_n = strlen(event->path),
						.time_ns = event->record.time_ns };

	targets_mapped(targets, &mapping);
}

static void handle(struct targets *targets, const struct target_event *event)
{
	const struct perf_record *record = &event->record;
	struct target_process *process = targets_process(targets, (pid_t)record->pid);

	/* The maps were read after this happened. */
	if (process && record->time_ns < process->looked_ns)
		return;
	switch (record->kind) {
	case PERF_RECORD_KIND_MAP:
		record_map(targets, event);
		break;
	case PERF_RECORD_KIND_FORK:
		if (process && record->time_ns <= process->since_ns)
			break;
		/* The PID was used again before an exit record came. */
		if (process)
			targets_process_gone(targets, process);
		targets_fork(targets, (pid_t)record->parent, (pid_t)record->pid, record->time_ns);
		target_ask_fork(targets, (pid_t)record->parent, (pid_t)record->pid, record->time_ns);
		break;
	case PERF_RECORD_KIND_EXEC:
		target_ask_forget(targets, (pid_t)record->pid, record->time_ns);
		if (process)
			targets_exec(targets, process, record->time_ns);
		break;
	case PERF_RECORD_KIND_EXIT:
		/* Exit of the thread group's leader or, if it ended first, of the last thread. */
		if (!process && !targets->pending)
			break;
		if (proc_is_alive(targets->config.proc_root, record->pid))
			break;
		target_ask_forget(targets, (pid_t)record->pid, record->time_ns);
		if (process)
			targets_process_gone(targets, process);
		break;
	case PERF_RECORD_KIND_LOST:
		break;
	}
}

static int compare_events(const void *a, const void *b)
{
	const struct target_event *x = a, *y = b;

	if (x->record.time_ns != y->record.time_ns)
		return x->record.time_ns < y->record.time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void targets_records_handle(struct targets *targets, uint64_t until_ns)
{
	struct target_records *records = &targets->records;
	size_t n = 0;

	if (!records->events_n)
		return;
	qsort(records->events, records->events_n, sizeof(*records->events), compare_events);
	for (; n < records->events_n && records->events[n].record.time_ns <= until_ns; n++) {
		handle(targets, &records->events[n]);
		event_done(&records->events[n]);
	}
	records->events_n -= n;
	memmove(records->events, records->events + n, records->events_n * sizeof(*records->events));
}

/* ---- rings ---- */

static void on_record(const struct perf_record *record, void *userdata)
{
	targets_record(userdata, record);
}

static void ring_read(struct targets *targets, struct target_ring *ring)
{
	struct perf_event_mmap_page *control = ring->base;
	uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = control->data_tail;
	size_t bad;

	if (head == tail)
		return;
	bad = perf_ring_walk((const char *)ring->base + sysconf(_SC_PAGESIZE), ring_size(), tail, head,
			     on_record, targets);
	__atomic_store_n(&control->data_tail, head, __ATOMIC_RELEASE);
	if (bad)
		lost(targets, bad);
}

static void arm(struct targets *targets, uint64_t in_us)
{
	uint64_t now;

	if (sd_event_now(targets->event, CLOCK_MONOTONIC, &now) < 0)
		return;
	sd_event_source_set_time(targets->records.timer, now + in_us);
	sd_event_source_set_enabled(targets->records.timer, SD_EVENT_ONESHOT);
}

static void read_all(struct targets *targets)
{
	struct target_records *records = &targets->records;
	uint64_t until_ns = (uint64_t)clock_mono_ns();

	for (uint32_t i = 0; i < records->rings_n; i++)
		ring_read(targets, &records->rings[i]);
	targets_records_handle(targets, until_ns);
	if (records->events_n)
		arm(targets, GATHER_US);
}

static int on_wake(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
		   void *userdata)
{
	struct targets *targets = userdata;

	arm(targets, GATHER_US); /* the source is off now, being one-shot */
	return 0;
}

static int on_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct targets *targets = userdata;

	/* Enables the source before it reads, so that a record in between is not missed. */
	sd_event_source_set_enabled(targets->records.io, SD_EVENT_ONESHOT);
	read_all(targets);
	return 0;
}

static void close_rings(struct target_records *records)
{
	for (uint32_t i = 0; i < records->rings_n; i++) {
		munmap(records->rings[i].base, ring_size() + (size_t)sysconf(_SC_PAGESIZE));
		close(records->rings[i].fd);
	}
	free(TAKE_PTR(records->rings));
	records->rings_n = 0;
}

static int ring_open(struct target_records *records, unsigned cpu)
{
	struct epoll_event wake = { .events = EPOLLIN };
	struct target_ring *rings;
	struct perf_event_attr attr;
	_cleanup_close_ int fd = -1;
	void *base;

	perf_record_attr(&attr);
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	base = mmap(NULL, ring_size() + (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		    0);
	if (base == MAP_FAILED)
		return -errno;
	rings = reallocarray(records->rings, records->rings_n + 1, sizeof(*rings));
	if (rings)
		records->rings = rings;
	if (!rings || epoll_ctl(records->epoll, EPOLL_CTL_ADD, fd, &wake) < 0) {
		munmap(base, ring_size() + (size_t)sysconf(_SC_PAGESIZE));
		return -ENOMEM;
	}
	rings[records->rings_n++] = (struct target_ring){ .fd = TAKE_FD(fd), .base = base };
	return 0;
}

/* "0-3,8,10-11\n" */
static int open_rings(struct target_records *records)
{
	struct cursor c = cursor_over(records->online, strlen(records->online));
	uint64_t first, last;
	int r;

	do {
		if (cursor_u64(&c, &first) < 0)
			return -EBADMSG;
		last = first;
		if (cursor_literal(&c, "-") && cursor_u64(&c, &last) < 0)
			return -EBADMSG;
		if (last >= CPUS_MAX)
			return -EBADMSG;
		for (; first <= last; first++) {
			r = ring_open(records, (unsigned)first);
			if (r < 0 && r != -ENODEV) /* -ENODEV: the CPU may have gone offline */
				return r;
		}
	} while (cursor_literal(&c, ","));
	return records->rings_n ? 0 : -ENODEV;
}

/* ---- whether the kernel gives records ---- */

static void why_refused(int error, char *buf, size_t size)
{
	struct capability_lack lacks[CAPABILITY_LACKS_MAX];
	int level = capability_perf_level();
	char paranoid[48] = "";

	if (level >= 0)
		snprintf(paranoid, sizeof(paranoid), " (kernel.perf_event_paranoid is %d)", level);
	if (error != -EPERM && error != -EACCES) {
		snprintf(buf, size,
			 "new programs are found by scanning /proc, up to a second late: perf events cannot "
			 "be opened: %s",
			 strerror(-error));
	} else if (capability_lacks(CAPABILITY_FOR(RECORDS), lacks) ||
		   (level >= CAPABILITY_PERF_STRICT &&
		    capability_lacks(CAPABILITY_FOR(RECORDS_STRICT), lacks))) {
		snprintf(buf, size, "perf events are refused%s, %s: %s; %s", paranoid, lacks[0].cause,
			 lacks[0].lost, lacks[0].remedy);
	} else {
		int n = snprintf(
			buf, size,
			"new programs are found by scanning /proc, up to a second late: perf events are "
			"refused, though no "
			"capability is missing: ");

		capability_refused(error, buf + n, size - (size_t)n);
	}
}

static void set_refused(struct targets *targets, int r)
{
	targets->stats.by_records = false;
	why_refused(r, targets->stats.why_no_records, sizeof(targets->stats.why_no_records));
}

int targets_records_refused(char *buf, size_t size)
{
	struct perf_event_attr attr;
	_cleanup_close_ int fd = -1;

	perf_record_attr(&attr);
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, sched_getcpu(), -1, PERF_FLAG_FD_CLOEXEC);
	if (fd >= 0)
		return 0;
	why_refused(-errno, buf, size);
	return 1;
}

static void open_all(struct targets *targets)
{
	struct target_records *records = &targets->records;
	int r = read_file("/sys/devices/system/cpu/online", records->online, sizeof(records->online), NULL);

	close_rings(records);
	if (r == 0)
		r = open_rings(records);
	if (r < 0) {
		close_rings(records);
		set_refused(targets, r);
		return;
	}
	targets->stats.by_records = true;
	targets->stats.why_no_records[0] = '\0';
}

static int on_cpu_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct targets *targets = userdata;
	struct target_records *records = &targets->records;
	char online[sizeof(records->online)];

	if (read_file("/sys/devices/system/cpu/online", online, sizeof(online), NULL) == 0 &&
	    strcmp(online, records->online) != 0) {
		read_all(targets);
		open_all(targets);
		targets_scan_again(targets);
	}
	sd_event_source_set_time(source, usec + CPU_CHECK_NS / NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int targets_records_init(struct targets *targets)
{
	struct target_records *records = &targets->records;
	uint64_t now;
	int r;

	if (strcmp(targets->config.proc_root, "/proc") != 0) {
		snprintf(targets->stats.why_no_records, sizeof(targets->stats.why_no_records),
			 "%s is not /proc", targets->config.proc_root);
		return 0;
	}
	records->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (records->epoll < 0)
		return -errno;
	open_all(targets);
	r = sd_event_now(targets->event, CLOCK_MONOTONIC, &now);
	if (r >= 0)
		r = sd_event_add_time(targets->event, &records->timer, CLOCK_MONOTONIC, 0, 1, on_timer,
				      targets);
	if (r >= 0)
		r = sd_event_source_set_enabled(records->timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_io(targets->event, &records->io, records->epoll, EPOLLIN, on_wake, targets);
	if (r >= 0)
		r = sd_event_source_set_enabled(records->io, SD_EVENT_ONESHOT);
	if (r >= 0)
		r = sd_event_add_time(targets->event, &records->cpu_timer, CLOCK_MONOTONIC,
				      now + CPU_CHECK_NS / NSEC_PER_USEC, NSEC_PER_SEC / NSEC_PER_USEC,
				      on_cpu_timer, targets);
	return r < 0 ? r : 0;
}

void targets_records_done(struct targets *targets)
{
	struct target_records *records = &targets->records;

	sd_event_source_disable_unref(records->io);
	sd_event_source_disable_unref(records->timer);
	sd_event_source_disable_unref(records->cpu_timer);
	close_rings(records);
	for (size_t i = 0; i < records->events_n; i++)
		event_done(&records->events[i]);
	free(records->events);
	closep(&records->epoll);
}
