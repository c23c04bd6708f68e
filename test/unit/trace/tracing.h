// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel side, attached by one of the two ways, and what it has told so far. Tests take a pointer to one
 * of these as their state, made by tracing_setup_multi() or tracing_setup_event(), and begin with
 * tracing_of(), which skips where there is no tracing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "trace/attach.h"
#include "traced.h"

enum { TRACING_EVENTS = 1024, TRACING_CPUS = 1024, TRACING_ATTACHED = 8 };

union tracing_event {
	struct trace_header header;
	struct trace_launch launch;
	struct trace_call call;
	struct trace_process process;
	struct trace_stat_new stat;
	struct trace_name name;
	char room[sizeof(struct trace_name) + TRACE_NAME_LARGE];
};

struct tracing {
	struct attach_backend *backend;
	struct attach_error error;
	struct ring_buffer *ring;
	struct attachment *attached[TRACING_ATTACHED];
	unsigned attached_n;
	union tracing_event events[TRACING_EVENTS]; /* the first ones */
	size_t sizes[TRACING_EVENTS];
	unsigned events_n;
	uint64_t received[TRACING_CPUS];
};

int tracing_setup_multi(void **state);
int tracing_setup_event(void **state);
int tracing_teardown(void **state);
struct tracing *tracing_of(void **state);

/* Return probe first where @spec has it, then the entry; asserts that both work. */
void tracing_attach(struct tracing *tracing, const void *code, uint16_t call, const struct trace_spec *spec);
void tracing_attach_site(struct tracing *tracing, const struct attach_site *site,
			 const struct trace_spec *spec);
void tracing_detach(struct tracing *tracing); /* all */

/* Takes what is in the ring. */
void tracing_drain(struct tracing *tracing);
/* The @i-th event of this type (and call, if not negative) from a process; NULL: there are fewer. */
const union tracing_event *tracing_event(const struct tracing *tracing, enum trace_event_type type, int call,
					 pid_t pid, unsigned i);
size_t tracing_size(const struct tracing *tracing, const struct trace_header *event);
/* Sums of a process's call over all its incarnations; zeros: there are none. */
struct trace_stat tracing_stat(const struct tracing *tracing, pid_t pid, uint16_t call);
uint64_t tracing_errors(const struct tracing *tracing, pid_t pid, uint16_t call, int32_t result);
struct trace_counters tracing_counters(const struct tracing *tracing);

/* Both ways of a test. */
#define TRACING_TEST_BOTH(fn)                                                 \
	{ #fn "_multi", fn, tracing_setup_multi, tracing_teardown, NULL },    \
	{                                                                     \
#fn "_event", fn, tracing_setup_event, tracing_teardown, NULL \
	}
/*
 * A sanitizer looks at our own code, which differs in how probes are attached: test_attach.c has both ways
 * there, too.
 */
#if SANITIZED
#define TRACING_TEST(fn)                                                   \
	{                                                                  \
#fn "_multi", fn, tracing_setup_multi, tracing_teardown, NULL \
	}
#else
#define TRACING_TEST TRACING_TEST_BOTH
#endif
