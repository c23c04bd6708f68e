// SPDX-License-Identifier: Apache-2.0
#include "agent/lifeline.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/thread.h"

enum { STACK_BYTES = 64 << 10, READ = 0, WRITE = 1 };

struct lifeline {
	pthread_t thread;
	int line[2]; /* [WRITE] is the thread's */
	int quit[2]; /* [READ] is the thread's */
	sem_t ready;
	int error;
};

/* System calls alone: libraries that watch descriptors know one table of them. */
static int take_own_table(const struct lifeline *lifeline)
{
	enum { LINE, QUIT, N }; /* where they are then */

	if (syscall(SYS_unshare, CLONE_FILES) < 0)
		return -errno;
	if (syscall(SYS_dup3, lifeline->line[WRITE], LINE, O_CLOEXEC) < 0 ||
	    syscall(SYS_dup3, lifeline->quit[READ], QUIT, O_CLOEXEC) < 0 ||
	    syscall(SYS_close_range, N, ~0U, 0) < 0)
		return -errno;
	return QUIT;
}

static void *hold(void *userdata)
{
	struct lifeline *lifeline = userdata;
	int quit = take_own_table(lifeline);
	char byte;

	lifeline->error = MIN(quit, 0);
	sem_post(&lifeline->ready);
	while (quit >= 0 && syscall(SYS_read, quit, &byte, 1) < 0 && errno == EINTR)
		;
	return NULL;
}

int lifeline_new(struct lifeline **ret_lifeline, int *ret_fd)
{
	struct lifeline *lifeline = calloc(1, sizeof(*lifeline));
	int r;

	if (!lifeline)
		return -ENOMEM;
	lifeline->line[READ] = lifeline->line[WRITE] = lifeline->quit[READ] = lifeline->quit[WRITE] = -1;
	sem_init(&lifeline->ready, 0, 0);
	r = pipe2(lifeline->line, O_CLOEXEC) < 0 || pipe2(lifeline->quit, O_CLOEXEC) < 0 ? -errno : 0;
	if (r == 0)
		r = thread_start(STACK_BYTES, hold, lifeline, &lifeline->thread);
	if (r < 0) {
		for (unsigned i = READ; i <= WRITE; i++) {
			closep(&lifeline->line[i]);
			closep(&lifeline->quit[i]);
		}
		free(lifeline);
		return r;
	}
	pthread_setname_np(lifeline->thread, "lifeline");
	while (sem_wait(&lifeline->ready) < 0)
		;
	r = lifeline->error;
	closep(&lifeline->line[WRITE]);
	closep(&lifeline->quit[READ]);
	if (r < 0) {
		lifeline_free(lifeline);
		return r;
	}
	*ret_lifeline = lifeline;
	*ret_fd = lifeline->line[READ];
	return 0;
}

void lifeline_free(struct lifeline *lifeline)
{
	if (!lifeline)
		return;
	closep(&lifeline->quit[WRITE]);
	pthread_join(lifeline->thread, NULL);
	closep(&lifeline->line[READ]);
	sem_destroy(&lifeline->ready);
	free(lifeline);
}
