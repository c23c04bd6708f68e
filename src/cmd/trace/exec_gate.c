// SPDX-License-Identifier: Apache-2.0
#include "cmd/trace/exec_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/raised.h"
#include "cmd/trace/exec_gate_private.h"
#include "cmd/trace/request.h"
#include "helper/message.h"

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 }; /* as in a shell */

struct exec_gate {
	struct exec_gate_ops ops;
	void *userdata;
	pid_t pid;
	int channel; /* to the holder */
	int gate; /* the command waits for a byte from it */
	char unheld[160];
	uint32_t missed; /* mappings that continued without an answer */
	bool holder_ended, holder_lost;
	sd_event_source *reports, *end;
};

/* Descriptors that are only needed to start; each of the three processes closes them afterwards. */
struct start {
	int channel[2]; /* [1] the holder's */
	int listener[2]; /* the command sends its listener to [1], the holder's */
	int filter[2]; /* the command writes the result of installing its filter */
	int gate[2];
};

static void start_done(struct start *s)
{
	int *pairs[] = { s->channel, s->listener, s->filter, s->gate };

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		for (int end = 0; end < 2; end++) {
			if (pairs[i][end] >= 0)
				close(pairs[i][end]);
			pairs[i][end] = -1;
		}
}

static int start_init(struct start *s)
{
	memset(s, -1, sizeof(*s));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->channel) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->listener) < 0 ||
	    pipe2(s->filter, O_CLOEXEC) < 0 || pipe2(s->gate, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static void write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		write_all(fd, text, strlen(text));
}

static void close_others(int one, int other)
{
	int low = MIN(one, other), high = MAX(one, other);

	close_range(STDERR_FILENO + 1, (unsigned)low - 1, 0);
	if (high > low + 1)
		close_range((unsigned)low + 1, (unsigned)high - 1, 0);
	close_range((unsigned)high + 1, ~0U, 0);
}

/* Changes what "ps" and "pkill" match: the thread's name, and the first word of the command line. */
static void rename_process(void)
{
	size_t n = strlen(program_invocation_name);

	prctl(PR_SET_NAME, "trace-holder", 0, 0, 0);
	strncpy(program_invocation_name, "trace-holder", n);
}

/* The holder may outlive gpusonde: it shares no descriptors, and "pkill gpusonde" does not match it. */
static void run_holder(struct start *s)
{
	sigset_t all;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int listener = -1;
	char byte;

	if (capabilities_drop() < 0)
		_exit(EXIT_FAILURE);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	write_file("/proc/self/oom_score_adj", "-1000"); /* ignored without CAP_SYS_RESOURCE */
	setsid(); /* not in the process group that gets the terminal's or the caller's signals */
	rename_process();
	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	int channel = fcntl(s->channel[1], F_DUPFD_CLOEXEC, 3),
	    source = fcntl(s->listener[1], F_DUPFD_CLOEXEC, 3);

	/* Including the command's pipe ends, whose closing must be noticed, and the caller's descriptors. */
	close_others(channel, source);
	if (receive_with_fd(source, &byte, 1, &listener) == 1 && listener >= 0) {
		close(source);
		exec_gate_serve(listener, channel);
		send(channel, &byte, 1, MSG_NOSIGNAL); /* a regular end */
	}
	_exit(EXIT_SUCCESS);
}

