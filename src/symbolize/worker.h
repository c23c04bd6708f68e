// SPDX-License-Identifier: Apache-2.0
/*
 * How src/symbolize divides the work: symbolize.c is the asker's side (queues, under one lock), worker.c the
 * thread. All others are called by the thread alone and need no lock: answer.c finds out, areas.c reads what
 * lies where in a process, look.c does so before anybody asks (the asker's side reads), process.c knows what
 * lies where in a process, held.c which handles variables have there, file.c which files there are, tables.c
 * what they contain, stubs.c host functions of a file, figures.c resources of its kernels for one
 * architecture, image.c those of images in memory, guess.c handles that point to their names, intern.c
 * kernels that processes share, names.c many texts in little memory.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbolize/symbolize.h"

enum {
	QUESTIONS = 4096,
	FORGETS = 65536, /* that wait; what is beyond goes by age */
};

struct look;

enum work_kind { WORK_QUESTION, WORK_IMAGE, WORK_LOOK, WORK_FORGET };

struct work {
	struct work *next;
	enum work_kind kind;
	uint64_t seq;
	int64_t asked_ns; /* data of the process must not be older than this */
	int64_t due_ns; /* time of the retry */
	unsigned tries;
	bool over; /* its process has ended: no retries; protected by the lock while queued */
	struct look *look; /* WORK_LOOK */
	struct symbolizer_question question; /* its texts are stored behind the struct */
};

struct works {
	struct work *first, *last;
	uint32_t n;
};

struct symbolizer {
	struct symbolizer_config config;
	char proc_root[64];
	pthread_t thread;
	clockid_t thread_clock;
	int wake_fds[2]; /* a datagram lies in the first while there are answers: helpers may not write() */
	atomic_bool stop;

	/* shared, under the lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct works images, queue; /* images and looks are handled first, since questions depend on them */
	uint32_t images_n, looks_n, questions_n,
		forgets_n; /* questions: including those being answered and answers not yet taken */
	uint64_t seq;
	struct symbolizer_answer *answers; /* ring of limits.questions */
	uint32_t answers_head, answers_n;
	bool woken; /* the datagram was sent */
	struct symbolizer_stats stats;
	pid_t now_pid; /* the process that the thread is working on */
	uint64_t now_incarnation;
	atomic_bool now_over; /* that process has ended: nothing is read of it any more */

	/* the thread's own */
	struct works again; /* in the order of due_ns, roughly */
	struct file **files;
	uint32_t files_n, open_files;
	struct process **processes;
	uint32_t processes_n;
	struct image *memory_images;
	struct kernels *kernels;
	uint64_t used; /* counter for "least recently used" */
	uint64_t bytes, processes_bytes;
	bool trim; /* much memory was freed */
	int64_t trimmed_ns;
	char name[32 << 10], brief[4 << 10]; /* of the kernel being built */
};

void *symbolizer_run(void *userdata);
struct work *work_new(enum work_kind kind, const struct symbolizer_question *question);
void work_free(struct work *work);
/* Queues the work if there is space in addition to the @n queued ones. */
int symbolizer_enqueue(struct symbolizer *symbolizer, struct work *work, struct works *works, uint32_t *n,
		       uint32_t max);
void works_put(struct works *works, struct work *work);
struct work *works_take(struct works *works);
/* Increments a counter of the statistics. */
void symbolizer_count(struct symbolizer *symbolizer, uint64_t *row, uint64_t n);
/* Accounts memory of tables. */
void symbolizer_weigh(struct symbolizer *symbolizer, int64_t bytes);
bool symbolizer_stopping(const struct symbolizer *symbolizer);
/* Whether the process that the thread is working on has ended or executed another program. */
bool symbolizer_over(const struct symbolizer *symbolizer);
/* Whether a question or table with @incarnation belongs to the process that has ended. 0: unknown. */
static inline bool is_of(pid_t pid, uint64_t incarnation, pid_t over_pid, uint64_t over_incarnation)
{
	return pid == over_pid && (incarnation == over_incarnation || incarnation == 0);
}
