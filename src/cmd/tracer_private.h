// SPDX-License-Identifier: Apache-2.0
/* Shared by tracer.c (the thread), tracer_view.c and tracer_carry.c (what it shows), tracer_naming.c (kernels), tracer_node.c (what it is told of the node). */
#pragma once

#include <pthread.h>

#include "cmd/tracer.h"
#include "cuda/cuda.h"
#include "naming/naming.h"
#include "trace/engine.h"

enum { TRACER_DEVICES_MAX = 256, TRACER_CARRIED_MAX = 256 };

struct tracer {
	/* set before the thread starts */
	struct trace_engine_config config;
	enum option_wish wish;
	uint32_t series, kernel_series;
	bool name_kernels, read_memory;
	int stop_fd; /* eventfd */
	pthread_t thread;
	bool running; /* there is a thread to be waited for */

	/* shared; held for a pointer's exchange only */
	pthread_mutex_t lock;
	struct snapshot *fed; /* newest, not yet looked at */
	struct trace_view *made; /* newest, not yet taken */

	/* the thread's own */
	sd_event *event;
	struct trace_engine *engine;
	struct cuda *cuda;
	struct naming *naming; /* NULL: not wanted */
	int64_t devices_by_ns; /* questions wait until then for the first reading: which of a kernel's images is launched depends on it */
	struct trace_engine_status status;
	struct cuda_device devices[TRACER_DEVICES_MAX];
	uint32_t devices_n;
	uint64_t fed_seq;
	struct tracer_kept *kept; /* environments of processes that may be gone; NULL: none */
	uint64_t not_carried; /* processes whose final figures found no room */
};

/* tracer_node.c */
extern const struct cuda_ops tracer_cuda_ops;
void tracer_node(struct tracer *tracer, const struct snapshot *snapshot);

/* tracer_environ.c; -ESRCH: the process is gone, and was not kept */
int tracer_environment(uint32_t tgid, char *buf, size_t size, size_t *ret_n, void *userdata);
int tracer_contained(const struct tracer *tracer, uint32_t tgid, bool *ret_contained);
/* The newest 64 are kept. */
void tracer_keep_environment(struct tracer *tracer, pid_t pid);

/* tracer_naming.c */
/* Starts it, if that is wanted, and adds to @ops how to ask it; all or nothing. */
int tracer_naming(struct tracer *tracer, struct cuda_ops *ops);
void tracer_naming_over(struct tracer *tracer, uint32_t tgid, uint64_t incarnation);
void tracer_naming_view(const struct tracer *tracer, struct trace_view *view);

/* tracer.c: for the main thread to fetch, with what it missed. */
void tracer_put(struct tracer *tracer, struct trace_view *view);

/* tracer_view.c */
int tracer_view(struct tracer *tracer, struct trace_view **ret_view);
/* Of tracing that is not; a source that nobody wanted is not down. */
int tracer_view_off(const char *why, bool wanted, struct trace_view **ret_view);

/* tracer_carry.c */
/*
 * @view, which it takes, with what ended in @before, which nobody has seen; @before may be NULL. Adds to @left_out those without room: their
 * figures are in the totals only.
 */
struct trace_view *tracer_carry(const struct trace_view *before, struct trace_view *view, uint64_t *left_out);
