// SPDX-License-Identifier: Apache-2.0
#include "nvml/source.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "nvml/library.h"
#include "nvml/spawn.h"

#define CALL_TIMEOUT_DEFAULT_NS (10 * NSEC_PER_SEC)
#define STUCK_DEFAULT 3
/*
 * A child that failed is replaced at the next tick; one that fails again and again, after 1, 2, 4 ... 30 s.
 */
#define BACKOFF_MIN_NS NSEC_PER_SEC
#define BACKOFF_MAX_NS (30 * NSEC_PER_SEC)
#define HEALTHY_NS (60 * NSEC_PER_SEC)
/* How long one that was asked to end may take before it is killed. */
#define LEAVE_NS (2 * NSEC_PER_SEC)
/* ... at our own end, and how long the kernel may take to end those that were killed. */
#define FREE_LEAVE_NS (50 * NSEC_PER_MSEC)
#define FREE_KILLED_NS (2 * NSEC_PER_SEC)
/* As the dynamic loader and shells have it: the program did not begin. */
enum { STATUS_NOT_EXECUTED = 127 };
/* From here on a reading is so late that the status says what holds it up. */
#define SLOW_NS (2 * NSEC_PER_SEC)

struct child {
	struct nvml_source *source;
	struct child *next; /* in source->gone */
	struct spawned spawned;
	sd_event_source *on_answer, *on_exit;
	bool busy, killed;
	int64_t started_ns, asked_ns, leave_by_ns;
	char call[64]; /* what it was stuck in when we gave it up */
};

struct nvml_source {
	sd_event *event;
	struct nvml_config config;
	nvml_reading_fn *on_reading;
	void *userdata;
	sd_event_source *timeout; /* of the reading under way */
	struct child *child; /* the one that works */
	struct child *gone; /* those that were killed or asked to end, and have not ended */
	struct reading *reading; /* our copy, which no child can change while it is used */
	struct persistent_state *states;
	uint32_t attach;
	bool released;
	unsigned failures; /* in a row */
	int64_t start_ns; /* no new child before this */
	uint64_t starts, crashes, overdue, given_up;
	char error[256];
};

static void set_error(struct nvml_source *source, const char *format, ...) _printf_(2, 3);

static void set_error(struct nvml_source *source, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(source->error, sizeof(source->error), format, args);
	va_end(args);
}

/* The child's clock for calls, which nothing in our process shifts. */
static int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static const char *call_of(const struct child *child)
{
	return nvml_function_name(
		atomic_load_explicit(&child->spawned.shared->function, memory_order_acquire));
}

static unsigned count_stuck(const struct nvml_source *source)
{
	unsigned n = 0;

	for (const struct child *c = source->gone; c; c = c->next)
		n += c->killed;
	return n;
}

static void child_free(struct child *child)
{
	sd_event_source_disable_unref(child->on_answer);
	sd_event_source_disable_unref(child->on_exit);
	if (child->spawned.socket >= 0)
		close(child->spawned.socket);
	if (child->spawned.pidfd >= 0)
		close(child->spawned.pidfd);
	if (child->spawned.shared)
		munmap(child->spawned.shared, sizeof(*child->spawned.shared));
	free(child);
}

/* What outlives a child; its own copy of it is gone with the mapping. */
static void keep_persistent_state(struct nvml_source *source, const struct nvml_shared *shared)
{
	for (size_t i = 0; i < READING_ENTITIES_MAX && shared->states[i].uuid[0]; i++)
		source->states[i] = shared->states[i];
	source->attach = shared->attach;
}

/*
 * The working child becomes one that is gone: no more readings from it, and its end of the socket ends with
 * ours.
 */
static struct child *retire(struct nvml_source *source)
{
	struct child *child = TAKE_PTR(source->child);

	sd_event_source_set_enabled(source->timeout, SD_EVENT_OFF);
	snprintf(child->call, sizeof(child->call), "%s", call_of(child));
	keep_persistent_state(source, child->spawned.shared);
	child->on_answer = sd_event_source_disable_unref(child->on_answer);
	close(TAKE_FD(child->spawned.socket));
	munmap(TAKE_PTR(child->spawned.shared), sizeof(struct nvml_shared));
	child->busy = false;
	child->next = source->gone;
	source->gone = child;
	return child;
}

static void kill_child(struct child *child)
{
	pidfd_send_signal(child->spawned.pidfd, SIGKILL, NULL, 0);
	child->killed = true;
}

static void count_failure(struct nvml_source *source)
{
	unsigned doublings = MIN(source->failures - 1, 5u);
	int64_t wait = source->failures ? MIN(BACKOFF_MIN_NS << doublings, BACKOFF_MAX_NS) : 0;

	source->failures++;
	source->start_ns = clock_mono_ns() + wait;
}

