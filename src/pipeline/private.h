// SPDX-License-Identifier: Apache-2.0
/*
 * Shared by pipeline.c, view.c (figures), carry.c and carry_layers.c, symbols.c (names of kernels), node.c
 * (what it knows of the node), limits.c (what containers and jobs were given) and environ.c.
 */
#pragma once

#include "activity/users.h"
#include "blas/blas.h"
#include "nccl/nccl.h"
#include "pipeline/interpreters.h"
#include "pipeline/measured.h"
#include "pipeline/pipeline.h"
#include "pipeline/stacks.h"
#include "proc/proc.h"
#include "python/figures.h"
#include "torch/torch.h"

enum { PIPELINE_STACK_ROWS = 2048, PIPELINE_STACK_BYTES = 4 << 20 }; /* in a view */
enum { PIPELINE_DEVICES_MAX = 256, PIPELINE_BLAS_SHAPES = 64 /* of a process, with rows */ };

struct pipeline {
	struct pipeline_config config;
	struct event_sink sink; /* figures */
	struct cuda *cuda;
	struct nccl *nccl; /* NULL: not traced */
	struct blas *blas; /* the same */
	struct python_figures *python; /* the same */
	struct interpreters interpreters;
	struct python_finder *finder; /* of interpreters, for these and for stacks; NULL: for neither */
	struct trace_engine *engine; /* that is told of what it finds; NULL: none yet */
	struct torch *torch; /* the same */
	struct traced_users users; /* of the processes of these */
	struct stack_sums *stacks; /* not recorded: NULL */
	const struct blas_peak *peaks[PIPELINE_DEVICES_MAX]; /* of devices; NULL: not known */
	struct measured *measured; /* NULL: nothing is told */
	uint64_t works_dropped; /* before they came here */
	struct symbols *symbols; /* kernels and environments; NULL: not available */
	int64_t devices_by_ns; /* until then requests wait for the first devices */
	struct cuda_device devices[PIPELINE_DEVICES_MAX];
	uint32_t devices_n;
	uint64_t node_seq; /* of the newest processed snapshot */
	struct environments *environments; /* NULL: none */
	struct limits *limits; /* NULL: none */
	struct operator_names *operators; /* NULL: none */
	struct process_memory *nvml_memory; /* of processes on GPUs, by PID; only where PyTorch is traced */
	uint32_t nvml_memory_n;
};

struct process_memory {
	struct process_id id;
	bool known;
	double bytes;
};

static inline void view_set(struct trace_view *view, enum agent_metric metric, double value)
{
	view->agent[metric] = value;
	view->agent_p[metric] = PRESENCE_PRESENT;
}

/* Each of @n counts has a metric of its own; AGENT_METRICS: it has none. */
static inline void view_set_each(struct trace_view *view, const enum agent_metric *metrics, unsigned n,
				 const uint64_t *counts)
{
	for (unsigned i = 0; i < n; i++)
		if (metrics[i] != AGENT_METRICS)
			view_set(view, metrics[i], (double)counts[i]);
}

/* view.c: events and spans that sinks had no time or room for */
uint64_t pipeline_not_taken(const struct pipeline *pipeline, const struct event_sinks *events);

/* blas.c: without memory for them the figures of cuBLAS are absent. */
void pipeline_fill_blas(const struct pipeline *pipeline, struct trace_view *view);
/* python.c */
int pipeline_finder(struct pipeline *pipeline, sd_event *event);
void pipeline_python_event(struct pipeline *pipeline, const struct trace_header *event, uint32_t size);
void pipeline_fill_python(struct pipeline *pipeline, struct trace_engine *engine, struct trace_view *view);

/*
 * carry_layers.c: as pipeline_carry(); @before and @view may be NULL. What is left out is counted for each
 * layer.
 */
struct nccl_view *pipeline_carry_nccl(const struct nccl_view *before, struct nccl_view *view,
				      uint64_t *left_out);
struct blas_view *pipeline_carry_blas(const struct blas_view *before, struct blas_view *view,
				      uint64_t *left_out);
struct python_view *pipeline_carry_python(const struct python_view *before, struct python_view *view,
					  uint64_t *left_out);
struct torch_view *pipeline_carry_torch(const struct torch_view *before, struct torch_view *view,
					uint64_t *left_out);

/* torch.c: without memory for them the figures of PyTorch's allocators and graphs are absent. */
void pipeline_fill_torch(const struct pipeline *pipeline, struct trace_view *view);

/* node.c */
bool pipeline_has_device(const char *uuid, void *userdata);
const char *pipeline_uuid(const struct entity *e);

/* limits.c */
/* Takes what containers and jobs were given from a snapshot. */
void pipeline_set_limits(struct pipeline *pipeline, const struct snapshot *snapshot);
/* For struct cuda_ops. */
int pipeline_allowed(uint32_t tgid, char (*uuids)[TRACED_UUID], size_t max, size_t *ret_n, void *userdata);
/* The same of a process of which all is known; @text: its variables, as pipeline_environment() has them. */
int limits_allow(struct pipeline *pipeline, const struct proc_identity *identity, const char *text, size_t n,
		 char (*uuids)[TRACED_UUID], size_t max, size_t *ret_n);
void pipeline_limits_done(struct pipeline *pipeline);

/*
 * environ.c; -EAGAIN: cuda_environment() tells when it is known; -ESRCH: the process has ended, and its
 * environment was not stored
 */
int pipeline_environment(uint32_t tgid, char *buf, size_t size, size_t *ret_n, void *userdata);
void pipeline_on_environment(uint32_t pid, int state, const char *text, size_t n, void *userdata);
void pipeline_forget_environment(struct pipeline *pipeline, uint32_t tgid);
void pipeline_environments_done(struct pipeline *pipeline);
/* Whose the process is, and since when it runs; -ESRCH. */
int pipeline_identity(const struct pipeline *pipeline, uint32_t tgid, struct proc_identity *ret_identity);

/* torch.c: what NVML says that processes hold; of a snapshot that is not fresh, nothing. */
void pipeline_torch_node(struct pipeline *pipeline, const struct snapshot *snapshot);
/* operators.c */
/* Adds the operators of PyTorch, where they are traced. */
int pipeline_fill_operators(struct pipeline *pipeline, const struct trace_engine *engine,
			    struct trace_view *view);
void pipeline_operators_done(struct pipeline *pipeline);

/* symbols.c */
/* Makes the client, and sets its callbacks in @ops if kernels are to be named; all or nothing. */
int pipeline_symbols(struct pipeline *pipeline, sd_event *event, struct cuda_ops *ops);
void pipeline_symbols_view(const struct pipeline *pipeline, struct trace_view *view);
