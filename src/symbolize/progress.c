// SPDX-License-Identifier: Apache-2.0
#include "symbolize/progress.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

static _Thread_local struct progress_lane *here;

static void put(_Atomic uint64_t *field, uint64_t value)
{
	atomic_store_explicit(field, value, memory_order_relaxed);
}

static void step(enum progress_kind kind)
{
	put(&here->kind, kind);
	atomic_fetch_add_explicit(&here->step, 1, memory_order_release);
}

void progress_use(struct progress_lane *lane)
{
	here = lane;
	if (here)
		put(&here->tid, (uint64_t)syscall(SYS_gettid));
}

void progress_process(pid_t pid)
{
	if (!here)
		return;
	put(&here->pid, (uint64_t)pid);
	step(pid ? PROGRESS_PROCESS : PROGRESS_IDLE);
}

void progress_memory(void)
{
	if (here)
		step(PROGRESS_MEMORY);
}

struct file_mark progress_mark(const struct stat *st)
{
	return (struct file_mark){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.changed_ns =
			(uint64_t)st->st_ctim.tv_sec * (uint64_t)NSEC_PER_SEC + (uint64_t)st->st_ctim.tv_nsec,
	};
}

void progress_file(uint64_t dev, uint64_t ino, const struct stat *st)
{
	struct file_mark mark = { .dev = dev, .ino = ino };

	if (!here)
		return;
	if (st)
		mark = progress_mark(st);
	put(&here->dev, mark.dev);
	put(&here->ino, mark.ino);
	put(&here->changed_ns, mark.changed_ns);
	step(PROGRESS_FILE);
}
