// SPDX-License-Identifier: Apache-2.0
/*
 * What is probed: probes.def made into one table. A row is one exported name; its place in the table is its
 * call number, which is what crosses the boundary to the kernel side (bpf/event.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"

enum probe_library {
	PROBE_CUDA, /* libcuda: the driver */
	PROBE_CUDART, /* libcudart of any version, and executables and libraries that carry it */
	PROBE_LIBC, /* in processes that map one of the others, only */
	PROBE_LIBRARIES,
};

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
	PROBE_GROUPS,
};

struct probe {
	const char *symbol;
	enum probe_library library;
	enum probe_group group;
	bool may_return; /* extern "C", cannot throw: a return probe does no harm */
	/* flags without TRACE_SPEC_RETURNS: whether there is one is known at attachment only */
	struct trace_spec spec;
};

extern const struct probe probes[];
extern const uint16_t probes_n;

/* The row of an exported name of a library; NULL: not probed. */
const struct probe *probe_find(enum probe_library library, const char *symbol);
/*
 * The row that an exported name, which has none itself, is a later version of (..._v3 where ..._v2 is
 * probed), or a twin of (..._ptsz): calls of it are missed. NULL: it is none. Older versions are left out on
 * purpose (probes.def).
 */
const struct probe *probe_of_newer(enum probe_library library, const char *symbol);
static inline uint16_t probe_call(const struct probe *probe)
{
	return (uint16_t)(probe - probes);
}
const char *probe_group_name(enum probe_group group);
