// SPDX-License-Identifier: Apache-2.0
/*
 * Reads a process's mappings before there are questions about it: a program that runs for milliseconds has
 * ended when the first question arrives. The caller's thread reads the mappings while the process is stopped;
 * the worker thread stores them, with the file open.
 *
 * A question refers to a process by PID and start time, and to one of its programs by incarnation. The
 * mappings read before an exec are sealed, and used for the program before the exec.
 */
#include "symbolize/look.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "symbolize/file.h"
#include "symbolize/process.h"
#include "symbolize/worker.h"
#include "proc/proc.h"

/* The mapping is made as soon as its process continues. */
enum { PATIENCE_STEPS = 5 };
#define STEP_NS NSEC_PER_MSEC

struct look {
	struct process_id id;
	int64_t at_ns;
	struct process fresh; /* its mappings */
	int fd;
	char *path;
	bool execution, placed;
};

/* ---- on the caller's thread ---- */

void look_free(struct look *look)
{
	areas_done(&look->fresh);
	closep(&look->fd);
	free(look->path);
	free(look);
}
DEFINE_CLEANUP(struct look *, look_free, look_freep)

static bool is_still(const struct symbolizer *symbolizer, struct process_id id)
{
	struct process_id now;

	return proc_process_id(symbolizer->proc_root, id.pid, &now) == 0 && process_id_equal(now, id);
}

static int look_new(const struct symbolizer *symbolizer, const struct symbolizer_mapping *mapping,
		    struct look **ret_look)
{
	_cleanup_(look_freep) struct look *look = calloc(1, sizeof(*look));
	const struct symbolizer_mapping *pending = mapping->execution ? NULL : mapping;
	int r;

	if (!look)
		return -ENOMEM;
	look->at_ns = clock_mono_ns();
	look->execution = mapping->execution;
	look->placed = mapping->length > 0;
	look->fd = fcntl(mapping->fd, F_DUPFD_CLOEXEC, 3);
	look->path = strdup(mapping->path);
	if (!look->path)
		return -ENOMEM;
	r = proc_process_id(symbolizer->proc_root, (uint32_t)mapping->pid, &look->id);
	if (r == 0)
		r = areas_read(symbolizer->proc_root, mapping->pid, pending, &look->fresh);
	/* The process is stopped, but may have been killed. */
	if (r == 0 && !is_still(symbolizer, look->id))
		r = -ESRCH;
	if (r < 0)
		return r;
	*ret_look = TAKE_PTR(look);
	return 0;
}

int symbolizer_look(struct symbolizer *symbolizer, const struct symbolizer_mapping *mapping)
{
	const struct symbolizer_question about = { .process.pid = (uint32_t)mapping->pid };
	struct look *look;
	struct work *work;
	int r = look_new(symbolizer, mapping, &look);

	if (r < 0)
		return r;
	work = work_new(WORK_LOOK, &about);
	if (!work) {
		look_free(look);
		return -ENOMEM;
	}
	work->look = look;
	return symbolizer_enqueue(symbolizer, work, &symbolizer->images, &symbolizer->looks_n, LOOKS);
}

/* ---- on the worker thread ---- */

static bool is_unasked(const struct process *process)
{
	return process->looked && process->incarnation == 0;
}

/* The newest record of the process. */
static struct process *newest(const struct symbolizer *symbolizer, const struct look *look)
{
	struct process *found = NULL;

	for (uint32_t i = 0; i < symbolizer->processes_n; i++) {
		struct process *process = symbolizer->processes[i];

		if (process_id_equal(process->id, look->id) && !process->sealed &&
		    (!found || process->made > found->made))
			found = process;
	}
	return found;
}

struct process *look_find(struct symbolizer *symbolizer, const struct symbolizer_question *question)
{
	struct process *found = NULL;

	for (uint32_t i = 0; i < symbolizer->processes_n; i++) {
		struct process *process = symbolizer->processes[i];

		if (!is_unasked(process) || !process_id_equal(process->id, question->process))
			continue;
		if (process->sealed && process->looked_ns <= (int64_t)question->incarnation)
			continue;
		if (!found || process->made < found->made)
			found = process;
	}
	return found;
}

static void make_room_for_one(struct symbolizer *symbolizer)
{
	struct process *old = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < symbolizer->processes_n; i++) {
		struct process *process = symbolizer->processes[i];

		if (!is_unasked(process))
			continue;
		n++;
		if (!old || process->used < old->used)
			old = process;
	}
	if (n >= LOOKED)
		process_remove(symbolizer, old);
}

static int add(struct symbolizer *symbolizer, const struct look *look, struct process **ret_process)
{
	int r;

	make_room_for_one(symbolizer);
	r = process_add(symbolizer, look->id, 0, ret_process);
	if (r < 0)
		return r;
	(*ret_process)->looked = true;
	return 0;
}

