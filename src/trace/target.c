// SPDX-License-Identifier: Apache-2.0
#include "trace/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/target_private.h"

unsigned target_wanted(const struct targets *targets, pid_t pid, const char *path, size_t path_n)
{
	struct target_process *process;
	unsigned roles = library_of_path(path, path_n) & targets->config.roles;

	if (pid == targets->own_pid || path_n == 0)
		return 0;
	if (!targets->config.pid)
		return roles;
	process = targets_process((struct targets *)targets, pid);
	if (!process || !process->followed)
		return 0;
	return roles | (targets->config.roles & TARGET_ROLE_ANY);
}

int targets_mapped(struct targets *targets, const struct target_mapping *mapping)
{
	unsigned roles = target_wanted(targets, mapping->pid, mapping->path, mapping->path_n);
	struct target_process *process;
	struct target *target;
	int r;

	if (!roles)
		return 0;
	r = target_file_get(targets, mapping, &target);
	if (r < 0)
		return r == -ENOENT || r == -EINPROGRESS ? 0 : r;
	process = targets_process_add(targets, mapping->pid, mapping->time_ns);
	r = process ? target_process_hold(targets, process, target, mapping) : -ENOMEM;
	if (r < 0) {
		if (target->file.processes == 0)
			target_file_release(targets, target);
		if (process && target_process_is_idle(process))
			target_process_remove(targets, process);
		return r;
	}
	return 0;
}

int targets_offer(struct targets *targets, pid_t pid, int fd, const char *path)
{
	struct target_mapping mapping = { .pid = pid, .path = path, .path_n = strlen(path) };
	struct target_process *process;
	struct target *target = NULL;
	struct stat st;
	int r, copy;

	if (pid == targets->own_pid)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	r = proc_maps_identify(fd, &mapping.dev, &mapping.ino);
	if (r < 0)
		return r;
	target = target_file_current(targets, mapping.dev, mapping.ino);
	if (target && target->file.fd < 0 && !target_file_unchanged(target, &mapping, &st)) {
		target_file_remove(targets, target);
		target = NULL;
	}
	if (!target) {
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		r = copy < 0 ? -errno : target_file_offer(targets, &mapping, &st, copy, NULL, NULL, &target);
		if (r < 0)
			return r;
	}
	mapping.time_ns = (uint64_t)clock_mono_ns();
	if (target->file.fd < 0 && !targets->config.pid)
		return 0;
	process = targets_process_add(targets, pid, mapping.time_ns);
	if (!process)
		return -ENOMEM;
	process->followed |= targets->config.pid != 0;
	return target->file.fd < 0 ? 0 : target_process_hold(targets, process, target, &mapping);
}

void targets_stats(const struct targets *targets, struct target_stats *ret_stats)
{
	*ret_stats = targets->stats;
	ret_stats->files = targets->targets_n;
	ret_stats->user_sites = targets->users.sites;
	if (targets->readers) {
		readers_stats(targets->readers, &ret_stats->readers);
		ret_stats->overflow += ret_stats->readers.refused;
	}
	ret_stats->processes = 0;
	for (uint32_t i = 0; i < targets->processes_n; i++)
		ret_stats->processes += targets->processes[i].held_n > 0;
}

void targets_free(struct targets *targets)
{
	if (!targets)
		return;
	targets_records_done(targets);
	targets_scan_done(targets);
	target_ask_done(targets);
	for (uint32_t i = 0; i < targets->processes_n; i++)
		free(targets->processes[i].held);
	free(targets->processes);
	target_files_done(targets);
	hashmap_done(&targets->by_pid);
	users_done(&targets->users);
	sd_event_unref(targets->event);
	free(targets);
}

static int follow(struct targets *targets, pid_t pid)
{
	struct target_process *process = targets_process_add(targets, pid, (uint64_t)clock_mono_ns());

	if (!process)
		return -ENOMEM;
	process->followed = true;
	return 0;
}

int targets_new(sd_event *event, const struct target_config *config, const struct target_ops *ops,
		void *userdata, struct targets **ret_targets)
{
	_cleanup_(targets_freep) struct targets *targets = calloc(1, sizeof(*targets));
	int r;

	if (!targets)
		return -ENOMEM;
	targets->records.epoll = -1;
	targets->event = sd_event_ref(event);
	targets->config = *config;
	targets->ops = ops;
	targets->userdata = userdata;
	targets->own_pid = getpid();
	r = target_files_init(targets);
	if (r >= 0 && config->reading)
		r = target_ask_init(targets);
	if (r >= 0 && config->pid)
		r = follow(targets, config->pid);
	if (r >= 0)
		r = targets_scan_init(targets);
	if (r >= 0)
		r = targets_records_init(targets);
	if (r < 0)
		return r;
	*ret_targets = TAKE_PTR(targets);
	return 0;
}
