// SPDX-License-Identifier: Apache-2.0
#include "trace/sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void process_free(struct sums_process *process)
{
	for (uint16_t i = 0; i < process->calls_n; i++) {
		free(process->calls[i].buckets);
		free(process->calls[i].codes);
	}
	free(process->calls);
	free(process);
}

int sums_init(struct sums *sums, uint32_t max, const struct sums_maps *maps, void *maps_of,
	      const struct sums_ops *ops, void *userdata)
{
	*sums = (struct sums){
		.maps = maps, .maps_of = maps_of, .ops = ops, .userdata = userdata, .max = max
	};
	sums->totals = calloc(probe_calls_max(), sizeof(*sums->totals));
	if (!sums->totals || hashmap_init(&sums->ended_by_incarnation, 0) < 0)
		return -ENOMEM;
	return hashmap_init(&sums->live, 0);
}

void sums_done(struct sums *sums)
{
	for (uint32_t i = 0; i < sums->processes_n; i++)
		process_free(sums->processes[i]);
	free(sums->processes);
	for (unsigned i = 0; sums->totals && i < probe_calls(); i++)
		free(sums->totals[i]);
	free(sums->totals);
	hashmap_done(&sums->live);
	hashmap_done(&sums->ended_by_incarnation);
	*sums = (struct sums){ 0 };
}

struct sums_process *sums_find(const struct sums *sums, uint32_t tgid)
{
	uint32_t i;

	return hashmap_get(&sums->live, tgid, &i) ? sums->processes[i] : NULL;
}

struct sums_process *sums_find_exact(const struct sums *sums, uint32_t tgid, uint64_t incarnation)
{
	struct sums_process *process = sums_find(sums, tgid);
	uint32_t i;

	if (process && process->incarnation == incarnation)
		return process;
	if (!hashmap_get(&sums->ended_by_incarnation, incarnation, &i))
		return NULL;
	process = sums->processes[i];
	return process->tgid == tgid ? process : NULL; /* two may start in the same nanosecond */
}

/* @live: it becomes the live process of its PID. */
static int make(struct sums *sums, uint32_t tgid, uint64_t incarnation, bool live,
		struct sums_process **ret_process)
{
	struct sums_process *process;
	int r;

	if (sums->processes_n == sums->processes_cap) {
		uint32_t cap = sums->processes_cap ? 2 * sums->processes_cap : 16;
		void *grown = realloc(sums->processes, cap * sizeof(struct sums_process *));

		if (!grown)
			return -ENOMEM;
		sums->processes = grown;
		sums->processes_cap = cap;
	}
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	r = live ? hashmap_put(&sums->live, tgid, sums->processes_n) : 0;
	if (r < 0) {
		free(process);
		return r;
	}
	process->tgid = tgid;
	process->incarnation = incarnation;
	process->index = sums->processes_n;
	sums->processes[sums->processes_n++] = process;
	*ret_process = process;
	return 0;
}

int sums_process_seen(struct sums *sums, uint32_t tgid, uint64_t incarnation,
		      struct sums_process **ret_process, bool *ret_made)
{
	struct sums_process *process = sums_find_exact(sums, tgid, incarnation);
	int r;

	if (process) {
		*ret_process = process;
		*ret_made = false;
		return 0;
	}
	process = sums_find(sums, tgid);
	if (process && process->incarnation > incarnation)
		return -ESTALE;
	if (process)
		sums_process_ended(sums, process);
	if (sums->processes_n - sums->ended_n >= sums->max) {
		sums->refused++;
		return -ENOSPC;
	}
	r = make(sums, tgid, incarnation, true, ret_process);
	if (r < 0)
		return r;
	*ret_made = true;
	return 0;
}

