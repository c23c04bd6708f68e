// SPDX-License-Identifier: Apache-2.0
/* Processes and the targets that they map. */
#include <errno.h>
#include <stdlib.h>

#include "proc/proc.h"
#include "trace/target_private.h"

struct target_process *targets_process(struct targets *targets, pid_t pid)
{
	uint32_t index;

	return hashmap_get(&targets->by_pid, (uint64_t)pid, &index) ? &targets->processes[index] : NULL;
}

/* Whether its user may have one more. Commands that trace what their user started have no shares. */
static bool count_process(struct targets *targets, struct target_process *process)
{
	uint32_t uid;

	if (!targets->readers || target_user_of(targets, (pid_t)process->id.pid, &process->user, &uid) < 0 ||
	    !process->user)
		return true;
	process->counted = users_process(&targets->users, process->user, targets->processes_n,
					 TARGET_PROCESSES_MAX, clock_mono_ns()) == USER_MAY;
	return process->counted;
}

static void uncount(struct targets *targets, const struct target_process *process)
{
	if (process->counted)
		users_process_gone(&targets->users, process->user);
}

struct target_process *targets_process_add(struct targets *targets, pid_t pid, uint64_t time_ns)
{
	struct target_process *process = targets_process(targets, pid);
	struct target_process added = { .id.pid = (uint32_t)pid,
					.scan = targets->scan.number,
					.since_ns = time_ns };
	uint32_t cap = targets->processes_cap;

	if (process)
		return process;
	if (targets->processes_n == TARGET_PROCESSES_MAX) {
		targets->stats.overflow++;
		return NULL;
	}
	if (targets->processes_n == cap) {
		cap = cap ? cap * 2 : 16;
		process = reallocarray(targets->processes, cap, sizeof(*process));
		if (!process)
			return NULL;
		targets->processes = process;
		targets->processes_cap = cap;
	}
	if (!count_process(targets, &added)) {
		targets->stats.overflow++;
		return NULL;
	}
	if (hashmap_put(&targets->by_pid, (uint64_t)pid, targets->processes_n) < 0) {
		uncount(targets, &added);
		return NULL;
	}
	proc_process_id(targets->config.proc_root, (uint32_t)pid, &added.id);
	process = &targets->processes[targets->processes_n++];
	*process = added;
	return process;
}

static void keep_held(struct targets *targets, struct target_process *process,
		      bool (*keep)(const struct target_held *held, uint64_t than), uint64_t than)
{
	uint16_t kept = 0;

	for (uint16_t i = 0; i < process->held_n; i++) {
		struct target_held held = process->held[i];

		if (keep && keep(&held, than))
			process->held[kept++] = held;
		else
			target_file_release(targets, held.target);
	}
	process->held_n = kept;
	if (kept == 0) {
		free(process->held);
		process->held = NULL;
	}
}

static bool held_looked(const struct target_held *held, uint64_t looked)
{
	return held->looked == looked;
}

static bool held_since(const struct target_held *held, uint64_t time_ns)
{
	return held->since_ns > time_ns;
}

void targets_process_looked(struct targets *targets, struct target_process *process, uint32_t looked)
{
	keep_held(targets, process, held_looked, looked);
}

void target_process_remove(struct targets *targets, struct target_process *process)
{
	struct target_process *last = &targets->processes[--targets->processes_n];

	uncount(targets, process);
	hashmap_del(&targets->by_pid, process->id.pid);
	if (last == process)
		return;
	*process = *last;
	hashmap_put(&targets->by_pid, process->id.pid, (uint32_t)(process - targets->processes));
}

void targets_process_gone(struct targets *targets, struct target_process *process)
{
	if (process->held_n || process->unread)
		targets->ops->process_gone((pid_t)process->id.pid, false, targets->userdata);
	keep_held(targets, process, NULL, 0);
	target_process_remove(targets, process);
}

void targets_exec(struct targets *targets, struct target_process *process, uint64_t time_ns)
{
	if (process->held_n || process->unread)
		targets->ops->process_gone((pid_t)process->id.pid, true, targets->userdata);
	process->unread = 0;
	keep_held(targets, process, held_since, time_ns);
	targets->stats.looked = false;
	for (uint16_t i = 0; i < process->held_n; i++)
		targets->ops->process((pid_t)process->id.pid, &process->held[i].target->file,
				      process->held[i].since_ns, targets->userdata);
	if (target_process_is_idle(process))
		target_process_remove(targets, process);
}

void target_process_unread(struct targets *targets, pid_t pid, const char *path, enum target_unread why,
			   const char *type, uint64_t time_ns)
{
	struct target_process *process = targets_process_add(targets, pid, time_ns);

	targets->stats.unread[why]++;
	if (!process || process->unread & (1U << why))
		return;
	process->unread |= (uint8_t)(1U << why);
	if (targets->ops->unread)
		targets->ops->unread(pid, path, why, type, targets->userdata);
}

int target_process_hold(struct targets *targets, struct target_process *process, struct target *target,
			const struct target_mapping *mapping)
{
	struct target_held *held;

	for (uint16_t i = 0; i < process->held_n; i++)
		if (process->held[i].target == target) {
			process->held[i].looked = mapping->looked;
			process->held[i].since_ns = MAX(process->held[i].since_ns, mapping->time_ns);
			return 0;
		}
	if (process->held_n == TARGET_PROCESS_FILES_MAX) {
		targets->stats.overflow++;
		return -E2BIG;
	}
	held = reallocarray(process->held, process->held_n + 1U, sizeof(*held));
	if (!held)
		return -ENOMEM;
	process->held = held;
	held[process->held_n++] = (struct target_held){ .target = target,
							.looked = mapping->looked,
							.since_ns = mapping->time_ns };
	target->file.processes++;
	targets->stats.looked = mapping->looked != 0;
	targets->ops->process((pid_t)process->id.pid, &target->file, mapping->time_ns, targets->userdata);
	return 0;
}

void targets_fork(struct targets *targets, pid_t parent, pid_t child, uint64_t time_ns)
{
	const struct target_mapping inherited = { .pid = child, .time_ns = time_ns };
	struct target_process *from = targets_process(targets, parent), *to;
	uint32_t from_index;

	if (!from || child == targets->own_pid ||
	    (from->held_n == 0 && !(from->followed && targets->config.children)))
		return;
	from_index = (uint32_t)(from - targets->processes);
	to = targets_process_add(targets, child, time_ns);
	if (!to)
		return;
	from = &targets->processes[from_index]; /* the array may have moved */
	to->followed = from->followed && targets->config.children;
	if (!to->followed && targets->config.pid) {
		target_process_remove(targets, to);
		return;
	}
	for (uint16_t i = 0; i < from->held_n; i++)
		target_process_hold(targets, to, from->held[i].target, &inherited);
}
