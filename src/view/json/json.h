// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of the JSON document; view_json() assembles them. docs/json.schema.json describes the document.
 *
 *   json.c         the document, values, and the rows of the metric tables
 *   brief.c        what is left out for screens
 *   gpu.c          gpus: identity, rows, MIG instances, XIDs
 *   allocations.c  allocations: who was given which GPU
 *   events.c       events: XID reports
 *   node.c         processes; node: versions, topology, workloads, the agent itself
 *   trace.c        traced data of processes; trace: processes and calls
 *   python.c       what traced processes wait for in Python; the same for "gpusonde trace --python --json"
 *   blas.c         what traced processes ask cuBLAS for; the same for "gpusonde trace --blas --json"
 *   nccl.c         what traced processes do with NCCL; the same for "gpusonde trace --nccl --json"
 *   operators.c    operators of PyTorch
 *   calls.c        traced calls; the document of "gpusonde trace --json"
 *   kernels.c      kernels launched by traced processes
 *   lines.c        calls by line of Python, for "gpusonde trace --python --json"
 *
 * jansson reports failure at every step; here a failure is recorded in the json_maker, as in a strbuf.
 */
#pragma once

#include <jansson.h>

#include "base/strbuf.h"
#include "model/python.h"
#include "model/snapshot.h"

struct finding;
struct xid_description;

struct json_maker {
	const struct snapshot *s;
	bool failed; /* out of memory: the document is incomplete */
	bool brief; /* JSON_BRIEF */
};

/* Adds @value (takes its reference, NULL is a failure) to an object or array. */
void json_put(struct json_maker *j, json_t *object, const char *key, json_t *value);
void json_push(struct json_maker *j, json_t *array, json_t *value);

/* A string with invalid UTF-8 replaced by '?'. json_text_or_null() returns null for an empty one. */
json_t *json_text(const char *text);
json_t *json_text_or_null(const char *text);
/* A string of any length, such as a kernel's name. */
json_t *json_long_text(const char *text);
/* An integer if it is exact, else a real; null for NaN and infinities. */
json_t *json_number(double value);
/* null for UINT32_MAX. */
json_t *json_unsigned_or_null(uint32_t value);
/* null for 0. */
json_t *json_positive_or_null(uint32_t value);
/* RFC 3339; null for 0 ("never"). */
json_t *json_time(int64_t real_ns);

/*
 * Writes @value (takes its reference, NULL is out of memory) in the documents' common format; @flags are
 * jansson's.
 */
int json_write(json_t *value, size_t flags, struct strbuf *out);
/* The same, of an object that is complete unless @j has failed: then -ENOMEM. */
int json_finish(const struct json_maker *j, json_t *object, size_t flags, struct strbuf *out);
/* Says which process an object is of. @ended: it has exited, and is shown for the last time. */
void json_add_process(struct json_maker *j, json_t *object, uint32_t pid, const char *comm, bool ended);

/* Rows of one table with the numbers of one entity, process or agent. */
struct json_rows {
	const struct metric *rows;
	unsigned n;
	const double *v; /* by slot */
	const uint8_t *p;
	const char *strip,
		*strip_more; /* prefixes to be removed from family names, the longest first; may be NULL */
	unsigned level; /* only rows measured here; 0: all */
	bool counters_only; /* the others are null */
};

/*
 * Adds a member per family: a number, an object by label values, an array by index; and the members
 * "unavailable" (reasons by name) and "estimated" (names).
 */
void json_add_rows(struct json_maker *j, json_t *object, const struct json_rows *rows);

/*
 * The inverse: reads numbers and presences from such members, by slot; absent if missing. v and p of @rows
 * are unused.
 */
void json_read_rows(const json_t *object, const struct json_rows *rows, double *v, uint8_t *p);

/* The evidence of a finding: members with their units. */
json_t *json_finding_values(struct json_maker *j, const struct finding *finding);

/*
 * Members that identify a workload, and the names of its container and pod; null where there is none, or it
 * is not known.
 */
void json_workload(struct json_maker *j, json_t *object, enum workload_kind kind, const char *id,
		   const char *pod_uid, const struct owner *owner);

/* Members that locate a process, workload or allocation. */
void json_place(struct json_maker *j, json_t *object, uint16_t entity);

json_t *json_gpus(struct json_maker *j);
json_t *json_processes(struct json_maker *j);
json_t *json_node(struct json_maker *j);
/* The inverse of its member `topology`. */
void json_read_topology(const json_t *pairs, struct snapshot *s);
json_t *json_allocations(struct json_maker *j);
/* Members `events` and `events_left_out` of the document. */
void json_add_events(struct json_maker *j, json_t *document);
/* What a code means. */
void json_add_xid(struct json_maker *j, json_t *object, uint32_t code,
		  const struct xid_description *description);
/* Of the node's GPUs, "key:value"; empty where there is none. */
json_t *json_tags(struct json_maker *j);
/* Object of a traced process's reasons of incompleteness, by name. */
json_t *json_incomplete(struct json_maker *j, const struct traced_process *process);
/* What the process never freed; null where that is not known. */
json_t *json_leaked(struct json_maker *j, const struct traced_process *process);
/* blas.c: of a process, and the sums; null if there is nothing. */
json_t *json_blas_of(struct json_maker *j, const struct blas_view *view, uint32_t pid, bool exited);
json_t *json_blas_totals(struct json_maker *j, const struct blas_view *view);
/* python.c: the same of Python's lock and garbage. */
json_t *json_python_of(struct json_maker *j, const struct python_view *view, uint32_t pid, bool exited);
json_t *json_python_totals(struct json_maker *j, const struct python_view *view);

/* torch.c: of a process; null if there is nothing. */
json_t *json_torch_totals(struct json_maker *j, const struct torch_view *view);
json_t *json_torch_of(struct json_maker *j, const struct torch_view *view, uint32_t pid, bool exited);
/* nccl.c: of a process, and the sums; null if there is nothing. */
json_t *json_nccl_of(struct json_maker *j, const struct nccl_view *view, uint32_t pid, bool exited);
json_t *json_nccl_totals(struct json_maker *j, const struct nccl_view *view);
/* Saturates at the largest integer of JSON. */
json_t *json_count(uint64_t count);
/* Operators of PyTorch; null: they are not traced. */
json_t *json_operators(struct json_maker *j, const struct trace_view *view);
json_t *json_operator_list(struct json_maker *j, const struct traced_operator *operators, uint32_t n);
/* Calls of @view: of a process, or of all. */
json_t *json_calls(struct json_maker *j, const struct trace_view *view, const struct traced_call *calls,
		   uint32_t n);
/* Member `cuda` of a process, null if it is not traced on that device. */
json_t *json_process_cuda(struct json_maker *j, const struct process *process);
/*
 * Members `traced` (processes on devices where the driver does not list them, or on unknown devices) and
 * `traced_left_out`.
 */
void json_add_traced(struct json_maker *j, json_t *document);
/* Writes the member `trace` to an object that is not empty, preceded by a comma. */
int json_trace_write(const struct snapshot *s, struct strbuf *out);
