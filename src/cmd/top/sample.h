// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde top": a screen of what the GPUs do, for people.
 *
 *   sample.h   what is shown: an agent's pages, or one's own, and the host's figures of processes. A thread
 *              takes them, so that nothing that hangs (agent, driver, /proc, user names) stops the screen
 *   columns.h  tables of tabs and their columns: tabs.def, columns.def
 *   tree.h     processes by whose they are: headings, their sums, which are closed
 *   rows.h     the rows of a tab: filtered, grouped, sorted
 *   state.h    what the screen shows now, and what a key does to it: keys.def
 *   draw.h     the state on a canvas
 *   lines.h    text that scrolls: of a process's own screen, and of a finding's (finding.h)
 *   trail.h    figures of the last minutes, for curves
 *   past.h     earlier samples, to go back to
 *   growth.h   how fast sums grow
 *   hosts.h    other machines' agents
 *   prune.h    what is left out of an agent's document before it is parsed, if the agent has not left it out
 *
 * Every number is a member of a page, or is taken from the snapshot that a page was decoded to, as `gpus` and
 * `ps` do: it is the same as in JSON.
 */
#pragma once

#include <jansson.h>
#include <stdatomic.h>

#include "base/strbuf.h"
#include "cmd/top/host_list.h"
#include "config/options.h"
#include "model/snapshot.h"

/* Pages of an agent. */
enum page {
	PAGE_NODE, /* GPUs, processes, node: always */
	PAGE_TRACE,
	PAGE_KERNELS,
	PAGE_EVENTS,
	PAGE_FINDINGS,
	PAGE_STACKS,
	PAGES
};

enum { COMMAND_TEXT = 160 };

/* The age of findings in the first lines; their tab has the newest. */
#define FINDINGS_NS (5 * NSEC_PER_SEC)

/* What this machine says of a process that uses a GPU. */
struct host_process {
	uint32_t pid;
	char state; /* 'R', 'D', ... */
	uint64_t start_ticks, cpu_ticks, threads;
	uint64_t resident_bytes;
	uint32_t command_age; /* samples since `command` was read */
	char command[COMMAND_TEXT]; /* its arguments, the program without its folder; "": not known */
	double cores; /* CPU time since the sample before, by time; negative: not known yet */
};

struct host_user {
	uint32_t uid;
	char name[33];
};

struct sample;
struct growth;

/* One of several machines. */
struct host_part {
	char name[HOST_NAME_TEXT];
	struct sample *sample; /* the newest; NULL: there is none, or it is old */
	int64_t age_ns; /* since it has answered; negative: it never has */
	char failure[240]; /* why it does not answer now; "" */
};

/*
 * Immutable once it was taken. One of several machines has parts, and nothing else but when it was taken;
 * sample_part() has either.
 */
struct sample {
	atomic_uint references;
	char host[HOST_NAME_TEXT]; /* a part's: as it was named; "": this machine */
	struct host_part *parts;
	uint32_t parts_n;
	json_t *pages[PAGES]; /* NULL: not asked for, or not to be had */
	struct snapshot *snapshot; /* what PAGE_NODE says; NULL: nothing */
	struct growth *before; /* of the document before (growth.h); NULL: nothing */
	int64_t mono_ns, real_ns; /* when it was taken */
	char note[400]; /* where the data come from, if not from an agent; "" */
	char failure[400]; /* why there are none; "" */
	char answer[240]; /* to what was asked of the agent; "" */
	uint32_t watched_pid; /* the process that `environment` is of; 0: none */
	char environment[1024]; /* those of its variables that matter, or why they are not known; "" */
	bool from_agent;
	struct strbuf text; /* PAGE_NODE, but for what is never shown (prune.h) */
	uint32_t processes_n, users_n;
	struct host_process *processes; /* by PID */
	struct host_user *users; /* by number */
};

/* Gives a reference back. */
void sample_free(struct sample *sample);
/* One more; NULL: none. */
struct sample *sample_ref(struct sample *sample);
DEFINE_CLEANUP(struct sample *, sample_free, sample_freep)

/* Decodes @text into a sample without anything of the host: of an earlier time. -EBADMSG, -ENOMEM. */
int sample_of_text(const char *text, size_t length, struct sample **ret_sample);

/* Of each machine one, NULL where there are no data; of one machine, itself. */
uint32_t sample_parts(const struct sample *sample);
const struct sample *sample_part(const struct sample *sample, uint32_t i);
/* An agent's page. */
const char *page_path(enum page page);

/* NULL: not one of this machine's. */
const struct host_process *sample_process(const struct sample *sample, uint32_t pid);
/* NULL: not known. */
const char *sample_user(const struct sample *sample, uint32_t uid);

/* ---- taking samples ---- */

struct sampler;

/* Begins to take one each @period_ns, in a thread. @options and @hosts, if it has any, outlive it. */
int sampler_new(const struct options *options, const struct host_list *hosts, int64_t period_ns,
		struct sampler **ret_sampler);
struct replayed;
/* The same of a recording, which is the sampler's from now on, also on failure. */
int sampler_new_replayed(struct replayed *replayed, int64_t period_ns, struct sampler **ret_sampler);
/* Of a recording: whether it stands; what is asked for is then shown all the same. */
void sampler_hold(struct sampler *sampler, bool holds);
/* Ends the thread, if it ends within a moment; what hangs is left to the end of the process. */
void sampler_free(struct sampler *sampler);
/* Further pages that are wanted from now on: bits 1 << enum page. */
void sampler_want(struct sampler *sampler, unsigned pages);
/* Its environment is read from now on; 0: nobody's. */
void sampler_watch(struct sampler *sampler, uint32_t pid);
/*
 * Asks the agent, by the thread, to record a timeline of this process, or to end the one that it records; the
 * next sample has its answer.
 */
void sampler_timeline(struct sampler *sampler, uint32_t pid);
/*
 * Asks the agent, by the thread, for the moment at @real_ns of what it records. sampler_take_moment() has it
 * when it has come; else the next sample has the reason as its answer.
 */
void sampler_ask_moment(struct sampler *sampler, int64_t real_ns);
struct sample *sampler_take_moment(struct sampler *sampler);
/* Readable when there is a new sample. */
int sampler_fd(const struct sampler *sampler);
/* The newest sample that was not taken yet; NULL: there is none. */
struct sample *sampler_take(struct sampler *sampler);
