// SPDX-License-Identifier: Apache-2.0
/*
 * Mappings of processes: executable files and all their areas, read again for each batch of questions.
 */
#include "symbolize/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbolize/file.h"
#include "symbolize/look.h"
#include "symbolize/progress.h"
#include "symbolize/worker.h"
#include "proc/proc.h"

enum { START_SLACK_MS = 50 };

static uint64_t weight(const struct process *process)
{
	uint64_t n = sizeof(*process) + process->areas_n * sizeof(process->areas[0]) +
		     process->mapped_n * sizeof(process->mapped[0]);

	for (uint32_t i = 0; i < process->mapped_n; i++)
		n += strlen(process->mapped[i].path) + 1;
	for (uint32_t i = 0; i < process->areas_n; i++)
		n += process->areas[i].held_n * sizeof(struct held);
	return n;
}

static void drop_maps(struct symbolizer *symbolizer, struct process *process)
{
	for (uint32_t i = 0; i < process->mapped_n; i++)
		if (process->mapped[i].file)
			file_leave(symbolizer, process->mapped[i].file);
	areas_done(process);
}

static void process_free(struct symbolizer *symbolizer, struct process *process)
{
	drop_maps(symbolizer, process);
	symbolizer->processes_bytes -= process->bytes;
	symbolizer_weigh(symbolizer, 0);
	free(process);
}

ssize_t process_peek(pid_t pid, uint64_t address, void *buf, size_t n)
{
	ssize_t got;

	progress_memory();
	got = process_vm_readv(pid, &(struct iovec){ buf, n }, 1,
			       &(struct iovec){ (void *)(uintptr_t)address, n }, 1, 0);

	return got < 0 ? -errno : got;
}

/* ---- maps ---- */

/* Results about files are retained, also for a file that was about to be mapped. */
static void inherit(struct process *now, const struct process *before)
{
	_cleanup_(hashmap_done) struct hashmap index = { 0 };
	bool pending = false;

	/* Without memory they are read again. */
	for (uint32_t i = 0; i < before->mapped_n; i++) {
		const struct mapped *mapped = &before->mapped[i];

		pending |= mapped->ino == 0;
		if (mapped->ino && hashmap_put(&index, mapped_key(mapped->dev, mapped->ino), i) < 0)
			return;
	}
	for (uint32_t i = 0; i < now->mapped_n; i++) {
		struct mapped *mapped = &now->mapped[i];
		uint32_t old = mapped_at(before, &index, mapped->dev, mapped->ino);

		if (old == UINT32_MAX || strcmp(before->mapped[old].path, mapped->path) != 0)
			old = pending ? look_pending(before, mapped) : UINT32_MAX;
		if (old == UINT32_MAX)
			continue;
		mapped->looked = before->mapped[old].looked && before->mapped[old].file;
		mapped->file = before->mapped[old].file;
		if (mapped->file)
			file_use(mapped->file);
	}
}

/* Replaces the mappings by @fresh. */
void process_take(struct symbolizer *symbolizer, struct process *process, struct process *fresh)
{
	inherit(fresh, process);
	if (fresh->areas_left_out > process->areas_left_out)
		symbolizer_count(symbolizer, &symbolizer->stats.left_out,
				 fresh->areas_left_out - process->areas_left_out);
	drop_maps(symbolizer, process);
	process->mapped = fresh->mapped;
	process->mapped_n = fresh->mapped_n;
	process->areas = fresh->areas;
	process->areas_n = fresh->areas_n;
	process->areas_left_out = fresh->areas_left_out;
}

static int read_maps(struct symbolizer *symbolizer, struct process *process)
{
	struct process fresh;
	int r;

	progress_memory();
	r = areas_read(symbolizer->proc_root, (pid_t)process->id.pid, NULL, &fresh);
	if (r < 0)
		return r;
	if (symbolizer_over(symbolizer)) {
		areas_done(&fresh);
		return -ESRCH;
	}
	process_take(symbolizer, process, &fresh);
	return 0;
}

/* While the process lives: opens files with device code, which can then be read after its end. */
void process_look_at_files(struct symbolizer *symbolizer, struct process *process)
{
	for (uint32_t i = 0; i < process->mapped_n && !symbolizer_stopping(symbolizer); i++) {
		struct mapped *mapped = &process->mapped[i];
		struct file *file = mapped_file(symbolizer, process, mapped);
		struct place place = mapped_place(process, mapped);

		if (file && file->device_code == DEVICE_CODE_UNKNOWN)
			(void)file_has_device_code(symbolizer, file, &place);
	}
}

/* ---- which process ---- */

