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

enum {
	STAT_BYTES = 1024,
	PASSWD_BYTES = 4096,
	USERS_MAX = 4096,
	ENVIRON_BYTES = 256 << 10,
	COMMAND_SAMPLES = 10
};

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

/*
 * Its arguments, as it has them now: some programs say there what they do. A reader waits for the
 * process's memory, which one that waits itself may hold.
 */
static void read_command(struct host_process *process)
{
	_cleanup_close_ int fd = -1;
	char path[40], text[COMMAND_TEXT];
	const char *program = text;
	ssize_t n;

	if (process->state == 'D')
		return;
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cmdline", process->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	if (n <= 0)
		return;
	text[n] = '\0';
	if (text[0] == '/')
		program = strrchr(text, '/') + 1;
	for (char *c = text; c < text + n - 1; c++)
		*c = *c ? *c : ' ';
	snprintf(process->command, sizeof(process->command), "%s", program);
}

/* Read anew now and then, not of all at the same time; where it cannot be read now it is as it was. */
static void follow_command(struct host_process *process, const struct host_process *before)
{
	bool same = before && before->start_ticks == process->start_ticks;

	if (same)
		memcpy(process->command, before->command, sizeof(process->command));
	if (same && before->command_age < COMMAND_SAMPLES) {
		process->command_age = before->command_age + 1;
		return;
	}
	process->command_age = same ? 0 : process->pid % COMMAND_SAMPLES;
	read_command(process);
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
		follow_command(to, host_find(before, before_n, pid));
		kept++;
	}
	sample->processes_n = kept;
	return 0;
}

/* ---- environment ---- */

/* What decides which devices a process sees, and how libraries use them. Nothing else of it is shown. */
static bool matters(const char *variable)
{
	static const char *const names[] = {
		"CUDA_VISIBLE_DEVICES=",
		"NVIDIA_VISIBLE_DEVICES=",
		"NVIDIA_DRIVER_CAPABILITIES=",
		"CUDA_DEVICE_ORDER=",
		"CUDA_LAUNCH_BLOCKING=",
		"CUDA_MODULE_LOADING=",
		"CUDA_MPS_",
		"PYTORCH_CUDA_ALLOC_CONF=",
		"NCCL_",
		"OMP_NUM_THREADS=",
		"RANK=",
		"LOCAL_RANK=",
		"WORLD_SIZE=",
		"SLURM_JOB_ID=",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

void host_read_environment(struct sample *sample)
{
	_cleanup_free_ char *text = malloc(ENVIRON_BYTES);
	size_t length = 0, used = 0;
	char path[40];
	int r;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/environ", sample->watched_pid);
	r = text ? read_file(path, text, ENVIRON_BYTES, &length) : -ENOMEM;
	if (r < 0) {
		snprintf(sample->environment, sizeof(sample->environment), "not known: %s", strerror(-r));
		return;
	}
	for (size_t at = 0; at < length && used + 1 < sizeof(sample->environment);
	     at += strlen(text + at) + 1)
		if (matters(text + at))
			used += (size_t)snprintf(sample->environment + used,
						 sizeof(sample->environment) - used, "%s%.160s",
						 used > 0 ? "  " : "", text + at);
	utf8_sanitize(sample->environment);
}
