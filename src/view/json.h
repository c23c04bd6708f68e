// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of the JSON document; view_json() puts them together. docs/json.schema.json describes it for
 * readers.
 *
 *   json.c          the document, values, and the rows of the metric tables
 *   json_gpu.c      gpus: identity, rows, MIG instances, XIDs
 *   json_node.c     processes; node: versions, topology, workloads, the agent itself
 *   json_trace.c    what tracing says of processes; trace: processes and calls
 *   json_calls.c    traced calls; the document of "gpusonde trace --json"
 *   json_kernels.c  kernels: what traced processes launch
 *
 * jansson reports failure at every step; here it sticks to the object that is being made, as in a strbuf.
 */
#pragma once

#include <jansson.h>

#include "base/strbuf.h"
#include "model/snapshot.h"

struct json_maker {
	const struct snapshot *s;
	bool failed; /* out of memory: the document is incomplete */
};

/* Adds @value (its reference is taken, NULL is a failure) to an object or array. */
void json_put(struct json_maker *j, json_t *object, const char *key, json_t *value);
void json_push(struct json_maker *j, json_t *array, json_t *value);

/* A string, invalid UTF-8 made '?'. json_text_or_null() makes null of an empty one. */
json_t *json_text(const char *text);
json_t *json_text_or_null(const char *text);
/* Of any length: a kernel's name. */
json_t *json_long_text(const char *text);
/* An integer where it is exact, else a real; null for what is no number. */
json_t *json_number(double value);
/* RFC 3339; null for 0, which is "never". */
json_t *json_time(int64_t real_ns);

/*
 * Writes @value (its reference is taken, NULL is out of memory) as every document is written; @flags are
 * jansson's.
 */
int json_write(json_t *value, size_t flags, struct strbuf *out);

/* Rows of one table with the numbers of one entity, process or agent. */
struct json_rows {
	const struct metric *rows;
	unsigned n;
	const double *v; /* by slot */
	const uint8_t *p;
	const char *strip,
		*strip_more; /* prefixes that a family's name loses, the longer one first; may be NULL */
	unsigned level; /* only rows measured here; 0: all */
	bool counters_only; /* the others are null */
};

/*
 * Adds a member per family: a number, an object by label values, an array by index; and the members
 * "unavailable" (reasons by name) and "estimated" (names).
 */
void json_add_rows(struct json_maker *j, json_t *object, const struct json_rows *rows);

/*
 * The way back: numbers and presences of such members, by slot; absent where there is none. @rows has no
 * v and p.
 */
void json_read_rows(const json_t *object, const struct json_rows *rows, double *v, uint8_t *p);

json_t *json_gpus(struct json_maker *j);
json_t *json_processes(struct json_maker *j);
json_t *json_node(struct json_maker *j);
/* Reasons by name, of a traced process. */
json_t *json_incomplete(struct json_maker *j, const struct traced_process *process);
/* What no number of JSON's may exceed ends there. */
json_t *json_count(uint64_t count);
/* Calls of @view: of a process, or of all. */
json_t *json_calls(struct json_maker *j, const struct trace_view *view, const struct traced_call *calls,
		   uint32_t n);
/* Member `cuda` of a process, null where it is not traced there. */
json_t *json_process_cuda(struct json_maker *j, const struct process *process);
/*
 * Members `traced`, processes on devices where the driver does not list them, or on none that is known, and
 * `traced_left_out`.
 */
void json_add_traced(struct json_maker *j, json_t *document);
/* Writes the member `trace` of an object that is not empty, a comma before it. */
int json_trace_write(const struct snapshot *s, struct strbuf *out);
