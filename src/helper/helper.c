// SPDX-License-Identifier: Apache-2.0
#include "helper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "helper/message.h"
#include "helper/spawn.h"

/* One that ends by itself is replaced after 0.1, 0.2, 0.4 ... 10 s; one that lived for a minute, at once. */
#define BACKOFF_MIN_NS (100 * NSEC_PER_MSEC)
#define BACKOFF_MAX_NS (10 * NSEC_PER_SEC)
#define HEALTHY_NS (60 * NSEC_PER_SEC)
#define FREE_KILLED_NS (500 * NSEC_PER_MSEC)

enum { ENDING_MAX = 8 }; /* so many killed ones beside those may be about to end */

/* A process that was started and has not ended. */
struct started {
	struct helper *helper;
	struct started *next; /* in helper->killed */
	pid_t pid;
	uint64_t owner; /* helper_mark() */
	int64_t killed_ns;
	int pidfd; /* -1: a service's */
	sd_event_source *on_exit;
};

struct helper {
	sd_event *event;
	struct helper_config config;
	struct helper_ops ops;
	void *userdata;
	char program[PATH_MAX];
	/*
	 * Of the program, kept open from the start: after an upgrade the one of our own version is still
	 * executed. -1: it could not be opened yet.
	 */
	int program_fd;
	char *service; /* struct helper_config's socket */
	struct started *now; /* the one that works */
	int socket; /* to it */
	sd_event_source *on_message;
	struct started *killed;
	unsigned killed_n;
	sd_event_source *deadline, *idle;
	unsigned failures; /* in a row */
	bool foreign; /* said that it is of another version */
	int64_t started_ns, not_before_ns;
	uint64_t starts, crashes, hung;
	char *message; /* HELPER_MESSAGE_MAX bytes */
};

static void started_free(struct started *started)
{
	if (!started)
		return;
	sd_event_source_disable_unref(started->on_exit);
	closep(&started->pidfd);
	free(started);
}

static void timer_off(sd_event_source *timer)
{
	sd_event_source_set_enabled(timer, SD_EVENT_OFF);
}

static void timer_arm(sd_event_source *timer, int64_t in_ns)
{
	sd_event_source_set_time(timer, (uint64_t)((clock_mono_ns() + in_ns) / NSEC_PER_USEC));
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

/* Kills the working process. Its end is noticed later, or never. */
static void drop(struct helper *helper)
{
	struct started *started = TAKE_PTR(helper->now);

	timer_off(helper->deadline);
	timer_off(helper->idle);
	helper->on_message = sd_event_source_disable_unref(helper->on_message);
	closep(&helper->socket);
	helper->socket = -1;
	if (started->pidfd < 0) {
		started_free(started);
		return;
	}
	pidfd_send_signal(started->pidfd, SIGKILL, NULL, 0);
	started->killed_ns = clock_mono_ns();
	started->next = helper->killed;
	helper->killed = started;
	helper->killed_n++;
}

static void count_crash(struct helper *helper)
{
	int64_t now = clock_mono_ns(), wait = BACKOFF_MIN_NS;

	if (now - helper->started_ns > HEALTHY_NS)
		helper->failures = 0;
	for (unsigned i = 0; i < helper->failures && wait < BACKOFF_MAX_NS; i++)
		wait *= 2;
	helper->failures++;
	helper->crashes++;
	helper->not_before_ns = now + MIN(wait, BACKOFF_MAX_NS);
}

static void crashed(struct helper *helper)
{
	drop(helper);
	count_crash(helper);
	helper->ops.lost(false, helper->userdata);
}

/* ---- events ---- */

static int on_message(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
		      void *userdata)
{
	struct helper *helper = userdata;
	int passed = -1;
	ssize_t n = receive_with_fd(helper->socket, helper->message, HELPER_MESSAGE_MAX, &passed);

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0) {
		crashed(helper);
		return 0;
	}
	if (helper->config.idle_ns)
		timer_arm(helper->idle, helper->config.idle_ns);
	helper->failures = 0;
	helper->ops.answer(helper->message, (size_t)n, passed, helper->userdata);
	return 0;
}