/* Gives the working child up. */
static void drop_child(struct nvml_source *source)
{
	kill_child(retire(source));
	count_failure(source);
}

static int copy_reading(const struct nvml_shared *shared, struct reading *to)
{
	const struct reading *from = &shared->reading;
	uint32_t entities = from->entities_n, processes = from->processes_n, events = from->events_n;

	if (entities > READING_ENTITIES_MAX || processes > READING_PROCESSES_MAX ||
	    events > READING_EVENTS_MAX)
		return -EBADMSG;
	memcpy(to, from, offsetof(struct reading, entities));
	to->entities_n = entities;
	to->processes_n = processes;
	to->events_n = events;
	memcpy(to->entities, from->entities, entities * sizeof(to->entities[0]));
	memcpy(to->processes, from->processes, processes * sizeof(to->processes[0]));
	memcpy(to->events, from->events, events * sizeof(to->events[0]));
	return reading_check(to);
}

static void take_reading(struct nvml_source *source)
{
	struct child *child = source->child;

	sd_event_source_set_enabled(source->timeout, SD_EVENT_OFF);
	child->busy = false;
	if (copy_reading(child->spawned.shared, source->reading) < 0) {
		set_error(source, "the driver's helper process sent an invalid reading: replacing it");
		drop_child(source);
		return;
	}
	source->error[0] = '\0';
	if (clock_mono_ns() - child->started_ns > HEALTHY_NS)
		source->failures = 0;
	source->on_reading(source->reading, source->userdata); /* last: it may release the source */
}

/*
 * Takes what the working child has said; at its end, or at nonsense, gives it up. False when there is no more
 * to take.
 */
static bool take_answer(struct nvml_source *source)
{
	unsigned char bytes[8];
	ssize_t n = read(source->child->spawned.socket, bytes, sizeof(bytes));

	if (n < 0)
		return false;
	if (n == 1 && bytes[0] == NVML_ANSWER_READY && source->child->busy) {
		take_reading(source);
		return source->child != NULL;
	}
	if (n > 0) {
		set_error(source, "the driver's helper process violated its protocol: replacing it; "
				  "if this lasts, reinstall gpusonde");
		drop_child(source);
	}
	return false; /* closed: the pidfd will report its end */
}

static int answer_ready(sd_event_source *s _unused_, int fd _unused_, uint32_t revents, void *userdata)
{
	struct child *child = userdata;
	struct nvml_source *source = child->source;

	take_answer(source);
	/*
	 * It closed the socket: no use listening on; a child that does that and lives on is ended by its next
	 * deadline.
	 */
	if (source->child == child && (revents & EPOLLHUP)) {
		child->on_answer = sd_event_source_disable_unref(child->on_answer);
		child->leave_by_ns = clock_mono_ns() + LEAVE_NS;
	}
	return 0;
}

static void explain_end(struct nvml_source *source, const struct child *child, const siginfo_t *info)
{
	const char *in = child->call[0] ? child->call : "no driver call";

	if (info->si_code != CLD_EXITED) {
		source->crashes++;
		set_error(source,
			  "the driver's library crashed in %s (signal %d): the process that holds it is "
			  "replaced",
			  in, info->si_status);
	} else if (info->si_status == NVML_CHILD_FOREIGN) {
		set_error(source,
			  "the helper gpusonde-nvml is of another version than gpusonde: install both from "
			  "one release");
	} else if (info->si_status == STATUS_NOT_EXECUTED) {
		set_error(source,
			  "the helper gpusonde-nvml could not be executed (status %d): it is damaged, for "
			  "another machine, or lacks a "
			  "library; install gpusonde again",
			  info->si_status);
	} else {
		set_error(source,
			  "the helper gpusonde-nvml exited unexpectedly (status %d, in %s): replacing it",
			  info->si_status, in);
	}
}

static void child_forget(struct nvml_source *source, struct child *child)
{
	for (struct child **p = &source->gone; *p; p = &(*p)->next) {
		if (*p == child) {
			*p = child->next;
			break;
		}
	}
	child_free(child);
}

