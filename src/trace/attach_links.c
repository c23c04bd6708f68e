// SPDX-License-Identifier: Apache-2.0
/*
 * Closes uprobe_multi links. Closing one waits for RCU readers in the kernel, 50 to 400 ms, but links that
 * are closed at the same time wait together. While gpusonde runs, threads close the links of files that no
 * process maps any more. At the end, separate processes close the remaining links, since a thread that waits
 * in the kernel would delay the exit of gpusonde.
 */
#include "trace/attach_private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/thread.h"

enum {
	THREADS = 4,
	CLOSERS = 16, /* processes at the end, with a few system calls each; the unit allows 32 tasks */
	END_WAIT_MS = 800,
	STACK_BYTES = 64 << 10,
};

struct link {
	int fd;
	dev_t dev;
	ino_t ino; /* of the probed file */
};

struct closer {
	struct attach_links *links;
	pthread_t thread;
	struct link link; /* that it closes; fd -1: none */
};

struct attach_links {
	struct closer closers[THREADS];
	unsigned closers_n;
	pthread_mutex_t lock; /* protects the members below and closer.link */
	pthread_cond_t changed;
	bool stop;
	struct link *waiting;
	size_t n, cap;
};

/* ---- the threads ---- */

static void *close_links(void *userdata)
{
	struct closer *closer = userdata;
	struct attach_links *links = closer->links;

	pthread_mutex_lock(&links->lock);
	while (!links->stop) {
		if (links->n == 0) {
			pthread_cond_wait(&links->changed, &links->lock);
			continue;
		}
		closer->link = links->waiting[--links->n];
		pthread_mutex_unlock(&links->lock);
		close(closer->link.fd);
		pthread_mutex_lock(&links->lock);
		closer->link.fd = -1;
		pthread_cond_broadcast(&links->changed);
	}
	pthread_mutex_unlock(&links->lock);
	return NULL;
}

/* One thread is enough, so failing to start others does not matter. */
static void start_threads(struct attach_links *links)
{
	for (unsigned i = 0; i < THREADS; i++) {
		struct closer *closer = &links->closers[links->closers_n];

		*closer = (struct closer){ .links = links, .link = { .fd = -1 } };
		if (thread_start(STACK_BYTES, close_links, closer, &closer->thread) == 0)
			links->closers_n++;
	}
}

static struct attach_links *links_get(struct attach_backend *backend)
{
	struct attach_links *links = backend->links;

	if (links)
		return links;
	links = backend->links = calloc(1, sizeof(*links));
	if (!links)
		return NULL;
	pthread_mutex_init(&links->lock, NULL);
	pthread_cond_init(&links->changed, NULL);
	return links;
}

/* Without memory, the caller closes the link itself, and waits. */
static bool make_room(struct attach_links *links)
{
	size_t cap = links->cap ? 2 * links->cap : 64;
	void *grown;

	if (links->n < links->cap)
		return true;
	grown = realloc(links->waiting, cap * sizeof(*links->waiting));
	if (!grown)
		return false;
	links->waiting = grown;
	links->cap = cap;
	return true;
}

bool attach_links_leave(struct attach_backend *backend, int fd, int file)
{
	struct attach_links *links = links_get(backend);
	struct link link = { .fd = fd };
	struct stat st;
	bool added;

	if (!links)
		return false;
	if (fstat(file, &st) == 0) {
		link.dev = st.st_dev;
		link.ino = st.st_ino;
	}
	if (links->closers_n == 0 && !backend->ending)
		start_threads(links);
	if (links->closers_n == 0 && !backend->ending)
		return false;
	pthread_mutex_lock(&links->lock);
	added = make_room(links);
	if (added)
		links->waiting[links->n++] = link;
	pthread_cond_broadcast(&links->changed);
	pthread_mutex_unlock(&links->lock);
	return added;
}

static bool is_of(const struct link *link, const struct stat *st)
{
	return link->fd >= 0 && link->dev == st->st_dev && link->ino == st->st_ino;
}

