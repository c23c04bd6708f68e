// SPDX-License-Identifier: Apache-2.0
#include "agent/driver/pids.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/macro.h"
#include "proc/proc.h"

#define FOUND \
	"PIDs of the processes' own namespaces in lists of processes, joined where only one can be meant"

enum {
	EVIDENCE = 3, /* readings in a row that show it: a process may begin or end between two calls */
	JOINED_MAX = 1024,
	SAMPLES_MAX = 1024, /* of one reading that are looked at */
	INNER_MAX = 16384, /* processes in PID namespaces */
	FILES_MAX = 1024, /* of one process, that are looked through for a device */
};
#define SCAN_NS (5 * NSEC_PER_SEC)
#define CHECK_NS (10 * NSEC_PER_SEC)

/* A process that is in another PID namespace than this one. */
struct inner_process {
	struct process_id id;
	uint32_t inner; /* its PID there */
};

/* One of these that has utilisation on a device, and is not listed there. */
struct sample {
	struct inner_process process;
	uint16_t entity;
};

/* What a listed PID of a device stands for. */
struct joined {
	uint32_t listed;
	uint16_t entity;
	struct process_id id;
	int64_t checked_ns; /* that it is still this process */
};

struct driver_pids {
	char *root;
	uint32_t attach; /* of the reading that the rest belongs to */
	unsigned evidence;
	bool namespaced;
	struct joined joined[JOINED_MAX];
	uint32_t joined_n;
	struct sample samples[SAMPLES_MAX]; /* of this reading */
	uint32_t samples_n;
	struct inner_process *inner; /* INNER_MAX, once it is needed */
	uint32_t inner_n;
	int64_t scanned_ns;
};

int driver_pids_new(const char *root, struct driver_pids **ret_pids)
{
	struct driver_pids *pids = calloc(1, sizeof(*pids));

	if (!pids)
		return -ENOMEM;
	pids->root = strdup(root);
	if (!pids->root) {
		free(pids);
		return -ENOMEM;
	}
	*ret_pids = pids;
	return 0;
}

void driver_pids_free(struct driver_pids *pids)
{
	if (!pids)
		return;
	free(pids->inner);
	free(pids->root);
	free(pids);
}

/* ---- processes of this machine ---- */

/* False: it does not exist, or is in no PID namespace below ours. */
static bool find_inner(const struct driver_pids *pids, uint32_t pid, struct inner_process *ret_process)
{
	struct proc_identity identity;

	if (proc_identify(pids->root, pid, &identity) < 0 || identity.ns_pid == 0 || identity.ns_pid == pid)
		return false;
	*ret_process = (struct inner_process){ identity.id, identity.ns_pid };
	return true;
}

/* A kernel thread has no executable. */
static bool is_program(const struct driver_pids *pids, uint32_t pid)
{
	char path[256], target[4];

	snprintf(path, sizeof(path), "%s/%u/exe", pids->root, pid);
	return readlink(path, target, sizeof(target)) >= 0 || errno != ENOENT;
}

static bool exists(const struct driver_pids *pids, uint32_t pid)
{
	struct process_id id;

	return proc_process_id(pids->root, pid, &id) == 0;
}

static void scan_processes(struct driver_pids *pids)
{
	int64_t now_ns = clock_boot_ns();
	struct dirent *entry;
	DIR *dir;

	if (pids->scanned_ns && now_ns - pids->scanned_ns < SCAN_NS)
		return;
	pids->scanned_ns = now_ns;
	pids->inner_n = 0;
	if (!pids->inner)
		pids->inner = calloc(INNER_MAX, sizeof(pids->inner[0]));
	dir = pids->inner ? opendir(pids->root) : NULL;
	while (dir && pids->inner_n < INNER_MAX && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    find_inner(pids, (uint32_t)strtoul(entry->d_name, NULL, 10), &pids->inner[pids->inner_n]))
			pids->inner_n++;
	if (dir)
		closedir(dir);
}