static void run_command(struct start *s, char *const *argv)
{
	sigset_t none;
	int listener;
	char byte = 0;
	ssize_t n;

	if (capabilities_drop() < 0)
		_exit(EXIT_CANNOT_RUN);
	close(s->gate[1]);
	s->gate[1] = -1;
	listener = exec_gate_filter();
	if (listener >= 0) {
		int r = send_with_fd(s->listener[0], &byte, 1, listener);

		close(listener);
		listener = r;
	}
	if (write(s->filter[1], &listener, sizeof(listener)) < 0)
		_exit(EXIT_CANNOT_RUN);
	/* Closed without a byte: gpusonde has failed or was killed. */
	while ((n = read(s->gate[0], &byte, 1)) < 0 && errno == EINTR)
		;
	if (n != 1)
		_exit(EXIT_CANNOT_RUN);
	start_done(s);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	execvp(argv[0], argv);
	fprintf(stderr, "gpusonde %s: cannot run %s: %s\n", trace_command_name(), argv[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

static void call_mapping(struct exec_gate *gate, const struct exec_gate_report *report, int fd)
{
	const struct exec_gate_mapping mapping = {
		.pid = report->pid,
		.fd = fd,
		.path = report->path,
		.execution = report->execution,
		.address = report->address,
		.length = report->length,
		.offset = report->offset,
	};

	gate->ops.mapping(&mapping, gate->userdata);
}

static int on_report(sd_event_source *source, int fd, _unused_ uint32_t events, void *userdata)
{
	struct exec_gate *gate = userdata;
	_cleanup_close_ int file = -1;
	struct exec_gate_report message;
	ssize_t n = receive_with_fd(fd, &message, sizeof(message), &file);

	if (n < (ssize_t)offsetof(struct exec_gate_report, path) + 1) {
		gate->holder_ended = true;
		gate->holder_lost = n != 1 && !gate->unheld[0];
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
		return 0;
	}
	message.path[MIN((size_t)n - offsetof(struct exec_gate_report, path), sizeof(message.path)) - 1] =
		'\0';
	gate->missed = message.missed;
	if (file >= 0)
		call_mapping(gate, &message, file);
	if (send(fd, &message.number, sizeof(message.number), MSG_NOSIGNAL) < 0)
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
	return 0;
}

static int on_end(_unused_ sd_event_source *source, const siginfo_t *info, void *userdata)
{
	struct exec_gate *gate = userdata;

	gate->pid = 0;
	gate->ops.ended(info->si_code == CLD_EXITED ? info->si_status : 128 + info->si_status,
			gate->userdata);
	return 0;
}

static void set_unheld(struct exec_gate *gate, int error)
{
	if (error == -EBUSY)
		snprintf(gate->unheld, sizeof(gate->unheld),
			 "gpusonde already runs under a seccomp listener; run it outside of that sandbox");
	else
		snprintf(gate->unheld, sizeof(gate->unheld),
			 "the kernel does not allow a seccomp listener: %s", strerror(-error));
}

static int start_processes(struct exec_gate *gate, struct start *s, char *const *argv)
{
	int filter = -EIO;
	pid_t holder = fork();

	if (holder < 0)
		return -errno;
	if (holder == 0) {
		/* Forked twice, so that the holder is not a child that gpusonde would have to wait for. */
		if (fork() == 0)
			run_holder(s);
		_exit(EXIT_SUCCESS);
	}
	while (waitpid(holder, NULL, 0) < 0 && errno == EINTR)
		;
	gate->pid = fork();
	if (gate->pid < 0)
		return -errno;
	if (gate->pid == 0)
		run_command(s, argv);
	close(s->filter[1]);
	s->filter[1] = -1;
	if (read(s->filter[0], &filter, sizeof(filter)) != sizeof(filter) || filter < 0)
		set_unheld(gate, filter < 0 ? filter : -EIO);
	gate->channel = TAKE_FD(s->channel[0]);
	gate->gate = TAKE_FD(s->gate[1]);
	return 0;
}

int exec_gate_new(sd_event *event, char *const *argv, const struct exec_gate_ops *ops, void *userdata,
		  struct exec_gate **ret_gate)
{
	_cleanup_(exec_gate_freep) struct exec_gate *gate = calloc(1, sizeof(*gate));
	struct start start;
	int r;

	if (!gate)
		return -ENOMEM;
	*gate = (struct exec_gate){ .ops = *ops, .userdata = userdata, .channel = -1, .gate = -1 };
	r = start_init(&start);
	if (r == 0)
		r = start_processes(gate, &start, argv);
	start_done(&start);
	if (r == 0)
		r = sd_event_add_child(event, &gate->end, gate->pid, WEXITED, on_end, gate);
	if (r >= 0)
		r = sd_event_add_io(event, &gate->reports, gate->channel, EPOLLIN, on_report, gate);
	if (r < 0)
		return r;
	*ret_gate = TAKE_PTR(gate);
	return 0;
}

void exec_gate_free(struct exec_gate *gate)
{
	if (!gate)
		return;
	sd_event_source_disable_unref(gate->reports);
	sd_event_source_disable_unref(gate->end);
	if (gate->channel >= 0)
		close(gate->channel);
	if (gate->gate >= 0)
		close(gate->gate);
	free(gate);
}

int exec_gate_release(struct exec_gate *gate)
{
	ssize_t n = write_all(gate->gate, "", 1);

	close(TAKE_FD(gate->gate));
	return n < 0 ? (int)n : 0;
}

pid_t exec_gate_pid(const struct exec_gate *gate)
{
	return gate->pid;
}

const char *exec_gate_unheld(const struct exec_gate *gate)
{
	return gate->unheld[0] ? gate->unheld : NULL;
}

uint32_t exec_gate_missed(const struct exec_gate *gate)
{
	return gate->missed;
}

bool exec_gate_holder_lost(const struct exec_gate *gate)
{
	char word;

	/* Its end may lie in the socket still. */
	if (!gate->holder_ended && gate->channel >= 0 && !gate->unheld[0])
		return recv(gate->channel, &word, sizeof(word), MSG_PEEK | MSG_DONTWAIT) == 0;
	return gate->holder_lost;
}

void exec_gate_signal(struct exec_gate *gate, int signal)
{
	if (gate->pid > 0)
		kill(gate->pid, signal);
}