int sums_call_seen(struct sums *sums, struct sums_process *process, uint16_t call)
{
	if (call >= probe_calls())
		return -EINVAL;
	for (uint16_t i = 0; i < process->calls_n; i++)
		if (process->calls[i].call == call)
			return 0;
	if (process->calls_n == process->calls_cap) {
		uint16_t cap = process->calls_cap ? (uint16_t)(2 * process->calls_cap) : 8;
		void *grown = realloc(process->calls, cap * sizeof(*process->calls));

		if (!grown)
			return -ENOMEM;
		process->calls = grown;
		process->calls_cap = cap;
	}
	if (!sums->totals[call]) {
		sums->totals[call] = calloc(1, sizeof(*sums->totals[call]));
		if (!sums->totals[call])
			return -ENOMEM;
		sums->totals[call]->call = call;
	}
	process->calls[process->calls_n++] = (struct sums_call){ .call = call };
	if (process->ended)
		sums_read_last(sums, process, &process->calls[process->calls_n - 1]);
	return 0;
}

int sums_set_flags(struct sums *sums, struct sums_process *process, uint32_t flags)
{
	int r = sums->maps->set_flags(sums->maps_of, process->tgid, process->incarnation, flags);

	if (r == 0)
		process->flags = flags;
	return r;
}

static bool is_gone(const struct sums *sums, const struct sums_process *process)
{
	struct trace_proc proc;
	int r = sums->maps->proc(sums->maps_of, process->tgid, &proc);

	return r == -ENOENT || (r == 0 && proc.incarnation != process->incarnation);
}

void sums_check_gone(struct sums *sums, struct sums_process *process)
{
	if (is_gone(sums, process))
		sums_process_ended(sums, process);
}

/* Adds a process that ended before any of its events was read, and whose PID another one has. */
static int make_ended(struct sums *sums, const struct trace_stat_key *key, struct sums_process **ret_process)
{
	int r = make(sums, key->tgid, key->incarnation, false, ret_process);

	if (r == 0)
		sums_process_ended(sums, *ret_process);
	return r;
}

static void on_key(const struct trace_stat_key *key, void *userdata)
{
	struct sums *sums = userdata;
	struct sums_process *process;
	bool made;
	int r = sums_process_seen(sums, key->tgid, key->incarnation, &process, &made);

	if (r == -ESTALE) {
		r = make_ended(sums, key, &process);
		made = true;
	}
	/* Nothing else would ever delete it. */
	if (r == -ENOSPC)
		sums->maps->delete_stat(sums->maps_of, key);
	if (r < 0)
		return;
	if (made) {
		process->no_event = true;
		process->incomplete |= TRACE_INCOMPLETE_LOST;
	}
	if (key->call < probe_calls())
		sums_call_seen(sums, process, (uint16_t)key->call);
}

void sums_reconcile(struct sums *sums)
{
	uint32_t known = sums->processes_n;

	/* Checked before the walk, since a process that has ended gets no more keys. */
	for (uint32_t i = 0; i < known; i++)
		sums->processes[i]->gone = is_gone(sums, sums->processes[i]);
	sums->maps->each_stat(sums->maps_of, on_key, sums);
	for (uint32_t i = 0; i < known; i++)
		if (sums->processes[i]->gone)
			sums_process_ended(sums, sums->processes[i]);
	for (uint32_t i = known; i < sums->processes_n; i++)
		sums_check_gone(sums, sums->processes[i]);
}

static void move(struct sums *sums, uint32_t from, uint32_t to)
{
	struct sums_process *process = sums->processes[from];
	uint32_t i;

	process->index = to;
	/* Replaces an existing key, which cannot fail. */
	if (!process->ended)
		hashmap_put(&sums->live, process->tgid, to);
	else if (hashmap_get(&sums->ended_by_incarnation, process->incarnation, &i) && i == from)
		hashmap_put(&sums->ended_by_incarnation, process->incarnation, to);
	sums->processes[to] = process;
}

static void drop(struct sums *sums, uint32_t i)
{
	struct sums_process *process = sums->processes[i];
	uint32_t found;

	if (hashmap_get(&sums->ended_by_incarnation, process->incarnation, &found) && found == i)
		hashmap_del(&sums->ended_by_incarnation, process->incarnation);
	process_free(process);
	sums->ended_n--;
	if (i < --sums->processes_n)
		move(sums, sums->processes_n, i);
}

void sums_drop_shown(struct sums *sums)
{
	for (uint32_t i = 0; i < sums->processes_n;) {
		struct sums_process *process = sums->processes[i];

		if (process->ended && process->shown) {
			drop(sums, i);
			continue;
		}
		process->shown = process->ended;
		i++;
	}
}
