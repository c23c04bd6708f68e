// SPDX-License-Identifier: Apache-2.0
/*
 * The table of probes of all libraries (libraries.def). A row is one exported name; its index in the table is
 * its call number, which identifies it to the kernel side (bpf/event.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "trace/library.h"

/* Sites of a file that are attached and given up together. */
enum probe_group {
	/*
	 * init, devices, contexts, modules, streams: rare, and needed to interpret all others. Given up last
	 */
	PROBE_GROUP_SETUP,
	PROBE_GROUP_MEMORY,
	PROBE_GROUP_SYNC,
	PROBE_GROUP_COPY,
	PROBE_GROUP_EVENT, /* records, waits, queries */
	PROBE_GROUP_LAUNCH,
	PROBE_GROUP_CALLS, /* all calls of a library that has only one group */
	PROBE_GROUP_OPERATORS, /* functions that patterns find; given up first */
	PROBE_GROUP_USER, /* functions that the user names */
	PROBE_GROUPS,
};

struct probe {
	const char *symbol;
	enum probe_library library;
	enum probe_group group;
	bool may_return; /* extern "C", cannot throw: a return probe does no harm */
	/* of PROBE_USER: which of the user's probes, from 1 */
	uint8_t user;
	uint8_t pattern; /* which pattern has found it (trace/pattern.h), from 1 */
	uint16_t added_call; /* of a row that is not compiled in: its index in the table */
	bool has_series; /* of PROBE_USER: has series of its own on /metrics */
	bool of_users; /* found in a file that users can write first; of rows that are not compiled in */
	struct trace_spec spec; /* from its row; probe_spec() completes it */
};

/*
 * The rows that are compiled in. After them come those of the user's probes and of functions that patterns
 * find, which are added and never removed.
 */
extern const struct probe probes[];
extern const uint16_t probes_n;

/* The number of rows now, and how many there may be. */
uint16_t probe_calls(void);
uint16_t probe_calls_max(void);
/* @call: below probe_calls(). Valid until the program ends. */
const struct probe *probe_at(uint16_t call);
/*
 * The row of a function that one of the user's probes matches, added if needed. @of_users: in a file that
 * users can write. -ENOSPC: the table is full.
 */
int probe_of_user(unsigned user, const char *symbol, bool of_users, uint16_t *ret_call);
/* The same of a function that a pattern matches; which, from 1. */
int probe_of_pattern(uint8_t pattern, const char *symbol, bool of_users, uint16_t *ret_call);
/* Whether any function that this probe of the user's matches has a row. */
bool probe_user_is_found(unsigned user);
/* Whether it is the symbol of a function of C++ or Rust, which may throw. */
bool probe_symbol_may_throw(const char *symbol);
/* Where an event of such a function has the argument: by index in struct user_probe. */
enum trace_operand_index probe_user_operand(const struct user_probe *user, unsigned arg);

/*
 * The spec of a row for the kernel side, completed with its library's values. Without TRACE_SPEC_RETURNS,
 * since whether there is a return probe is known only when it is attached.
 */
struct trace_spec probe_spec(const struct probe *probe);

/* The row of an exported name of a library; NULL: not probed. */
const struct probe *probe_find(enum probe_library library, const char *symbol);
/*
 * For an exported name without a row: the row of which it is a later version (..._v3 where ..._v2 is probed)
 * or a variant (..._ptsz), so that its calls are missed. NULL: there is none. Older versions are left out on
 * purpose (probes_cuda.def).
 */
const struct probe *probe_of_newer(enum probe_library library, const char *symbol);
static inline uint16_t probe_call(const struct probe *probe)
{
	return probe->user || probe->pattern ? probe->added_call : (uint16_t)(probe - probes);
}
const char *probe_group_name(enum probe_group group);