static int child_ended(sd_event_source *s _unused_, int fd _unused_, uint32_t revents _unused_,
		       void *userdata)
{
	struct child *child = userdata;
	struct nvml_source *source = child->source;
	siginfo_t info = { .si_code = CLD_EXITED };

	/* A last reading may lie in the socket. */
	while (source->child == child && take_answer(source))
		;
	/* Where SIGCHLD is ignored the kernel has reaped it already, which is as good. */
	if (waitid(P_PIDFD, (id_t)child->spawned.pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
		return 0;
	if (source->child == child) {
		retire(source);
		explain_end(source, child, &info);
		count_failure(source);
	}
	child_forget(source, child);
	return 0;
}

static int timed_out(sd_event_source *s _unused_, uint64_t usec _unused_, void *userdata)
{
	struct nvml_source *source = userdata;
	double seconds = (double)source->config.call_timeout_ns / NSEC_PER_SEC;
	const char *call;

	/* It may have answered while we were held up: that is for us to answer for, not for the child. */
	while (source->child && source->child->busy && take_answer(source))
		;
	if (!source->child || !source->child->busy)
		return 0;
	call = call_of(source->child);
	set_error(source,
		  "%s did not return for %.3g s: the process that called it was killed and is replaced",
		  call[0] ? call : "a reading", seconds);
	source->given_up++;
	drop_child(source);
	return 0;
}

int nvml_source_new(sd_event *event, const struct nvml_config *config, nvml_reading_fn *on_reading,
		    void *userdata, struct nvml_source **ret_source)
{
	struct nvml_source *source = calloc(1, sizeof(*source));
	int r;

	if (!source)
		return -ENOMEM;
	source->event = sd_event_ref(event);
	source->config = *config;
	if (source->config.call_timeout_ns <= 0)
		source->config.call_timeout_ns = CALL_TIMEOUT_DEFAULT_NS;
	if (source->config.max_stuck == 0)
		source->config.max_stuck = STUCK_DEFAULT;
	source->on_reading = on_reading;
	source->userdata = userdata;
	/* Megabytes, of which only what the node needs is ever touched. */
	source->reading = calloc(1, sizeof(*source->reading));
	source->states = calloc(READING_ENTITIES_MAX, sizeof(*source->states));
	r = source->reading && source->states ? 0 : -ENOMEM;
	if (r == 0)
		r = sd_event_add_time_relative(event, &source->timeout, CLOCK_MONOTONIC, 0, 10000, timed_out,
					       source);
	if (r >= 0)
		r = sd_event_source_set_enabled(source->timeout, SD_EVENT_OFF);
	if (r < 0) {
		nvml_source_free(source);
		return r;
	}
	*ret_source = source;
	return 0;
}

/* Forgets those that have ended by then, which leaves no zombie in a program that lives on. */
static void reap_until(struct nvml_source *source, int64_t until_ns)
{
	struct child *next;

	for (struct child *child = source->gone; child; child = next) {
		struct pollfd p = { .fd = child->spawned.pidfd, .events = POLLIN };
		int64_t left_ns = MAX(until_ns - monotonic_ns(), INT64_C(0));

		next = child->next;
		if (poll(&p, 1, (int)(left_ns / NSEC_PER_MSEC)) != 1)
			continue;
		waitid(P_PIDFD, (id_t)child->spawned.pidfd, &(siginfo_t){ 0 }, WEXITED | WNOHANG);
		child_forget(source, child);
	}
}

void nvml_source_free(struct nvml_source *source)
{
	if (!source)
		return;
	if (source->child)
		retire(source);
	reap_until(source, monotonic_ns() + FREE_LEAVE_NS);
	for (struct child *c = source->gone; c; c = c->next)
		kill_child(c);
	reap_until(source, monotonic_ns() + FREE_KILLED_NS);
	while (source->gone) /* stuck in the driver: init inherits it and waits for it */
		child_forget(source, source->gone);
	sd_event_source_disable_unref(source->timeout);
	sd_event_unref(source->event);
	free(source->reading);
	free(source->states);
	free(source);
}

static void explain_start(struct nvml_source *source, const char *helper, int error)
{
	if (error == -ENOENT || error == -EACCES)
		set_error(source,
			  "cannot run the helper %s (%s): install gpusonde-nvml there, or name it with the "
			  "option nvml.helper",
			  helper, strerror(-error));
	else
		set_error(source, "cannot start the helper %s: %s", helper, strerror(-error));
}

static int watch_child(struct nvml_source *source, struct child *child)
{
	int r = sd_event_add_io(source->event, &child->on_answer, child->spawned.socket, EPOLLIN,
				answer_ready, child);

	if (r >= 0)
		r = sd_event_add_io(source->event, &child->on_exit, child->spawned.pidfd, EPOLLIN,
				    child_ended, child);
	/* Answers before ends: a reading that is complete counts. */
	if (r >= 0)
		r = sd_event_source_set_priority(child->on_exit, SD_EVENT_PRIORITY_NORMAL + 1);
	return r;
}

static void child_start(struct nvml_source *source)
{
	char helper[PATH_MAX];
	struct child *child = calloc(1, sizeof(*child));
	int r = -ENOMEM;

	spawn_find_helper(source->config.helper, helper);
	if (child)
		r = spawn_child(helper, source->config.library, source->states, source->attach,
				source->config.left_out, &child->spawned);
	if (r < 0) {
		free(child);
		explain_start(source, helper, r);
		count_failure(source);
		return;
	}
	source->starts++;
	child->source = source;
	child->started_ns = clock_mono_ns();
	source->child = child;
	r = watch_child(source, child);
	if (r < 0) {
		explain_start(source, helper, r);
		drop_child(source);
	}
}

static void child_ask(struct nvml_source *source)
{
	static const unsigned char command = NVML_COMMAND_READ;
	struct child *child = source->child;

	/*
	 * At most one byte is pending, so this neither blocks nor is truncated; if the child closed its end,
	 * the pidfd reports it.
	 */
	if (send(child->spawned.socket, &command, 1, MSG_NOSIGNAL) != 1)
		return;
	child->busy = true;
	child->asked_ns = clock_mono_ns();
	sd_event_source_set_time_relative(source->timeout, (uint64_t)(source->config.call_timeout_ns / 1000));
	sd_event_source_set_enabled(source->timeout, SD_EVENT_ONESHOT);
}

static void let_go(struct nvml_source *source)
{
	retire(source)->leave_by_ns = clock_mono_ns() + LEAVE_NS;
}

static void expire(struct nvml_source *source)
{
	int64_t now = clock_mono_ns();

	if (source->child && source->child->leave_by_ns && now > source->child->leave_by_ns) {
		set_error(source, "the driver's helper process closed its socket: replacing it");
		drop_child(source);
	}
	for (struct child *c = source->gone; c; c = c->next)
		if (!c->killed && now > c->leave_by_ns)
			kill_child(c);
}

static void report_released(struct nvml_source *source)
{
	struct reading *reading = source->reading;

	memset(reading, 0, offsetof(struct reading, entities));
	reading->state = READING_RELEASED;
	reading->attach = source->attach;
	reading->begin_ns = reading->end_ns = clock_boot_ns();
	snprintf(reading->error, sizeof(reading->error),
		 "the driver was released on request: gpusonde resume attaches to it again");
	source->error[0] = '\0';
	source->on_reading(reading, source->userdata);
}

static void tick_released(struct nvml_source *source)
{
	if (source->child && !source->child->busy)
		let_go(source);
	if (source->child)
		source->overdue++;
	else if (!source->gone)
		report_released(source);
	else
		set_error(source, "releasing the driver: waiting for a process to end%s%s",
			  source->gone->call[0] ? " that is stuck in " : "", source->gone->call);
}

static void start_if_allowed(struct nvml_source *source)
{
	unsigned stuck = count_stuck(source);

	if (stuck >= source->config.max_stuck) {
		set_error(source,
			  "%u processes are stuck in the driver (%s) and cannot be ended; no further one is "
			  "started before one "
			  "ends: see the kernel log, reset the GPU or reboot",
			  stuck, source->gone->call[0] ? source->gone->call : "no call");
		return;
	}
	if (clock_mono_ns() >= source->start_ns)
		child_start(source);
}

void nvml_source_tick(struct nvml_source *source)
{
	expire(source);
	if (source->released) {
		tick_released(source);
		return;
	}
	if (source->child && source->child->busy) {
		source->overdue++;
		return;
	}
	if (!source->child)
		start_if_allowed(source);
	if (source->child)
		child_ask(source);
}

void nvml_source_release(struct nvml_source *source)
{
	source->released = true;
	if (source->child && !source->child->busy)
		let_go(source);
}

void nvml_source_resume(struct nvml_source *source)
{
	source->released = false;
	source->failures = 0;
	source->start_ns = 0;
}

void nvml_source_status(const struct nvml_source *source, struct nvml_status *ret_status)
{
	const struct child *child = source->child;
	struct nvml_status status = {
		.released = source->released,
		.starts = source->starts,
		.crashes = source->crashes,
		.overdue = source->overdue,
		.given_up = source->given_up,
		.stuck = count_stuck(source),
	};

	snprintf(status.error, sizeof(status.error), "%s", source->error);
	snprintf(status.cause, sizeof(status.cause), "%s", source->error);
	if (child) {
		int64_t now = monotonic_ns(), late = clock_mono_ns() - child->asked_ns;
		/* The mapping is the child's, which may have written anything there. */
		int64_t since = CLAMP(
			atomic_load_explicit(&child->spawned.shared->since_ns, memory_order_relaxed), 0, now);

		status.running = true;
		status.busy = child->busy;
		status.child = child->spawned.pid;
		snprintf(status.call, sizeof(status.call), "%s", call_of(child));
		if (status.call[0])
			status.call_seconds = (double)(now - since) / NSEC_PER_SEC;
		if (child->busy && late > SLOW_NS && !status.error[0]) {
			snprintf(status.error, sizeof(status.error),
				 "the driver has not answered for %.0f s (%s)", (double)late / NSEC_PER_SEC,
				 status.call[0] ? status.call : "between two calls");
			snprintf(status.cause, sizeof(status.cause), "the driver does not answer");
		}
	}
	*ret_status = status;
}