/* Whether it has a GPU's device open; false also where this may not be looked at. */
static bool has_device(const struct driver_pids *pids, uint32_t pid)
{
	char path[256], target[64];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%u/fd", pids->root, pid);
	dir = opendir(path);
	for (unsigned n = 0; dir && !found && n < FILES_MAX && (entry = readdir(dir)); n++) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[MAX(length, 0)] = '\0';
		found = strncmp(target, "/dev/nvidia", strlen("/dev/nvidia")) == 0;
	}
	if (dir)
		closedir(dir);
	return found;
}

/* ---- what a listed PID stands for ---- */

static bool driver_lists(const struct reading_process *process)
{
	return process->pid != 0 && process->types != 0;
}

static struct joined *find_joined(struct driver_pids *pids, uint16_t entity, uint32_t listed)
{
	for (uint32_t i = 0; i < pids->joined_n; i++)
		if (pids->joined[i].entity == entity && pids->joined[i].listed == listed)
			return &pids->joined[i];
	return NULL;
}

/* A process that has ended, and whose PID may be another's, is forgotten. */
static uint32_t recall(struct driver_pids *pids, uint16_t entity, uint32_t listed)
{
	struct joined *joined = find_joined(pids, entity, listed);
	int64_t now_ns = clock_boot_ns();
	struct process_id now;

	if (!joined)
		return 0;
	if (now_ns - joined->checked_ns < CHECK_NS)
		return joined->id.pid;
	joined->checked_ns = now_ns;
	if (proc_process_id(pids->root, joined->id.pid, &now) == 0 && process_id_equal(now, joined->id))
		return joined->id.pid;
	*joined = pids->joined[--pids->joined_n];
	return 0;
}

static void remember(struct driver_pids *pids, uint16_t entity, uint32_t listed, struct process_id id)
{
	if (pids->joined_n < JOINED_MAX)
		pids->joined[pids->joined_n++] = (struct joined){ listed, entity, id, clock_boot_ns() };
}

static bool is_joined(const struct driver_pids *pids, const struct reading_process *process)
{
	for (uint32_t i = 0; i < pids->joined_n; i++)
		if (pids->joined[i].id.pid == process->pid && pids->joined[i].entity == process->entity)
			return true;
	return false;
}

static void list_samples(struct driver_pids *pids, const struct reading *reading)
{
	pids->samples_n = 0;
	for (uint32_t i = 0; i < reading->processes_n && pids->samples_n < SAMPLES_MAX; i++) {
		const struct reading_process *process = &reading->processes[i];
		struct sample *sample = &pids->samples[pids->samples_n];

		if (process->pid == 0 || process->types != 0 || is_joined(pids, process) ||
		    !find_inner(pids, process->pid, &sample->process))
			continue;
		sample->entity = process->entity;
		pids->samples_n++;
	}
}

/* The process with utilisation that a listed one may be; *ret_n: how many could be meant. */
static struct process_id by_utilization(const struct driver_pids *pids, const struct reading_process *listed,
					unsigned *ret_n)
{
	struct process_id found = { 0 };

	*ret_n = 0;
	for (uint32_t i = 0; i < pids->samples_n; i++) {
		const struct sample *sample = &pids->samples[i];

		if (sample->entity != listed->entity || sample->process.inner != listed->pid)
			continue;
		found = sample->process.id;
		(*ret_n)++;
	}
	return found;
}

/*
 * Of all processes that have this PID in their namespace, and of the machine's own that has it, the one that
 * uses a GPU, or the only one. *ret_n: how many could be meant.
 */
static struct process_id by_scan(struct driver_pids *pids, uint32_t listed, unsigned *ret_n)
{
	struct process_id found = { 0 }, user = { 0 }, own;
	unsigned n = 0, users = 0;

	scan_processes(pids);
	for (uint32_t i = 0; i < pids->inner_n; i++) {
		if (pids->inner[i].inner != listed)
			continue;
		found = pids->inner[i].id;
		n++;
		if (has_device(pids, found.pid)) {
			user = found;
			users++;
		}
	}
	if (proc_process_id(pids->root, listed, &own) == 0 && is_program(pids, listed)) {
		found = n == 0 ? own : found;
		n++;
		if (has_device(pids, listed)) {
			user = own;
			users++;
		}
	}
	*ret_n = users == 1 ? 1 : n;
	return users == 1 ? user : found;
}