/* A process that started after the incarnation's first call has reused the PID. */
static bool began_later(struct process_id id, uint64_t incarnation)
{
	int64_t start_mono_ns = process_boot_ns(id.start_ticks) - (clock_boot_ns() - clock_mono_ns());

	return start_mono_ns > (int64_t)incarnation + START_SLACK_MS * NSEC_PER_MSEC;
}

static int check(struct symbolizer *symbolizer, struct process *process)
{
	struct process_id now;
	int r = proc_process_id(symbolizer->proc_root, process->id.pid, &now);

	if (r < 0)
		return -ESRCH;
	if (process->id.start_ticks == 0 && process->incarnation != 0 &&
	    began_later(now, process->incarnation))
		return -ESRCH;
	if (!process_id_may_equal(process->id, now))
		return -ESRCH;
	process->id = now;
	return 0;
}

static struct process **process_search(struct symbolizer *symbolizer, uint32_t pid, uint64_t incarnation)
{
	for (uint32_t i = 0; i < symbolizer->processes_n; i++)
		if (symbolizer->processes[i]->id.pid == pid &&
		    symbolizer->processes[i]->incarnation == incarnation &&
		    (incarnation != 0 || !symbolizer->processes[i]->looked))
			return &symbolizer->processes[i];
	return NULL;
}

static void drop(struct symbolizer *symbolizer, struct process **at)
{
	process_free(symbolizer, *at);
	*at = symbolizer->processes[--symbolizer->processes_n];
}

static struct process **least_used(struct symbolizer *symbolizer, const struct process *but)
{
	struct process **old = NULL;

	for (uint32_t i = 0; i < symbolizer->processes_n; i++)
		if (symbolizer->processes[i] != but &&
		    (!old || symbolizer->processes[i]->used < (*old)->used))
			old = &symbolizer->processes[i];
	return old;
}

void process_weigh(struct symbolizer *symbolizer, struct process *process)
{
	uint64_t n = weight(process);
	struct process **old;

	symbolizer->processes_bytes += n - process->bytes;
	process->bytes = n;
	/* Mappings have their own limit, so that they do not displace files' tables. */
	while (symbolizer->processes_bytes > symbolizer->config.limits.bytes / 4 &&
	       (old = least_used(symbolizer, process)))
		drop(symbolizer, old);
	symbolizer_weigh(symbolizer, 0);
}

int process_add(struct symbolizer *symbolizer, struct process_id id, uint64_t incarnation,
		struct process **ret_process)
{
	struct process **processes, *process;

	if (symbolizer->processes_n == PROCESSES)
		drop(symbolizer, least_used(symbolizer, NULL));
	processes =
		reallocarray(symbolizer->processes, symbolizer->processes_n + 1, sizeof(struct process *));
	if (!processes)
		return -ENOMEM;
	symbolizer->processes = processes;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->id = id;
	process->incarnation = incarnation;
	process->made = process->used = ++symbolizer->used;
	symbolizer->processes[symbolizer->processes_n++] = process;
	*ret_process = process;
	return 0;
}

static bool is_another(const struct process *process, const struct symbolizer_question *question)
{
	return !process_id_may_equal(process->id, question->process);
}

/* Finds the process's record, possibly one read before any question, or adds one. */
static int get(struct symbolizer *symbolizer, const struct symbolizer_question *question,
	       struct process **ret_process)
{
	struct process **known = process_search(symbolizer, question->process.pid, question->incarnation),
		       *process;
	int r;

	/* Without an incarnation, programs of one PID can only be distinguished by their process. */
	if (known && question->incarnation == 0 && is_another(*known, question)) {
		drop(symbolizer, known);
		known = NULL;
	}
	process = known ? *known : NULL;
	if (!process || process->read_ns == 0) {
		struct process *looked = look_find(symbolizer, question);

		if (looked && known)
			drop(symbolizer, known);
		if (looked)
			looked->incarnation = question->incarnation;
		process = looked ? looked : process;
	}
	if (!process) {
		r = process_add(symbolizer, question->process, question->incarnation, &process);
		if (r < 0)
			return r;
	}
	if (process->id.start_ticks == 0)
		process->id.start_ticks = question->process.start_ticks;
	*ret_process = process;
	return 0;
}

int process_look(struct symbolizer *symbolizer, const struct symbolizer_question *question, int64_t since_ns,
		 struct process **ret_process)
{
	struct process *process;
	int64_t now = clock_mono_ns();
	int r = get(symbolizer, question, &process);

