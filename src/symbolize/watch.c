// SPDX-License-Identifier: Apache-2.0
/*
 * A step of work is what lies between two notes of progress. One hangs if its thread neither runs nor comes
 * to run for a second: a loaded machine delays threads, but these are ready to run. A long step that runs is
 * bounded by its processor time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <syslog.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "config.h"
#include "proc/account.h"
#include "proc/proc.h"
#include "symbolize/client_private.h"

enum { FILE_PATIENCE = 5, UNSEEN_PATIENCE = 5, STATUS_MAX = 4096 };
#define CPU_MAX_NS (120 * NSEC_PER_SEC) /* figures.c has a bound of its own, below this */

/* ---- the shared memory ---- */

static uint64_t load(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

bool shared_is_open(const struct symbols *s)
{
	return s->shared;
}

/* @ret_fd is the caller's to close. */
static int open_shared(struct symbols *s, int *ret_fd)
{
	_cleanup_close_ int fd = memfd_create("gpusonde-symbols", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *at;

	/* Sealed: a helper that shortens it would make us crash. */
	if (fd < 0 || ftruncate(fd, sizeof(*s->shared)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	at = mmap(NULL, sizeof(*s->shared), PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	s->shared = at;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static bool is_gauge(enum wire_figure figure)
{
	return figure == WIRE_FILES || figure == WIRE_BYTES;
}

void shared_close(struct symbols *s)
{
	if (!s->shared)
		return;
	for (unsigned i = 0; i < WIRE_FIGURES; i++)
		if (!is_gauge((enum wire_figure)i))
			s->figures_before[i] += load(&s->shared->figures[i]);
	munmap(s->shared, sizeof(*s->shared));
	s->shared = NULL;
}

void shared_add_figures(const struct symbols *s, struct symbolizer_stats *stats)
{
	uint64_t all[WIRE_FIGURES];

	for (unsigned i = 0; i < WIRE_FIGURES; i++)
		all[i] = s->figures_before[i] + (s->shared ? load(&s->shared->figures[i]) : 0);
	stats->files = all[WIRE_FILES];
	stats->files_read = all[WIRE_FILES_READ];
	stats->files_failed = all[WIRE_FILES_FAILED];
	stats->evicted = all[WIRE_EVICTED];
	stats->left_out = all[WIRE_LEFT_OUT];
	stats->bytes = all[WIRE_BYTES];
	memcpy(stats->images, &all[WIRE_IMAGES], sizeof(stats->images));
	stats->seconds = (double)all[WIRE_CPU_NS] / 1e9;
}

/* ---- sending ---- */

static int send_start(struct symbols *s)
{
	const struct symbolizer_config *config = &s->config.symbolizer;
	_cleanup_free_ struct wire_start *start = calloc(1, sizeof(*start));
	_cleanup_close_ int fd = -1;
	int r;

	if (!start)
		return -ENOMEM;
	shared_close(s);
	r = open_shared(s, &fd);
	if (r < 0)
		return r;
	start->kind = WIRE_START;
	snprintf(start->version, sizeof(start->version), "%s", GPUSONDE_VERSION);
	snprintf(start->proc_root, sizeof(start->proc_root), "%s", config->proc_root);
	start->limits = config->limits;
	start->again_ns = config->again_ns;
	start->read_memory = config->read_memory;
	start->avoided_n = suspects_list_files(&s->suspects, clock_mono_ns(), start->avoided);
	r = helper_send(s->helper, start, sizeof(*start), fd);
	if (r < 0)
		shared_close(s);
	return r;
}

int symbols_send(struct symbols *s, const void *message, size_t n, int fd)
{
	struct helper_stats stats;
	int r = 0;

	helper_stats(s->helper, &stats);
	if (stats.pid == 0) {
		memset(s->watches, 0, sizeof(s->watches));
		s->sent = 0;
		r = send_start(s);
	}
	if (r == 0)
		r = helper_send(s->helper, message, n, fd);
	if (r < 0)
		return r;
	s->sent++;
	s->busy_ns = clock_mono_ns();
	return 0;
}

/* ---- whether it makes progress ---- */

/*
 * From /proc/PID/task/TID: how often the thread came to run, and its processor time. False: it cannot be
 * read.
 */
static bool thread_activity(pid_t pid, uint64_t tid, bool *ret_runs, uint64_t *ret_activity, int64_t *ret_cpu)
{
	char path[80], text[STATUS_MAX];
	unsigned long long voluntary, other, user, system;
	const char *at;
	char state;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/stat", (int)pid, (unsigned)tid);
	if (read_file(path, text, sizeof(text), NULL) < 0)
		return false;
	at = strrchr(text, ')');
	if (!at ||
	    sscanf(at, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &state, &user, &system) != 3)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%u/status", (int)pid, (unsigned)tid);
	if (read_file(path, text, sizeof(text), NULL) < 0)
		return false;
	at = strstr(text, "\nvoluntary_ctxt_switches:");
	if (!at || sscanf(at, "\nvoluntary_ctxt_switches: %llu\nnonvoluntary_ctxt_switches: %llu", &voluntary,
			  &other) != 2)
		return false;
	*ret_runs = state == 'R';
	*ret_activity = voluntary + other;
	*ret_cpu = (int64_t)(user + system) * NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
	return true;
}

static bool is_busy(const struct progress_lane *lane)
{
	uint64_t kind = load(&lane->kind);

	return kind != PROGRESS_IDLE && kind < PROGRESS_KINDS;
}

static int64_t patience(const struct symbols *s, const struct progress_lane *lane, bool seen)
{
	unsigned times = !seen ? UNSEEN_PATIENCE : load(&lane->kind) == PROGRESS_FILE ? FILE_PATIENCE : 1;

	return s->config.stall_ns * times;
}

static bool has_stalled(struct symbols *s, pid_t pid, enum wire_lane i)
{
	const struct progress_lane *lane = &s->shared->lanes[i];
	struct watch *watch = &s->watches[i];
	uint64_t step = load(&lane->step), activity = watch->activity;
	int64_t now = clock_mono_ns(), cpu = watch->cpu_ns;
	bool runs = false, seen;

	if (!is_busy(lane)) {
		watch->since_ns = 0;
		return false;
	}
	s->busy_ns = now;
	seen = thread_activity(pid, load(&lane->tid), &runs, &activity, &cpu);
	if (watch->since_ns == 0 || step != watch->step) {
		*watch = (struct watch){ step, activity, now, cpu };
		return false;
	}
	if (seen && cpu - watch->cpu_ns > CPU_MAX_NS)
		return true;
	if (seen && (runs || activity != watch->activity)) {
		watch->activity = activity;
		watch->since_ns = now;
		return false;
	}
	return now - watch->since_ns >= patience(s, lane, seen);
}

void watch_check(struct symbols *s)
{
	struct helper_stats stats;

	helper_stats(s->helper, &stats);
	for (unsigned i = 0; s->shared && stats.pid && i < WIRE_LANES; i++) {
		if (!has_stalled(s, stats.pid, (enum wire_lane)i))
			continue;
		/* It may have answered while this thread was held up. */
		helper_wait(s->helper, 0);
		if (s->shared && load(&s->shared->lanes[i].step) == s->watches[i].step)
			helper_give_up(s->helper);
		return;
	}
}

static bool has_nothing_to_do(const struct symbols *s)
{
	return s->asked.n == 0 && s->pending_n == 0 && s->environments_n == 0 &&
	       (!s->shared ||
		(load(&s->shared->handled) == s->sent && clock_mono_ns() - s->busy_ns > s->config.stall_ns));
}

/* What it knows can be read again. */
static bool may_end(const struct symbols *s)
{
	return s->shared && !s->looks && s->kept.count == 0;
}

static int on_watch_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct symbols *s = userdata;

	watch_check(s);
	if (has_nothing_to_do(s) && may_end(s) && clock_mono_ns() - s->busy_ns >= s->config.idle_ns) {
		helper_stop(s->helper);
		shared_close(s);
	}
	symbols_pump(s);
	return 0;
}

void watch_arm(struct symbols *s)
{
	int64_t in_ns = s->config.stall_ns / 4;

	if (!s->timer)
		return;
	if (has_nothing_to_do(s)) {
		if (!may_end(s)) {
			sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
			return;
		}
		in_ns = s->busy_ns + s->config.idle_ns - clock_mono_ns();
	}
	sd_event_source_set_time(s->timer,
				 (uint64_t)((clock_mono_ns() + MAX(in_ns, NSEC_PER_MSEC)) / NSEC_PER_USEC));
	sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

int watch_new(struct symbols *s, sd_event *event)
{
	int r = sd_event_add_time(event, &s->timer, CLOCK_MONOTONIC, 0, 10000, on_watch_timer, s);

	return r < 0 ? r : sd_event_source_set_enabled(s->timer, SD_EVENT_OFF);
}

void watch_done(struct symbols *s)
{
	s->timer = sd_event_source_disable_unref(s->timer);
}

/* ---- who is to blame ---- */

static void say_blame(struct symbols *s, bool hung, uint32_t pid, int64_t penalty_ns)
{
	char text[256];
	int n;

	if (!s->ops.notice)
		return;
	n = snprintf(text, sizeof(text),
		     "the helper that names kernels %s at process %u: it was replaced, "
		     "kernels of this process are not named",
		     hung ? "hung" : "crashed", pid);
	if (penalty_ns && n > 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, ", and none of its user for %lld s",
			 (long long)(penalty_ns / NSEC_PER_SEC));
	s->ops.notice(LOG_WARNING, text, s->userdata);
}

/* The lane that it hung in; of one that crashed, that of the work, which reads files. */
static const struct progress_lane *lane_to_blame(const struct symbols *s)
{
	const struct progress_lane *work = &s->shared->lanes[WIRE_LANE_WORK],
				   *messages = &s->shared->lanes[WIRE_LANE_MESSAGES];
	int64_t now = clock_mono_ns();
	bool waits =
		s->watches[WIRE_LANE_MESSAGES].since_ns &&
		(!s->watches[WIRE_LANE_WORK].since_ns ||
		 now - s->watches[WIRE_LANE_MESSAGES].since_ns > now - s->watches[WIRE_LANE_WORK].since_ns);

	if (!is_busy(messages))
		return work;
	return is_busy(work) && !waits ? work : messages;
}

struct process_id watch_blame(struct symbols *s, bool hung)
{
	const struct progress_lane *lane = s->shared ? lane_to_blame(s) : NULL;
	struct process_id id = { 0 };
	struct file_mark mark;
	int64_t now = clock_mono_ns(), penalty;

	if (!lane || !is_busy(lane))
		return id;
	id.pid = (uint32_t)load(&lane->pid);
	if (id.pid == 0)
		return id;
	if (proc_process_id(s->config.symbolizer.proc_root, id.pid, &id) < 0)
		id.start_ticks = 0; /* it has ended */
	mark = (struct file_mark){ load(&lane->dev), load(&lane->ino), load(&lane->changed_ns) };
	if (load(&lane->kind) == PROGRESS_FILE)
		suspects_add_file(&s->suspects, mark, hung, now);
	if (id.start_ticks)
		suspects_add_process(&s->suspects, id);
	penalty =
		suspects_add_account(&s->suspects, proc_account(s->config.symbolizer.proc_root, id.pid), now);
	say_blame(s, hung, id.pid, penalty);
	return id;
}