/* ---- detecting ---- */

/* A listed PID that a process with utilisation, which is not listed, has in its namespace. */
static bool shows_it(const struct driver_pids *pids, const struct reading *reading)
{
	unsigned n = 0;

	for (uint32_t i = 0; n == 0 && i < reading->processes_n; i++)
		if (driver_lists(&reading->processes[i]))
			by_utilization(pids, &reading->processes[i], &n);
	return n > 0;
}

/* Without utilisation: nobody has the listed PIDs here, and all are those of processes in namespaces. */
static bool idle_shows_it(struct driver_pids *pids, const struct reading *reading)
{
	bool any = false;

	for (uint32_t i = 0; i < reading->processes_n; i++) {
		const struct reading_process *process = &reading->processes[i];
		unsigned n;

		if (!driver_lists(process))
			continue;
		if (exists(pids, process->pid))
			return false;
		by_scan(pids, process->pid, &n);
		if (n == 0)
			return false;
		any = true;
	}
	return any;
}

/* ---- translating ---- */

/* Puts into the listed entry what the samples say of the same process, and takes theirs out. */
static void merge_samples(struct reading *reading, struct reading_process *listed)
{
	for (uint32_t i = 0; i < reading->processes_n; i++) {
		struct reading_process *sample = &reading->processes[i];

		if (sample == listed || sample->pid != listed->pid || sample->entity != listed->entity ||
		    sample->types != 0)
			continue;
		for (unsigned row = 0; row < PROCESS_METRICS; row++) {
			if (!presence_is(sample->p[row]))
				continue;
			if (presence_is(listed->p[row]))
				listed->v[row] = MAX(listed->v[row], sample->v[row]);
			else
				listed->v[row] = sample->v[row];
			listed->p[row] = sample->p[row];
		}
		sample->pid = 0;
	}
}

/* False: several processes could be meant, and the entry was taken out. */
static bool translate(struct driver_pids *pids, struct reading *reading, struct reading_process *listed)
{
	uint32_t known = recall(pids, listed->entity, listed->pid);
	struct process_id id;
	unsigned n;

	if (!known) {
		id = by_utilization(pids, listed, &n);
		if (n == 0)
			id = by_scan(pids, listed->pid, &n);
		if (n == 0)
			return true; /* nobody's here: a process whose namespace is not below ours */
		if (n == 1) {
			known = id.pid;
			remember(pids, listed->entity, listed->pid, id);
		}
	}
	listed->pid = known;
	if (known)
		merge_samples(reading, listed);
	return known != 0;
}

static void say(struct reading *reading)
{
	size_t used = strlen(reading->unrecognised);

	if (used + strlen("; " FOUND) < sizeof(reading->unrecognised))
		snprintf(reading->unrecognised + used, sizeof(reading->unrecognised) - used, "%s%s",
			 used ? "; " : "", FOUND);
}

static void detect(struct driver_pids *pids, const struct reading *reading)
{
	bool shown = shows_it(pids, reading) || idle_shows_it(pids, reading);

	pids->evidence = shown ? pids->evidence + 1 : 0;
	pids->namespaced = pids->evidence >= EVIDENCE;
}

unsigned driver_pids_translate(struct driver_pids *pids, struct reading *reading)
{
	unsigned left_out = 0;

	if (reading->state != READING_OK)
		return 0;
	if (reading->attach != pids->attach) {
		pids->attach = reading->attach;
		pids->evidence = pids->joined_n = 0;
		pids->namespaced = false;
	}
	list_samples(pids, reading);
	if (!pids->namespaced)
		detect(pids, reading);
	if (!pids->namespaced)
		return 0;
	for (uint32_t i = 0; i < reading->processes_n; i++)
		if (driver_lists(&reading->processes[i]))
			left_out += !translate(pids, reading, &reading->processes[i]);
	say(reading);
	return left_out;
}
