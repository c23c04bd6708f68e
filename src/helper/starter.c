// SPDX-License-Identifier: Apache-2.0
#include "helper/starter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/raised.h"
#include "base/thread.h"

enum { FD_ASIDE = 10, STACK_BYTES = 128 << 10, FDS_BYTES = STARTER_FDS_MAX * (int)sizeof(int) };

struct call {
	int (*start)(const int fds[], void *userdata);
	void *userdata;
	unsigned n;
};

static struct {
	pthread_mutex_t lock;
	pid_t pid; /* of the process that has the thread: a forked one has none */
	int socket;
} starter = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* A message and descriptors, and room for these. */
struct envelope {
	struct iovec data;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(FDS_BYTES)];
	struct msghdr header;
};

static struct msghdr *address(struct envelope *envelope, void *data, size_t n)
{
	*envelope = (struct envelope){ .data = { .iov_base = data, .iov_len = n } };
	envelope->header = (struct msghdr){ .msg_iov = &envelope->data, .msg_iovlen = 1 };
	return &envelope->header;
}

static int send_call(int socket, struct call *call, const int fds[])
{
	struct envelope envelope;
	struct msghdr *header = address(&envelope, call, sizeof(*call));
	ssize_t sent;

	if (call->n > 0) {
		struct cmsghdr *control = (struct cmsghdr *)envelope.control;

		*control = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
					     .cmsg_type = SCM_RIGHTS,
					     .cmsg_len = CMSG_LEN(call->n * sizeof(*fds)) };
		memcpy(CMSG_DATA(control), fds, call->n * sizeof(*fds));
		header->msg_control = control;
		header->msg_controllen = CMSG_SPACE(call->n * sizeof(*fds));
	}
	do
		sent = sendmsg(socket, header, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* Returns how many descriptors came, -errno, or -EPIPE at the end. */
static int receive_call(int socket, struct call *ret_call, int ret_fds[STARTER_FDS_MAX])
{
	struct envelope envelope;
	struct msghdr *header = address(&envelope, ret_call, sizeof(*ret_call));
	struct cmsghdr *control;
	ssize_t got;

	header->msg_control = envelope.control;
	header->msg_controllen = sizeof(envelope.control);
	do
		got = recvmsg(socket, header, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got != sizeof(*ret_call))
		return got < 0 ? -errno : -EPIPE;
	control = CMSG_FIRSTHDR(header);
	if (!control)
		return 0;
	memcpy(ret_fds, CMSG_DATA(control), control->cmsg_len - CMSG_LEN(0));
	return (int)((control->cmsg_len - CMSG_LEN(0)) / sizeof(int));
}

/* Out of the way of the numbers that a new process gives them. */
static int set_aside(int fds[], int n)
{
	for (int i = 0; i < n; i++) {
		int aside = fcntl(fds[i], F_DUPFD_CLOEXEC, FD_ASIDE);

		if (aside < 0)
			return -errno;
		close(fds[i]);
		fds[i] = aside;
	}
	return 0;
}

static int serve_call(const struct call *call, int fds[], int n)
{
	int r = n == (int)call->n ? set_aside(fds, n) : -EMFILE;

	if (r == 0)
		r = call->start(fds, call->userdata);
	for (int i = 0; i < n; i++)
		close(fds[i]);
	return r;
}

/* Leaves the standard descriptors and our end of the socket, in a table that is this thread's. */
static int leave_table(int socket)
{
	/* Not unshare(), which Docker's filter of system calls refuses. */
	if (close_range((unsigned)socket + 1, ~0U, CLOSE_RANGE_UNSHARE) < 0 ||
	    close_range(STDERR_FILENO + 1, (unsigned)socket - 1, 0) < 0)
		return -errno;
	return 0;
}

#ifdef __SANITIZE_THREAD__
/* Of libtsan, which takes descriptors of one number for one, in whatever table they are. */
void __tsan_ignore_thread_begin(void);
void __tsan_ignore_thread_end(void);
#else
static void __tsan_ignore_thread_begin(void)
{
}
static void __tsan_ignore_thread_end(void)
{
}
#endif

static void serve_calls(int socket)
{
	int fds[STARTER_FDS_MAX], n, r;
	struct call call;

	while ((n = receive_call(socket, &call, fds)) >= 0) {
		r = serve_call(&call, fds, n);
		if (write_all(socket, &r, sizeof(r)) < 0)
			break;
	}
	close(socket);
}

static void *run_starter(void *userdata)
{
	int socket, r;

	__tsan_ignore_thread_begin();
	socket = *(const int *)userdata;
	/* What its children are to have they get from its permitted set: pass_capabilities() of spawn.c. */
	r = capabilities_lower_thread();
	if (r == 0)
		r = leave_table(socket);
	/* The first answer says whether it can be used. @userdata is gone after it. */
	if (write_all(socket, &r, sizeof(r)) >= 0 && r == 0)
		serve_calls(socket);
	__tsan_ignore_thread_end();
	return NULL;
}

static int receive_answer(int socket)
{
	ssize_t got;
	int r;

	do
		got = read(socket, &r, sizeof(r));
	while (got < 0 && errno == EINTR);
	return got == sizeof(r) ? r : -EPIPE;
}

static int start_thread(void)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	pthread_t thread;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	/* Above the standard descriptors, whatever of them is closed. */
	theirs = fcntl(pair[1], F_DUPFD_CLOEXEC, FD_ASIDE);
	close(pair[1]);
	if (theirs < 0)
		return -errno;
	r = thread_start(STACK_BYTES, run_starter, &theirs, &thread);
	if (r < 0)
		return r;
	pthread_detach(thread);
	/* It has its own copy of @theirs when it answers, so ours may be closed then. */
	r = receive_answer(ours);
	if (r < 0)
		return r;
	starter.socket = TAKE_FD(ours);
	starter.pid = getpid();
	return 0;
}

int starter_run(int (*start)(const int fds[], void *userdata), void *userdata, const int fds[], unsigned n)
{
	struct call call = { .start = start, .userdata = userdata, .n = n };
	int r = 0;

	pthread_mutex_lock(&starter.lock);
	if (starter.pid != getpid())
		r = start_thread();
	if (r == 0)
		r = send_call(starter.socket, &call, fds);
	if (r < 0)
		r = start(fds, userdata);
	else
		r = receive_answer(starter.socket);
	pthread_mutex_unlock(&starter.lock);
	return r;
}