	if (r < 0)
		return r;
	process->used = ++symbolizer->used;
	/* An exec changes neither PID nor start time: the current program may not be the one in question. */
	if (symbolizer_over(symbolizer))
		process->gone = process->sealed = true;
	if (!process->gone && process->read_ns < since_ns) {
		r = check(symbolizer, process);
		if (r == 0)
			r = read_maps(symbolizer, process);
		/* The program may have changed meanwhile. */
		if (r == 0)
			r = check(symbolizer, process);
		if (r == -ENOMEM)
			return r;
		process->gone = r == -ESRCH || r == -ENOENT;
		if (r == 0) {
			process->read_ns = now;
			process_look_at_files(symbolizer, process);
		}
		process_weigh(symbolizer, process);
	}
	if (process->read_ns == 0)
		return -ESRCH;
	*ret_process = process;
	return 0;
}

void process_remove(struct symbolizer *symbolizer, struct process *process)
{
	for (uint32_t i = 0; i < symbolizer->processes_n; i++)
		if (symbolizer->processes[i] == process) {
			drop(symbolizer, &symbolizer->processes[i]);
			return;
		}
}

void process_drop(struct symbolizer *symbolizer, pid_t pid, uint64_t incarnation)
{
	struct process **known = process_search(symbolizer, pid, incarnation);

	if (known)
		drop(symbolizer, known);
	known = process_search(symbolizer, pid, 0);
	if (known)
		drop(symbolizer, known);
}

void processes_done(struct symbolizer *symbolizer)
{
	while (symbolizer->processes_n > 0)
		drop(symbolizer, &symbolizer->processes[0]);
	free(TAKE_PTR(symbolizer->processes));
}

void processes_drop_file(struct symbolizer *symbolizer, const struct file *file)
{
	for (uint32_t i = 0; i < symbolizer->processes_n; i++)
		for (uint32_t j = 0; j < symbolizer->processes[i]->mapped_n; j++) {
			struct mapped *mapped = &symbolizer->processes[i]->mapped[j];

			if (mapped->file == file) {
				mapped->file = NULL;
				mapped->looked = false;
			}
		}
}

struct area *process_area(struct process *process, uint64_t address)
{
	uint32_t low = LOWER_BOUND(process->areas_n, middle, process->areas[middle].end <= address);

	return low < process->areas_n && process->areas[low].start <= address ? &process->areas[low] : NULL;
}

/* ---- files and where they lie ---- */

struct place mapped_place(const struct process *process, const struct mapped *mapped)
{
	return (struct place){ .pid = (pid_t)process->id.pid,
			       .start = mapped->start,
			       .end = mapped->end,
			       .dev = mapped->dev,
			       .ino = mapped->ino,
			       .path = mapped->path };
}

/*
 * A file that another process maps and that is held open: its inode cannot have been reused. A forked child
 * has its parent's files.
 */
static int find_held(const struct symbolizer *symbolizer, const struct mapped *mapped, struct file **ret_file)
{
	for (uint32_t i = 0; i < symbolizer->processes_n; i++) {
		const struct process *other = symbolizer->processes[i];
		uint32_t at = mapped->ino ? mapped_find(other, mapped->dev, mapped->ino) : UINT32_MAX;

		if (at == UINT32_MAX || !other->mapped[at].file || other->mapped[at].file->fd < 0 ||
		    !STRV_EQ(other->mapped[at].path, mapped->path))
			continue;
		*ret_file = other->mapped[at].file;
		return 0;
	}
	return -ENOENT;
}

struct file *mapped_file(struct symbolizer *symbolizer, struct process *process, struct mapped *mapped)
{
	struct place place = mapped_place(process, mapped);
	struct file *file;

	if (mapped->looked || !mapped->executable)
		return mapped->file;
	/* A failure is not final: permission and memory may change. */
	mapped->looked = true;
	if (file_find(symbolizer, &place, &file) == 0 || find_held(symbolizer, mapped, &file) == 0) {
		mapped->file = file;
		file_use(file);
	}
	return mapped->file;
}

/* Loaded ranges may share a page of the file: executable ones come first. */
int file_linked(const struct file *file, uint64_t offset, uint64_t *ret_address)
{
	for (uint32_t i = 0; i < file->loads_n; i++) {
		const struct elf_range *load = &file->loads[i];

		if (load->executable && offset >= load->offset && offset - load->offset < load->size) {
			*ret_address = load->address + (offset - load->offset);
			return 0;
		}
	}
	return -ENOENT;
}

int area_bias(const struct area *area, const struct file *file, uint64_t *ret_bias)
{
	uint64_t n = area->end - area->start;

	for (uint32_t i = 0; i < file->loads_n; i++) {
		const struct elf_range *load = &file->loads[i];

		if (!load->executable || load->offset + load->size <= area->offset ||
		    (load->offset > area->offset && load->offset - area->offset >= n))
			continue;
		*ret_bias = area->start - area->offset + load->offset - load->address;
		return 0;
	}
	return -ENOENT;
}
