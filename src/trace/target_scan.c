// SPDX-License-Identifier: Apache-2.0
/*
 * Reads /proc in slices of 5 ms, so that other users of the thread (the ring of events) wait no longer. A
 * queue holds the processes whose maps are to be read; a scan refills it with all processes as it runs empty.
 * A process with very many memory areas takes several slices. Where helpers read (struct readers), one of
 * them is asked about each process, since the kernel blocks a reader of maps for as long as a process holds
 * its mmap lock for writing.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "proc/proc.h"
#include "trace/target_private.h"

enum {
	SCAN_SLICE_NS = 5 * 1000 * 1000,
	SCAN_REST_NS = 1000 * 1000, /* between slices */
	SCAN_SHARE = 20, /* a scan costs at most 1/20 of the time between two of them */
	SCAN_CLOCK_AREAS = 64, /* memory areas between two readings of the clock */
	SCAN_BATCH = 256, /* processes put into the queue at once */
};
#define SCAN_INTERVAL_NS NSEC_PER_SEC

static int enqueue(struct targets *targets, pid_t pid)
{
	struct target_scan *scan = &targets->scan;

	if (scan->queue_n == TARGET_QUEUE_MAX) {
		targets->stats.overflow++;
		return -E2BIG;
	}
	scan->queue[(scan->queue_head + scan->queue_n++) % TARGET_QUEUE_MAX] = pid;
	return 0;
}

/* Relative to now, since this iteration of the event loop may have begun a slice ago. */
static void arm(struct targets *targets, int64_t in_ns)
{
	sd_event_source_set_time(targets->scan.timer, (uint64_t)((clock_mono_ns() + in_ns) / NSEC_PER_USEC));
	sd_event_source_set_enabled(targets->scan.timer, SD_EVENT_ONESHOT);
}

/* ---- one process ---- */

static int look_begin(struct targets *targets, pid_t pid)
{
	struct target_scan *scan = &targets->scan;
	struct target_process *process = targets_process(targets, pid);
	struct process_id now;
	int r;

	scan->look_ns = (uint64_t)clock_mono_ns();
	if (process) {
		process->scan = scan->number;
		r = proc_process_id(targets->config.proc_root, (uint32_t)pid, &now);
		if (r < 0 || !process_id_equal(now, process->id)) {
			targets_process_gone(targets, process);
			if (r < 0 || targets->config.pid)
				return -ESRCH;
		}
	}
	scan->pid = pid;
	if (++scan->looks == 0)
		scan->looks = 1;
	if (!targets->readers)
		return proc_maps_open(targets->config.proc_root, pid, scan->maps);
	/* The answer may come before the call returns: that no helper can be started. */
	scan->asked = true;
	r = target_ask_look(targets, pid);
	if (r < 0)
		scan->asked = false;
	if (r == -EAGAIN)
		targets_scan_again(targets);
	return r;
}

static void look_mapping(struct targets *targets, const struct proc_map *map)
{
	struct target_scan *scan = &targets->scan;
	const struct target_mapping mapping = { .pid = scan->pid,
						.start = map->start,
						.end = map->end,
						.dev = map->dev,
						.ino = map->ino,
						.path = map->path,
						.path_n = map->path_n,
						.looked = scan->looks,
						.time_ns = scan->look_ns };

	if (target_wanted(targets, scan->pid, map->path, map->path_n))
		targets_mapped(targets, &mapping);
}

static void look_end(struct targets *targets, bool complete)
{
	struct target_scan *scan = &targets->scan;
	struct target_process *process = targets_process(targets, scan->pid);

	if (complete && process) {
		process->looked_ns = scan->look_ns;
		targets_process_looked(targets, process, scan->looks);
	}
	proc_maps_done(scan->maps);
}

/* 1: the process is done; 0: the slice has ended. */
static int look_on(struct targets *targets, int64_t until_ns)
{
	struct target_scan *scan = &targets->scan;
	struct proc_map map;
	unsigned areas = 0;
	int r;

	while ((r = proc_maps_next(scan->maps, &map)) > 0) {
		if (map.executable && map.ino)
			look_mapping(targets, &map);
		if (++areas % SCAN_CLOCK_AREAS == 0 && clock_mono_ns() >= until_ns)
			return 0;
	}
	look_end(targets, r == 0);
	return 1;
}

void targets_looked(struct targets *targets, pid_t pid, int error, const void *message, size_t n)
{
	struct target_scan *scan = &targets->scan;
	struct files_area area;
	const char *path;
	size_t at = 0;

	if (!scan->asked || pid != scan->pid)
		return;
	scan->asked = false;
	targets->stats.overflow += files_areas_left_out(message, n);
	while (message && files_areas_next(message, n, &at, &area, &path)) {
		const struct proc_map map = { .start = area.start,
					      .end = area.end,
					      .dev = area.dev,
					      .ino = area.ino,
					      .executable = true,
					      .path = path,
					      .path_n = area.path_n };

		look_mapping(targets, &map);
	}
	look_end(targets, error == 0);
	/* The rest of the queue in the next iteration of the loop: a slice may have called this. */
	arm(targets, 0);
}

/* ---- all processes ---- */

