// SPDX-License-Identifier: Apache-2.0
/*
 * What is probed: the probes of all libraries (libraries.def) made into one table. A row is one exported
 * name; its place in the table is its call number, which is what crosses the boundary to the kernel side
 * (bpf/event.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "trace/library.h"

/* Sites of a file that are attached and given up together. */
enum probe_group {
	/*
	 * init, devices, contexts, modules, streams: seldom, and all else is told apart by it. Given up last
	 */
	PROBE_GROUP_SETUP,
	PROBE_GROUP_MEMORY,
	PROBE_GROUP_SYNC,
	PROBE_GROUP_COPY,
	PROBE_GROUP_EVENT, /* records, waits, queries */
	PROBE_GROUP_LAUNCH,
	PROBE_GROUP_CALLS, /* all calls of a library whose calls are alike */
	PROBE_GROUPS,
};

struct probe {
	const char *symbol;
	enum probe_library library;
	enum probe_group group;
	bool may_return; /* extern "C", cannot throw: a return probe does no harm */
	struct trace_spec spec; /* what its row says; probe_spec() is the whole */
};

extern const struct probe probes[];
extern const uint16_t probes_n;

/*
 * What the kernel side is told of a row: with what its library says. Without TRACE_SPEC_RETURNS: whether
 * there is a return probe is known at attachment only.
 */
struct trace_spec probe_spec(const struct probe *probe);

/* The row of an exported name of a library; NULL: not probed. */
const struct probe *probe_find(enum probe_library library, const char *symbol);
/*
 * The row that an exported name, which has none itself, is a later version of (..._v3 where ..._v2 is
 * probed), or a twin of (..._ptsz): calls of it are missed. NULL: it is none. Older versions are left out on
 * purpose (probes_cuda.def).
 */
const struct probe *probe_of_newer(enum probe_library library, const char *symbol);
static inline uint16_t probe_call(const struct probe *probe)
{
	return (uint16_t)(probe - probes);
}
const char *probe_group_name(enum probe_group group);
