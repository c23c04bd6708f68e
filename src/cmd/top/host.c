// SPDX-License-Identifier: Apache-2.0
#include "cmd/top/host.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"

enum { STAT_BYTES = 1024, PASSWD_BYTES = 4096, USERS_MAX = 4096 };

const struct host_process *host_find(const struct host_process *processes, uint32_t n, uint32_t pid)
{
	size_t at = LOWER_BOUND(n, i, processes[i].pid < pid);

	return at < n && processes[at].pid == pid ? &processes[at] : NULL;
}

static bool read_host_process(uint32_t pid, struct host_process *ret_process)
{
	char path[32], text[STAT_BYTES];
	struct process_stat stat;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	if (read_file(path, text, sizeof(text), &length) < 0 || process_stat_parse(text, length, &stat) < 0)
		return false;
	*ret_process = (struct host_process){
		.pid = pid,
		.state = stat.state,
		.start_ticks = stat.start_ticks,
		.cpu_ticks = stat.user_ticks + stat.kernel_ticks,
		.threads = stat.threads,
		.resident_bytes = stat.resident_pages * (uint64_t)sysconf(_SC_PAGESIZE),
		.cores = -1,
	};
	return true;
}

static int compare_processes(const void *a, const void *b)
{
	const struct host_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* One of another incarnation of the PID says nothing about it. */
static void compare_cpu(struct host_process *process, const struct host_process *before, int64_t elapsed_ns)
{
	if (!before || before->start_ticks != process->start_ticks || elapsed_ns <= 0 ||
	    process->cpu_ticks < before->cpu_ticks)
		return;
	process->cores = (double)process_boot_ns(process->cpu_ticks - before->cpu_ticks) / (double)elapsed_ns;
}

static bool has_user(const struct sample *sample, uint32_t uid)
{
	for (uint32_t i = 0; i < sample->users_n; i++)
		if (sample->users[i].uid == uid)
			return true;
	return false;
}

static void name_user(struct sample *sample, uint32_t uid)
{
	struct host_user *user = &sample->users[sample->users_n];
	struct passwd entry, *found = NULL;
	char buffer[PASSWD_BYTES];

	if (uid == UINT32_MAX || sample->users_n == USERS_MAX || has_user(sample, uid))
		return;
	user->uid = uid;
	sample->users_n++;
	if (getpwuid_r((uid_t)uid, &entry, buffer, sizeof(buffer), &found) == 0 && found)
		snprintf(user->name, sizeof(user->name), "%s", found->pw_name);
	else
		snprintf(user->name, sizeof(user->name), "%" PRIu32, uid);
	utf8_sanitize(user->name);
}

int host_fill(struct sample *sample, const struct host_process *before, uint32_t before_n,
	      int64_t before_mono_ns)
{
	const struct snapshot *s = sample->snapshot;
	uint32_t n = s ? s->processes_n : 0, kept = 0;

	sample->processes = calloc(n + 1, sizeof(*sample->processes));
	sample->users = calloc(MIN(n, (uint32_t)USERS_MAX) + 1, sizeof(*sample->users));
	if (!sample->processes || !sample->users)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		name_user(sample, s->processes[i].uid);
		/* A process on several GPUs is listed several times, one after the other or not. */
		sample->processes[i].pid = s->processes[i].id.pid;
	}
	qsort(sample->processes, n, sizeof(*sample->processes), compare_processes);
	for (uint32_t i = 0; i < n; i++) {
		struct host_process *to = &sample->processes[kept];
		uint32_t pid = sample->processes[i].pid;

		if ((kept > 0 && to[-1].pid == pid) || !read_host_process(pid, to))
			continue;
		compare_cpu(to, host_find(before, before_n, pid), sample->mono_ns - before_mono_ns);
		kept++;
	}
	sample->processes_n = kept;
	return 0;
}
