// SPDX-License-Identifier: Apache-2.0
/* What lies where in a process: its executable files and all their areas, read anew for each batch of questions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "naming/private.h"
#include "proc/maps.h"
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

void process_weigh(struct naming *naming, struct process *process)
{
	uint64_t n = weight(process);

	naming_weigh(naming, (int64_t)(n - process->bytes));
	process->bytes = n;
}

static void drop_maps(struct naming *naming, struct process *process)
{
	for (uint32_t i = 0; i < process->areas_n; i++)
		free(process->areas[i].held);
	for (uint32_t i = 0; i < process->mapped_n; i++) {
		if (process->mapped[i].file)
			file_leave(naming, process->mapped[i].file);
		free(process->mapped[i].path);
	}
	free(TAKE_PTR(process->areas));
	free(TAKE_PTR(process->mapped));
	process->areas_n = process->mapped_n = 0;
}

static void process_free(struct naming *naming, struct process *process)
{
	drop_maps(naming, process);
	naming_weigh(naming, -(int64_t)process->bytes);
	free(process);
}

ssize_t process_peek(pid_t pid, uint64_t address, void *buf, size_t n)
{
	ssize_t got = process_vm_readv(pid, &(struct iovec){ buf, n }, 1,
				       &(struct iovec){ (void *)(uintptr_t)address, n }, 1, 0);

	return got < 0 ? -errno : got;
}

/* ---- maps ---- */

static uint32_t find_mapped(const struct process *process, uint64_t dev, uint64_t ino)
{
	/* Areas of one file follow one another, mostly. */
	for (uint32_t i = process->mapped_n; i > 0; i--)
		if (process->mapped[i - 1].dev == dev && process->mapped[i - 1].ino == ino)
			return i - 1;
	return UINT32_MAX;
}

static char *path_of(const struct proc_map *map)
{
	static const char deleted[] = " (deleted)";
	size_t n = map->path_n;

	if (n > sizeof(deleted) - 1 &&
	    memcmp(map->path + n - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1) == 0)
		n -= sizeof(deleted) - 1;
	return strndup(map->path, n);
}

static int add_mapped(struct process *process, const struct proc_map *map, uint32_t *cap, uint32_t *ret_index)
{
	struct mapped *mapped;

	if (process->mapped_n == *cap) {
		uint32_t more = *cap ? *cap * 2 : 32;

		mapped = reallocarray(process->mapped, more, sizeof(*mapped));
		if (!mapped)
			return -ENOMEM;
		process->mapped = mapped;
		*cap = more;
	}
	mapped = &process->mapped[process->mapped_n];
	*mapped = (struct mapped){ .dev = map->dev, .ino = map->ino, .path = path_of(map) };
	if (!mapped->path)
		return -ENOMEM;
	*ret_index = process->mapped_n++;
	return 0;
}

struct caps {
	uint32_t mapped, areas;
};

static int add_area(struct process *process, const struct proc_map *map, struct caps *caps)
{
	uint32_t index = find_mapped(process, map->dev, map->ino);
	struct area *areas;
	int r;

	if (process->areas_n == AREAS_MAX) {
		process->areas_left_out++;
		return 0;
	}
	if (process->areas_n == caps->areas) {
		uint32_t more = caps->areas ? caps->areas * 2 : 64;

		areas = reallocarray(process->areas, more, sizeof(*areas));
		if (!areas)
			return -ENOMEM;
		process->areas = areas;
		caps->areas = more;
	}
	if (index == UINT32_MAX) {
		r = add_mapped(process, map, &caps->mapped, &index);
		if (r < 0)
			return r;
	}
	if (map->executable && !process->mapped[index].executable) {
		process->mapped[index].executable = true;
		process->mapped[index].start = map->start;
		process->mapped[index].end = map->end;
	}
	process->areas[process->areas_n++] = (struct area){
		.start = map->start,
		.end = map->end,
		.offset = map->offset,
		.mapped = index,
		.executable = map->executable,
	};
	return 0;
}

/* Data files are of no interest. */
static void drop_data(struct process *process)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < process->areas_n; i++)
		if (process->mapped[process->areas[i].mapped].executable)
			process->areas[n++] = process->areas[i];
	process->areas_n = n;
}

/* What was found out about files stays. */
static void inherit(struct process *now, const struct process *before)
{
	for (uint32_t i = 0; i < now->mapped_n; i++) {
		struct mapped *mapped = &now->mapped[i];
		uint32_t old = find_mapped(before, mapped->dev, mapped->ino);

		if (old == UINT32_MAX || strcmp(before->mapped[old].path, mapped->path) != 0)
			continue;
		mapped->looked = before->mapped[old].looked && before->mapped[old].file;
		mapped->file = before->mapped[old].file;
		if (mapped->file)
			file_use(mapped->file);
	}
}

static int read_maps(struct naming *naming, struct process *process)
{
	struct process fresh = { .pid = process->pid };
	_cleanup_(proc_maps_done) struct proc_maps maps;
	struct caps caps = { 0 };
	struct proc_map map;
	int r;

	maps.fd = -1;
	r = proc_maps_open(naming->proc_root, process->pid, &maps);
	while (r >= 0 && (r = proc_maps_next(&maps, &map)) > 0)
		if (map.ino != 0) {
			r = add_area(&fresh, &map, &caps);
			if (r < 0)
				break;
		}
	if (r == 0 && fresh.areas_n == 0)
		r = -ESRCH; /* it has ended, and waits for its parent */
	if (r < 0) {
		drop_maps(naming, &fresh);
		return r;
	}
	drop_data(&fresh);
	inherit(&fresh, process);
	drop_maps(naming, process);
	process->mapped = fresh.mapped;
	process->mapped_n = fresh.mapped_n;
	process->areas = fresh.areas;
	process->areas_n = fresh.areas_n;
	process->areas_left_out = fresh.areas_left_out;
	return 0;
}

