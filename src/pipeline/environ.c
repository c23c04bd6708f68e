// SPDX-License-Identifier: Apache-2.0
/*
 * Environment variables that select a process's devices, for processes whose cuInit was not seen or that are
 * in a container. They lie in the process's memory, so the helper that names kernels reads them
 * (src/symbolize/client.h). A command that runs for milliseconds has ended when its launches are processed;
 * "gpusonde trace" stops it while it maps its libraries and stores them then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pipeline/private.h"
#include "proc/environment.h"
#include "proc/proc.h"

_Static_assert((int)CUDA_ENVIRONMENT_KEPT == PROC_ENVIRONMENT_KEPT &&
		       (int)CUDA_ENVIRONMENT_CHANGED == PROC_ENVIRONMENT_CHANGED &&
		       (int)CUDA_ENVIRONMENT_UNKNOWN == PROC_ENVIRONMENT_UNKNOWN,
	       "one is passed on as the other");

enum { ENTRIES = 256, WAIT_MS = 10 };
/* An answer takes less than a millisecond. */
#define PATIENCE_NS (250 * NSEC_PER_MSEC)

struct environment {
	uint32_t tgid; /* 0: none */
	bool answered;
	bool kept; /* since its process may have ended */
	struct proc_identity *identity; /* of a kept one */
	int state; /* enum cuda_environment, or -errno */
	uint32_t n;
	char *text;
};

struct environments {
	struct environment of[ENTRIES];
	uint32_t next;
	uint32_t waiting; /* without an answer */
};

static struct environment *find_entry(struct environments *all, uint32_t tgid)
{
	for (uint32_t i = 0; all && i < ENTRIES; i++)
		if (all->of[i].tgid == tgid)
			return &all->of[i];
	return NULL;
}

static void clear_entry(struct environments *all, struct environment *entry)
{
	all->waiting -= entry->tgid && !entry->answered;
	free(entry->text);
	free(entry->identity);
	*entry = (struct environment){ 0 };
}

static struct environment *add_entry(struct pipeline *pipeline, uint32_t tgid)
{
	struct environments *all = pipeline->environments;
	struct environment *entry;

	if (!all)
		all = pipeline->environments = calloc(1, sizeof(*all));
	if (!all)
		return NULL;
	entry = find_entry(all, tgid);
	if (!entry)
		entry = &all->of[all->next++ % ENTRIES];
	clear_entry(all, entry);
	entry->tgid = tgid;
	all->waiting++;
	return entry;
}

/* ---- the helper's answers ---- */

void pipeline_on_environment(uint32_t pid, int state, const char *text, size_t n, void *userdata)
{
	struct pipeline *pipeline = userdata;
	struct environment *entry = find_entry(pipeline->environments, pid);

	if (!entry || entry->answered)
		return;
	entry->text = n ? malloc(n) : NULL;
	entry->state = n && !entry->text ? -ENOMEM : state;
	entry->n = entry->text ? (uint32_t)n : 0;
	if (entry->text)
		memcpy(entry->text, text, n);
	entry->answered = true;
	pipeline->environments->waiting--;
	if (pipeline->cuda)
		cuda_environment(pipeline->cuda, pid);
}

/* Waits for the answer, but only for one at a time: a helper that hangs delays this thread once. */
static void ask_environment(struct pipeline *pipeline, uint32_t tgid)
{
	int64_t until = clock_mono_ns() + PATIENCE_NS;
	bool alone = !pipeline->environments || pipeline->environments->waiting == 0;
	struct environment *entry = add_entry(pipeline, tgid);
	struct process_id id;
	int r;

	if (!entry)
		return;
	r = proc_process_id("/proc", tgid, &id);
	if (r == 0)
		r = symbols_environment(pipeline->symbols, id);
	/* It may have been answered meanwhile. */
	entry = find_entry(pipeline->environments, tgid);
	if (r < 0 && entry)
		clear_entry(pipeline->environments, entry);
	while (r == 0 && alone && entry && !entry->answered && clock_mono_ns() < until) {
		symbols_wait(pipeline->symbols, WAIT_MS);
		entry = find_entry(pipeline->environments, tgid);
	}
}

/* ---- for src/cuda ---- */

int pipeline_environment(uint32_t tgid, char *buf, size_t size, size_t *ret_n, void *userdata)
{
	struct pipeline *pipeline = userdata;
	const struct environment *entry = find_entry(pipeline->environments, tgid);

	if (!pipeline->symbols)
		return -ENOTSUP;
	if (!entry) {
		ask_environment(pipeline, tgid);
		entry = find_entry(pipeline->environments, tgid);
	}
	if (!entry)
		return -ESRCH;
	if (!entry->answered)
		return -EAGAIN;
	if (entry->state < 0)
		return entry->state;
	*ret_n = MIN((size_t)entry->n, size);
	memcpy(buf, entry->text ? entry->text : "", *ret_n);
	return entry->state;
}

void pipeline_forget_environment(struct pipeline *pipeline, uint32_t tgid)
{
	struct environment *entry = find_entry(pipeline->environments, tgid);

	if (entry && !entry->kept)
		clear_entry(pipeline->environments, entry);
}

int pipeline_identity(const struct pipeline *pipeline, uint32_t tgid, struct proc_identity *ret_identity)
{
	const struct environment *entry = find_entry(pipeline->environments, tgid);
	int r = proc_identify("/proc", tgid, ret_identity);

	if (r < 0 && entry && entry->identity) {
		*ret_identity = *entry->identity;
		return 0;
	}
	return r;
}

void pipeline_keep_environment(struct pipeline *pipeline, pid_t pid)
{
	struct environment *entry = find_entry(pipeline->environments, (uint32_t)pid);
	_cleanup_free_ struct proc_identity *identity = malloc(sizeof(*identity));

	if (!pipeline->symbols || !identity || proc_identify("/proc", (uint32_t)pid, identity) < 0)
		return;
	/* It may be that of the program before. */
	if (entry)
		clear_entry(pipeline->environments, entry);
	ask_environment(pipeline, (uint32_t)pid);
	entry = find_entry(pipeline->environments, (uint32_t)pid);
	if (!entry)
		return;
	entry->kept = true;
	entry->identity = TAKE_PTR(identity);
}

void pipeline_environments_done(struct pipeline *pipeline)
{
	for (uint32_t i = 0; pipeline->environments && i < ENTRIES; i++)
		clear_entry(pipeline->environments, &pipeline->environments->of[i]);
	free(TAKE_PTR(pipeline->environments));
}