static int on_deadline(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct helper *helper = userdata;

	if (!helper->now)
		return 0;
	/* It may have answered while this thread was held up. */
	if (sd_event_source_get_pending(helper->on_message) > 0)
		return 0;
	helper_give_up(helper);
	return 0;
}

void helper_give_up(struct helper *helper)
{
	if (!helper->now)
		return;
	drop(helper);
	helper->hung++;
	helper->ops.lost(true, helper->userdata);
}

void helper_reject(struct helper *helper)
{
	if (helper->now)
		crashed(helper);
}

void helper_stop(struct helper *helper)
{
	if (helper->now)
		drop(helper);
}

void helper_wait(struct helper *helper, int timeout_ms)
{
	while (helper->now) {
		struct pollfd messages = { .fd = helper->socket, .events = POLLIN };

		if (poll(&messages, 1, timeout_ms) <= 0)
			return;
		timeout_ms = 0;
		on_message(NULL, 0, 0, helper);
	}
}

static int on_idle(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	helper_stop(userdata);
	return 0;
}

static int on_exit_of(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
		      void *userdata)
{
	struct started *started = userdata;
	struct helper *helper = started->helper;
	siginfo_t info = { 0 };

	/* Where SIGCHLD is ignored the kernel has reaped it already. */
	if (waitid(P_PIDFD, (id_t)started->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
		return 0;
	if (info.si_code == CLD_EXITED && info.si_status == HELPER_FOREIGN && !helper->foreign) {
		helper->foreign = true;
		log_error("%s is not of this version: reinstall gpusonde, and restart the agent; said once",
			  helper->program);
	}
	if (helper->now == started)
		crashed(helper);
	for (struct started **p = &helper->killed; *p; p = &(*p)->next)
		if (*p == started) {
			*p = started->next;
			helper->killed_n--;
			break;
		}
	started_free(started);
	return 0;
}

/* ---- starting ---- */

/* The event loop may not have had time to notice its end. */
static bool is_stuck(const struct started *killed)
{
	struct pollfd end = { .fd = killed->pidfd, .events = POLLIN };

	return clock_mono_ns() - killed->killed_ns > HELPER_STUCK_NS && poll(&end, 1, 0) == 0;
}

static unsigned count_stuck(const struct helper *helper)
{
	unsigned n = 0;

	for (const struct started *started = helper->killed; started; started = started->next)
		n += is_stuck(started);
	return n;
}

static int connect_service(struct helper *helper)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (strlen(helper->service) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, helper->service);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	helper->socket = TAKE_FD(fd);
	return 0;
}

static int begin(struct helper *helper, struct started *started)
{
	const char *slash = strrchr(helper->program, '/');

	if (helper->service)
		return connect_service(helper);
	if (helper->program_fd < 0)
		helper->program_fd = helper_open_program(helper->program);
	if (helper->program_fd < 0)
		return helper->program_fd;
	return helper_spawn(helper->program_fd, slash ? slash + 1 : helper->program, helper->config.role,
			    helper->config.capabilities, &started->pid, &started->pidfd, &helper->socket);
}

static int start_program(struct helper *helper)
{
	struct started *started;
	int r;

	if (count_stuck(helper) > helper->config.max_stuck)
		return -EBUSY;
	if (helper->killed_n > helper->config.max_stuck + ENDING_MAX)
		return -EAGAIN;
	if (clock_mono_ns() < helper->not_before_ns)
		return -EAGAIN;
	started = calloc(1, sizeof(*started));
	if (!started)
		return -ENOMEM;
	started->helper = helper;
	started->pidfd = -1;
	r = begin(helper, started);
	if (r < 0) {
		free(started);
		helper->started_ns = clock_mono_ns();
		count_crash(helper);
		return r;
	}
	helper->now = started;
	helper->started_ns = clock_mono_ns();
	helper->starts++;
	if (started->pidfd >= 0)
		r = sd_event_add_io(helper->event, &started->on_exit, started->pidfd, EPOLLIN, on_exit_of,
				    started);
	if (r >= 0)
		r = sd_event_add_io(helper->event, &helper->on_message, helper->socket, EPOLLIN, on_message,
				    helper);
	/* An answer that lies there is taken before the deadline and before the news of its end. */
	if (r >= 0)
		r = sd_event_source_set_priority(helper->on_message, SD_EVENT_PRIORITY_NORMAL - 1);
	if (r < 0)
		drop(helper);
	return r;
}

int helper_send(struct helper *helper, const void *message, size_t n, int fd)
{
	int r = helper->now ? 0 : start_program(helper);

	if (r >= 0)
		r = send_with_fd(helper->socket, message, n, fd);
	if (r == 0 && helper->config.idle_ns)
		timer_arm(helper->idle, helper->config.idle_ns);
	/* Its end is noticed by the event loop. */
	return r == -EPIPE || r == -ECONNRESET ? -EAGAIN : r;
}

void helper_deadline(struct helper *helper, int64_t in_ns)
{
	if (in_ns > 0 && helper->now)
		timer_arm(helper->deadline, in_ns);
	else
		timer_off(helper->deadline);
}

void helper_mark(struct helper *helper, uint64_t owner)
{
	if (helper->now)
		helper->now->owner = owner;
}

bool helper_is_stuck_for(const struct helper *helper, uint64_t owner)
{
	for (const struct started *started = helper->killed; started; started = started->next)
		if (started->owner == owner && is_stuck(started))
			return true;
	return false;
}

void helper_stats(const struct helper *helper, struct helper_stats *ret_stats)
{
	*ret_stats = (struct helper_stats){
		.starts = helper->starts,
		.crashes = helper->crashes,
		.hung = helper->hung,
		.killed = helper->killed_n,
		.stuck = count_stuck(helper),
		.pid = helper->now ? helper->now->pid : 0,
	};
}

int helper_check_program(const char *program, uint64_t capabilities, char ret_path[PATH_MAX])
{
	helper_find_program(program, capabilities, ret_path);
	return access(ret_path, X_OK) < 0 ? -errno : 0;
}

int helper_new(sd_event *event, const struct helper_config *config, const struct helper_ops *ops,
	       void *userdata, struct helper **ret_helper)
{
	_cleanup_(helper_freep) struct helper *helper = calloc(1, sizeof(*helper));
	int r;

	if (!helper)
		return -ENOMEM;
	helper->event = sd_event_ref(event);
	helper->config = *config;
	helper->ops = *ops;
	helper->userdata = userdata;
	helper->socket = -1;
	helper->program_fd = -1;
	helper->message = malloc(HELPER_MESSAGE_MAX);
	helper->service = config->socket ? strdup(config->socket) : NULL;
	if (!helper->message || (config->socket && !helper->service))
		return -ENOMEM;
	helper_find_program(config->program, config->capabilities, helper->program);
	helper->program_fd = helper_open_program(helper->program);
	r = sd_event_add_time(event, &helper->deadline, CLOCK_MONOTONIC, 0, 1000, on_deadline, helper);
	if (r >= 0)
		r = sd_event_add_time(event, &helper->idle, CLOCK_MONOTONIC, 0, 1000000, on_idle, helper);
	if (r < 0)
		return r;
	timer_off(helper->deadline);
	timer_off(helper->idle);
	*ret_helper = TAKE_PTR(helper);
	return 0;
}

/* Waits for one that was killed, so that it does not outlive the caller; init reaps one that is stuck. */
static void reap_killed(struct started *started, int64_t until_ns)
{
	struct pollfd ended = { .fd = started->pidfd, .events = POLLIN };
	int64_t left_ns = MAX(until_ns - clock_mono_ns(), INT64_C(0));

	if (started->pidfd >= 0 && poll(&ended, 1, (int)(left_ns / NSEC_PER_MSEC)) == 1)
		waitid(P_PIDFD, (id_t)started->pidfd, &(siginfo_t){ 0 }, WEXITED | WNOHANG);
	started_free(started);
}

void helper_free(struct helper *helper)
{
	int64_t until_ns = clock_mono_ns() + FREE_KILLED_NS;

	if (!helper)
		return;
	if (helper->now)
		drop(helper);
	while (helper->killed) {
		struct started *started = helper->killed;

		helper->killed = started->next;
		reap_killed(started, until_ns);
	}
	sd_event_source_disable_unref(helper->deadline);
	sd_event_source_disable_unref(helper->idle);
	sd_event_unref(helper->event);
	closep(&helper->program_fd);
	free(helper->message);
	free(helper->service);
	free(helper);
}