/* While it lives: files that have device code can be read when it has ended, then. */
static void look_at_files(struct naming *naming, struct process *process)
{
	for (uint32_t i = 0; i < process->mapped_n && !naming_stopping(naming); i++) {
		struct mapped *mapped = &process->mapped[i];
		struct file *file = mapped_file(naming, process, mapped);
		struct place place = mapped_place(process, mapped);

		if (file && file->device_code == DEVICE_CODE_UNKNOWN)
			(void)file_has_device_code(naming, file, &place);
	}
}

/* ---- which process ---- */

/* A process that began after the incarnation's first call has got its PID later. */
static bool began_later(uint64_t start_ticks, uint64_t incarnation)
{
	int64_t start_boot_ns = (int64_t)(start_ticks * (uint64_t)(NSEC_PER_SEC / sysconf(_SC_CLK_TCK)));
	int64_t start_mono_ns = start_boot_ns - (clock_boot_ns() - clock_mono_ns());

	return start_mono_ns > (int64_t)incarnation + START_SLACK_MS * NSEC_PER_MSEC;
}

static int check(struct naming *naming, struct process *process)
{
	uint64_t ticks;
	int r = proc_start_ticks(naming->proc_root, (uint32_t)process->pid, &ticks);

	if (r < 0)
		return -ESRCH;
	if (process->start_ticks == 0 && began_later(ticks, process->incarnation))
		return -ESRCH;
	if (process->start_ticks != 0 && process->start_ticks != ticks)
		return -ESRCH;
	process->start_ticks = ticks;
	return 0;
}

static struct process **find(struct naming *naming, pid_t pid, uint64_t incarnation)
{
	for (uint32_t i = 0; i < naming->processes_n; i++)
		if (naming->processes[i]->pid == pid && naming->processes[i]->incarnation == incarnation)
			return &naming->processes[i];
	return NULL;
}

static void drop(struct naming *naming, struct process **at)
{
	process_free(naming, *at);
	*at = naming->processes[--naming->processes_n];
}

static int add(struct naming *naming, pid_t pid, uint64_t incarnation, struct process **ret_process)
{
	struct process **processes, *process;

	if (naming->processes_n == PROCESSES) {
		struct process **old = &naming->processes[0];

		for (uint32_t i = 1; i < naming->processes_n; i++)
			if (naming->processes[i]->used < (*old)->used)
				old = &naming->processes[i];
		drop(naming, old);
	}
	processes = reallocarray(naming->processes, naming->processes_n + 1, sizeof(struct process *));
	if (!processes)
		return -ENOMEM;
	naming->processes = processes;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->pid = pid;
	process->incarnation = incarnation;
	naming->processes[naming->processes_n++] = process;
	*ret_process = process;
	return 0;
}

int process_look(struct naming *naming, pid_t pid, uint64_t incarnation, int64_t since_ns,
		 struct process **ret_process)
{
	struct process **known = find(naming, pid, incarnation), *process;
	int64_t now = clock_mono_ns();
	int r;

	if (known) {
		process = *known;
	} else {
		r = add(naming, pid, incarnation, &process);
		if (r < 0)
			return r;
	}
	process->used = ++naming->used;
	if (!process->gone && process->read_ns < since_ns) {
		r = check(naming, process);
		if (r == 0)
			r = read_maps(naming, process);
		/* It may have become another one in between. */
		if (r == 0)
			r = check(naming, process);
		if (r == -ENOMEM)
			return r;
		process->gone = r == -ESRCH || r == -ENOENT;
		if (r == 0) {
			process->read_ns = now;
			look_at_files(naming, process);
		}
		process_weigh(naming, process);
	}
	if (process->read_ns == 0)
		return -ESRCH;
	*ret_process = process;
	return 0;
}

void process_drop(struct naming *naming, pid_t pid, uint64_t incarnation)
{
	struct process **known = find(naming, pid, incarnation);

	if (known)
		drop(naming, known);
}

void processes_done(struct naming *naming)
{
	while (naming->processes_n > 0)
		drop(naming, &naming->processes[0]);
	free(TAKE_PTR(naming->processes));
}

void processes_drop_file(struct naming *naming, const struct file *file)
{
	for (uint32_t i = 0; i < naming->processes_n; i++)
		for (uint32_t j = 0; j < naming->processes[i]->mapped_n; j++) {
			struct mapped *mapped = &naming->processes[i]->mapped[j];

			if (mapped->file == file) {
				mapped->file = NULL;
				mapped->looked = false;
			}
		}
}

struct area *process_area(struct process *process, uint64_t address)
{
	uint32_t low = 0, high = process->areas_n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (process->areas[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < process->areas_n && process->areas[low].start <= address ? &process->areas[low] : NULL;
}

/* ---- files and where they lie ---- */

struct place mapped_place(const struct process *process, const struct mapped *mapped)
{
	return (struct place){ .pid = process->pid,
			       .start = mapped->start,
			       .end = mapped->end,
			       .dev = mapped->dev,
			       .ino = mapped->ino,
			       .path = mapped->path };
}

struct file *mapped_file(struct naming *naming, struct process *process, struct mapped *mapped)
{
	struct place place = mapped_place(process, mapped);
	struct file *file;

	if (mapped->looked || !mapped->executable)
		return mapped->file;
	/* It cannot be refused for good: permission and memory come and go. */
	mapped->looked = true;
	if (file_find(naming, &place, &file) == 0) {
		mapped->file = file;
		file_use(file);
	}
	return mapped->file;
}

/* Loaded ranges may share a page of the file: what is executable goes first. */
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
