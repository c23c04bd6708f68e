// SPDX-License-Identifier: Apache-2.0
/*
 * One trace event of many probes, one perf event on it, one program: for kernels before 6.6. If gpusonde is
 * killed, its probes are gone but the trace event stays defined. An event's name has the process that created
 * it, so that the next agent can remove it.
 */
#include "trace/attach_private.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "bpf/trace_event.h"
#include "bpf/trace_event_old.h"
#include "proc/proc.h"

/*
 * Number of event names used by all backends of this process. A name must not be used twice: a definition
 * under an existing name would be appended to that event without being registered, and opening such an event
 * dereferences a null pointer in the kernel (6.18) while it holds a lock that all trace events need.
 */
static atomic_uint names;

/* The kernel accepts up to 4096 bytes per write; LINE_MAX_BYTES bounds a line. */
enum { LINE_MAX_BYTES = 160, PIECE = 4096 };

static int event_try(struct attach_backend *backend, struct attach_error *ret_error)
{
	int r = attach_tracefs_open(backend, ret_error);

	if (r < 0)
		return r;
	r = proc_process_id("/proc", (uint32_t)getpid(), &backend->own);
	if (r < 0) {
		attach_error_set(ret_error, "/proc is not mounted, or does not show this process: %s",
				 strerror(-r));
		return r;
	}
	return attach_tracefs_clean(backend);
}

/* Defines the trace event: each line adds a probe. */
static int define(struct attachment *attachment, const char *name, const struct attach_site *sites, size_t n,
		  const uint8_t *salts, uint8_t salt)
{
	char text[PIECE];
	size_t length = 0;
	int r = 0;

	for (size_t i = 0; i < n && r >= 0; i++) {
		if (salts && salts[i] != salt)
			continue;
		if (length + LINE_MAX_BYTES > sizeof(text)) {
			r = attach_tracefs_write(attachment->backend, text, length);
			length = 0;
		}
		length += (size_t)snprintf(text + length, sizeof(text) - length,
					   "%c:%s /proc/self/fd/%d:0x%" PRIx64 "\n",
					   attachment->returns ? 'r' : 'p', name, attachment->file,
					   sites[i].offset);
	}
	return r < 0 ? r : attach_tracefs_write(attachment->backend, text, length);
}

/* CPU 0 may be offline. */
static int first_online(void)
{
	char text[64]; /* the first of a list of ranges, "2-63" */
	int cpu = 0;

	if (read_file("/sys/devices/system/cpu/online", text, sizeof(text), NULL) < 0 ||
	    sscanf(text, "%d", &cpu) != 1)
		return 0;
	return cpu;
}

/* A perf event on one CPU is enough: the program runs at every hit of the trace event, on any CPU. */
static int enable(const struct attachment *attachment, uint64_t id, int program)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = id,
		.sample_period = 1,
		.wakeup_events = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, attachment->pid ? attachment->pid : -1,
			      attachment->pid ? -1 : first_online(), -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) < 0 || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static int part_make(struct attachment *attachment, const struct attach_site *sites, size_t n,
		     const uint8_t *salts, uint8_t salt)
{
	struct attach_backend *backend = attachment->backend;
	struct attach_part *part = &attachment->parts[attachment->parts_n];
	uint64_t id;
	int r = attach_load_salt(backend, salt);

	if (r < 0)
		return r;
	*part = (struct attach_part){ .fd = -1 };
	snprintf(part->name, sizeof(part->name), "gpusonde/g%d_%" PRIu64 "_%" PRIu32, getpid(),
		 backend->own.start_ticks, (uint32_t)atomic_fetch_add(&names, 1));
	attachment->parts_n++;
	r = define(attachment, part->name, sites, n, salts, salt);
	if (r == 0)
		r = attach_tracefs_event_id(backend, part->name, &id);
	if (r == 0)
		r = enable(attachment, id, attach_program(attachment, salt));
	if (r < 0)
		return r;
	part->fd = r;
	return 0;
}

static int event_make(struct attachment *attachment, const struct attach_site *sites, size_t n)
{
	_cleanup_free_ uint8_t *salts = NULL;
	bool used[ATTACH_SALTS_MAX] = { false };
	int r;

	if (attachment->returns || attachment->empty)
		return part_make(attachment, sites, n, NULL, 0);
	salts = calloc(n, sizeof(*salts));
	if (!salts)
		return -ENOMEM;
	r = attach_signatures_add(attachment, sites, n, salts);
	for (size_t i = 0; r >= 0 && i < n; i++)
		used[salts[i]] = true;
	for (uint8_t salt = 0; r >= 0 && salt < ATTACH_SALTS_MAX; salt++)
		if (used[salt])
			r = part_make(attachment, sites, n, salts, salt);
	return r;
}

const struct attach_way attach_way_event = {
	.name = "trace event",
	.object = trace_event,
	.object_n = sizeof(trace_event),
	.try = event_try,
	.make = event_make,
};

const struct attach_way attach_way_event_old = {
	.name = "trace event",
	.object = trace_event_old,
	.object_n = sizeof(trace_event_old),
	.try = event_try,
	.make = event_make,
};