static void take(struct symbolizer *symbolizer, struct process *process, struct look *look)
{
	process_take(symbolizer, process, &look->fresh);
	look->fresh = (struct process){ 0 };
	process->looked_ns = process->read_ns = look->at_ns;
}

/* The current program is seen for the last time; the new one has no mappings yet. */
static int take_execution(struct symbolizer *symbolizer, struct look *look, struct process **ret_process)
{
	struct process *before = newest(symbolizer, look);

	/* An interpreter, or a second attempt to exec. */
	if (before && before->looked && before->read_ns == 0) {
		*ret_process = before;
		return 0;
	}
	if (before) {
		take(symbolizer, before, look);
		before->sealed = before->gone = true;
		process_weigh(symbolizer, before);
	}
	return add(symbolizer, look, ret_process);
}

static int take_mapping(struct symbolizer *symbolizer, struct look *look, struct process **ret_process)
{
	struct process *process = newest(symbolizer, look);
	int r = process ? 0 : add(symbolizer, look, &process);

	if (r < 0)
		return r;
	take(symbolizer, process, look);
	*ret_process = process;
	return 0;
}

/* ---- the file ---- */

/* On btrfs and overlay stat() returns another device than maps. */
static bool may_be(const struct file *file, const struct mapped *mapped)
{
	for (uint32_t i = 0; i < file->ids_n; i++)
		if (file->ids[i].dev != mapped->dev || file->ids[i].ino == mapped->ino)
			return true;
	return false;
}

uint32_t look_pending(const struct process *before, const struct mapped *mapped)
{
	for (uint32_t i = 0; i < before->mapped_n; i++) {
		const struct mapped *pending = &before->mapped[i];

		if (pending->ino == 0 && pending->file && STRV_EQ(pending->path, mapped->path) &&
		    may_be(pending->file, mapped))
			return i;
	}
	return UINT32_MAX;
}

static struct mapped *add_pending(struct process *process, const char *path)
{
	struct mapped *mapped =
		reallocarray(process->mapped, (size_t)process->mapped_n + 1, sizeof(struct mapped));

	if (!mapped)
		return NULL;
	process->mapped = mapped;
	mapped += process->mapped_n;
	*mapped = (struct mapped){ .path = strdup(path), .looked = true };
	if (!mapped->path)
		return NULL;
	process->mapped_n++;
	return mapped;
}

static void give_file(struct mapped *mapped, struct file *file)
{
	mapped->looked = true;
	if (mapped->file)
		return;
	mapped->file = file;
	file_use(file);
}

static void take_file(struct symbolizer *symbolizer, struct process *process, const struct look *look)
{
	const struct place place = { .pid = (pid_t)look->id.pid, .path = look->path, .fd = &look->fd };
	struct mapped *mapped;
	struct file *file;
	bool found = false;

	if (look->fd < 0 || file_find(symbolizer, &place, &file) < 0)
		return;
	for (uint32_t i = 0; i < process->mapped_n; i++) {
		mapped = &process->mapped[i];
		if (!STRV_EQ(mapped->path, look->path) || !may_be(file, mapped))
			continue;
		found = true;
		give_file(mapped, file);
	}
	mapped = found ? NULL : add_pending(process, look->path);
	if (mapped)
		give_file(mapped, file);
}

static bool is_mapped(const struct process *process, const char *path)
{
	for (uint32_t i = 0; i < process->mapped_n; i++)
		if (process->mapped[i].executable && STRV_EQ(process->mapped[i].path, path))
			return true;
	return false;
}

/* Reads where the kernel has placed the mapping. */
static void look_again(struct symbolizer *symbolizer, struct process *process, const struct look *look)
{
	for (unsigned i = 0; i < PATIENCE_STEPS && !is_mapped(process, look->path); i++) {
		const struct timespec step = { .tv_nsec = STEP_NS };
		int64_t now = clock_mono_ns();
		struct process fresh;

		if (i > 0)
			nanosleep(&step, NULL);
		if (areas_read(symbolizer->proc_root, (pid_t)look->id.pid, NULL, &fresh) < 0)
			return;
		if (!is_still(symbolizer, look->id)) {
			areas_done(&fresh);
			return;
		}
		process_take(symbolizer, process, &fresh);
		process->looked_ns = process->read_ns = now;
	}
}

void look_take(struct symbolizer *symbolizer, struct look *look)
{
	struct process *process;
	int r = look->execution ? take_execution(symbolizer, look, &process) :
				  take_mapping(symbolizer, look, &process);

	if (r < 0)
		return; /* out of memory: read when there is a question */
	process->used = ++symbolizer->used;
	take_file(symbolizer, process, look);
	if (!look->execution && !look->placed)
		look_again(symbolizer, process, look);
	process_look_at_files(symbolizer, process);
	process_weigh(symbolizer, process);
}