static bool is_leaving(const struct attach_links *links, const struct stat *st)
{
	for (size_t i = 0; i < links->n; i++)
		if (is_of(&links->waiting[i], st))
			return true;
	for (unsigned i = 0; i < links->closers_n; i++)
		if (is_of(&links->closers[i].link, st))
			return true;
	return false;
}

void attach_links_wait(struct attach_backend *backend, int file)
{
	struct attach_links *links = backend->links;
	struct stat st;

	if (!links || links->closers_n == 0 || fstat(file, &st) < 0)
		return;
	pthread_mutex_lock(&links->lock);
	while (is_leaving(links, &st))
		pthread_cond_wait(&links->changed, &links->lock);
	pthread_mutex_unlock(&links->lock);
}

/* ---- the end ---- */

static void wait_for_end_of(int fd, int timeout_ms)
{
	struct pollfd wait = { .fd = fd };

	while (poll(&wait, 1, timeout_ms) < 0 && errno == EINTR)
		;
}

/* Every @step-th link. */
static void close_share(const struct attach_links *links, size_t first, size_t step)
{
	for (size_t i = first; i < links->n; i += step)
		close(links->waiting[i].fd);
}

static bool is_needed(const struct attach_links *links, int fd)
{
	for (size_t i = 0; i < links->n; i++)
		if (links->waiting[i].fd == fd)
			return true;
	return false;
}

/*
 * Runs in a separate process, which first closes all other descriptors, since another process may wait for
 * them to be closed. Only system calls are allowed here. The closing processes share one table of
 * descriptors, so that none holds a link open that another closes.
 */
static _Noreturn void close_apart(const struct attach_links *links, int begin, int end)
{
	size_t step = MIN(links->n, (size_t)CLOSERS);
	int last = MAX(begin, end);

	for (size_t i = 0; i < links->n; i++)
		last = MAX(last, links->waiting[i].fd);
	for (int fd = 0; fd < last; fd++)
		if (fd != begin && fd != end && !is_needed(links, fd))
			close(fd);
	close_range((unsigned)last + 1, ~0U, 0);
	setsid();
	/* Waits until the parent has closed its descriptors. Closing these releases the links only then. */
	wait_for_end_of(begin, -1);
	for (size_t i = 0; i < step; i++) {
		long pid = i + 1 < step ? syscall(SYS_clone, CLONE_FILES, 0, 0, 0, 0) : -1;

		if (pid <= 0)
			close_share(links, i, step);
		if (pid == 0)
			break;
	}
	_exit(0);
}

static pid_t start_apart(const struct attach_links *links, int begin[2], int end[2])
{
	sigset_t all, before;
	pid_t pid;

	/* All signals stay blocked in the new process, which ends within seconds. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0) {
		close(begin[1]);
		close(end[0]);
		if (fork() > 0)
			_exit(0);
		close_apart(links, begin[0], end[1]);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static void hand_over(const struct attach_links *links)
{
	int begin[2] = { -1, -1 }, end[2] = { -1, -1 };
	pid_t pid = -1;

	if (pipe2(begin, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0)
		pid = start_apart(links, begin, end);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	close_share(links, 0, 1);
	closep(&begin[0]);
	closep(&begin[1]);
	closep(&end[1]);
	if (pid > 0)
		wait_for_end_of(end[0], END_WAIT_MS);
	closep(&end[0]);
}

void attach_links_end(struct attach_backend *backend)
{
	struct attach_links *links = TAKE_PTR(backend->links);

	if (!links)
		return;
	pthread_mutex_lock(&links->lock);
	links->stop = true;
	pthread_cond_broadcast(&links->changed);
	pthread_mutex_unlock(&links->lock);
	/* Before the threads: with many links, what one of them is closing may take seconds. */
	if (links->n > 0)
		hand_over(links);
	for (unsigned i = 0; i < links->closers_n; i++)
		pthread_join(links->closers[i].thread, NULL);
	free(links->waiting);
	pthread_cond_destroy(&links->changed);
	pthread_mutex_destroy(&links->lock);
	free(links);
}