/* Follows the children of all its threads. */
static void queue_children(struct targets *targets, pid_t pid)
{
	struct target_process *child;
	char path[512], text[16];
	struct dirent *entry;
	uint64_t value;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%d/task", targets->config.proc_root, (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		FILE *file;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "%s/%d/task/%.16s/children", targets->config.proc_root, (int)pid,
			 entry->d_name);
		file = fopen(path, "re");
		while (file && fscanf(file, "%15s", text) == 1) {
			if (parse_u64(text, &value) < 0 || value > INT32_MAX)
				break;
			child = targets_process_add(targets, (pid_t)value, (uint64_t)clock_mono_ns());
			if (child && !child->followed) {
				child->followed = true;
				enqueue(targets, (pid_t)value);
			}
		}
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
}

/* Adds processes to the queue; false: none is left. */
static bool refill(struct targets *targets)
{
	struct target_scan *scan = &targets->scan;
	struct dirent *entry;
	uint64_t pid;

	if (!scan->proc)
		return false;
	for (unsigned i = 0; i < SCAN_BATCH && (entry = readdir(scan->proc));)
		if (parse_u64(entry->d_name, &pid) == 0 && pid <= INT32_MAX &&
		    (pid_t)pid != targets->own_pid) {
			enqueue(targets, (pid_t)pid);
			i++;
		}
	if (scan->queue_n == 0) {
		closedir(scan->proc);
		scan->proc = NULL;
	}
	return scan->queue_n > 0;
}

static void scan_end(struct targets *targets)
{
	struct target_scan *scan = &targets->scan;

	for (uint32_t i = targets->processes_n; i-- > 0;)
		if (targets->processes[i].scan != scan->number &&
		    !proc_is_alive(targets->config.proc_root, targets->processes[i].id.pid))
			targets_process_gone(targets, &targets->processes[i]);
	scan->running = false;
	scan->ended_ns = clock_mono_ns();
	targets->stats.scans++;
}

/* Schedules the next scan, where one is wanted or there are no records. */
static void schedule_next(struct targets *targets)
{
	struct target_scan *scan = &targets->scan;
	int64_t pause = MAX((int64_t)SCAN_INTERVAL_NS, scan->cost_ns * SCAN_SHARE);

	if (scan->wanted || !targets->stats.by_records)
		arm(targets, MAX(scan->ended_ns + pause - clock_mono_ns(), (int64_t)0));
}

static int scan_begin(struct targets *targets)
{
	struct target_scan *scan = &targets->scan;

	if (scan->running)
		return 0;
	scan->wanted = false;
	if (!targets->config.pid) {
		scan->proc = opendir(targets->config.proc_root);
		if (!scan->proc)
			return -errno;
	}
	scan->running = true;
	scan->number++;
	scan->cost_ns = 0;
	for (uint32_t i = 0; targets->config.pid && i < targets->processes_n; i++)
		enqueue(targets, (pid_t)targets->processes[i].id.pid);
	return 0;
}

/* Reads maps until the slice has ended or nothing is left to read. */
static void slice(struct targets *targets)
{
	struct target_scan *scan = &targets->scan;
	int64_t begin_ns = clock_mono_ns(), until_ns = begin_ns + SCAN_SLICE_NS;
	pid_t pid;

	while (clock_mono_ns() < until_ns && !scan->asked) {
		if (scan->maps->fd >= 0) {
			if (look_on(targets, until_ns) == 0)
				break;
			continue;
		}
		if (scan->queue_n == 0 && !refill(targets)) {
			if (scan->running)
				scan_end(targets);
			break;
		}
		pid = scan->queue[scan->queue_head];
		scan->queue_head = (scan->queue_head + 1) % TARGET_QUEUE_MAX;
		scan->queue_n--;
		look_begin(targets, pid);
		if (targets->config.pid && targets->config.children)
			queue_children(targets, pid);
	}
	scan->cost_ns += clock_mono_ns() - begin_ns;
	if (scan->asked)
		return; /* goes on with the answer */
	if (scan->running || scan->maps->fd >= 0 || scan->queue_n)
		arm(targets, SCAN_REST_NS);
	else
		schedule_next(targets);
}

static int on_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
	struct targets *targets = userdata;

	if ((targets->scan.wanted || !targets->stats.by_records) && targets->scan.queue_n == 0)
		scan_begin(targets);
	slice(targets);
	return 0;
}

void targets_look(struct targets *targets, pid_t pid)
{
	if (enqueue(targets, pid) == 0)
		arm(targets, 0);
}

void targets_scan_again(struct targets *targets)
{
	if (targets->scan.wanted)
		return;
	targets->scan.wanted = true;
	if (!targets->scan.running)
		schedule_next(targets);
}

int targets_scan(struct targets *targets)
{
	int r = scan_begin(targets);

	if (r < 0)
		return r;
	slice(targets);
	return 0;
}

int targets_scan_init(struct targets *targets)
{
	struct target_scan *scan = &targets->scan;
	int r;

	scan->queue = calloc(TARGET_QUEUE_MAX, sizeof(*scan->queue));
	scan->maps = malloc(sizeof(*scan->maps));
	if (!scan->queue || !scan->maps) {
		free(TAKE_PTR(scan->maps));
		return -ENOMEM;
	}
	scan->maps->fd = -1;
	r = sd_event_add_time(targets->event, &scan->timer, CLOCK_MONOTONIC, 0, 1, on_timer, targets);
	if (r < 0)
		return r;
	return sd_event_source_set_enabled(scan->timer, SD_EVENT_OFF);
}

void targets_scan_done(struct targets *targets)
{
	struct target_scan *scan = &targets->scan;

	sd_event_source_disable_unref(scan->timer);
	if (scan->proc)
		closedir(scan->proc);
	if (scan->maps)
		proc_maps_done(scan->maps);
	free(scan->maps);
	free(scan->queue);
}
