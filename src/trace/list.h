// SPDX-License-Identifier: Apache-2.0
/* The probes of a file, where they would be and why others are not; nothing is attached. */
#pragma once

#include "trace/probe.h"
#include "trace/site.h"
#include "trace/site_list.h"

/*
 * The probes of a file, chosen or refused, for "gpusonde probes". Newer versions of probed functions are
 * listed as refused.
 */
struct trace_listing {
	/*
	 * or the one that @symbol is a newer version of, which is never chosen; NULL: of @user or @pattern
	 */
	const struct probe *probe;
	unsigned user; /* which of the user's probes matches it, from 1; 0: none */
	uint8_t pattern; /* which pattern (trace/pattern.h), from 1; 0: none */
	const char *symbol; /* valid in the callback only */
	struct site site;
	uint64_t file_offset;
	/*
	 * Not chosen, since the driver's calls within it are probed instead. A call of the runtime that makes
	 * no call of the driver (invalid arguments, a driver that is too old) is not seen.
	 */
	bool left_to_driver;
};
/*
 * Analyses at most TRACE_LIST_CODE_MAX bytes of code, in at most TRACE_LIST_STEPS of some 100 ns: entry
 * points that are left then are listed as refused, with that reason. Steps are counted, not timed: a machine
 * that is slow or busy lists the same. -E2BIG: the file has more probed functions than any library, or so
 * many symbols that none of these was found in time.
 */
#define TRACE_LIST_STEPS UINT64_C(9000000)
/* CPU time for reading symbols where the user names functions. */
#define TRACE_LIST_CPU_NS (INT64_C(900) * 1000 * 1000)
enum {
	TRACE_LIST_CODE_MAX = 1 << 20,
	TRACE_LIST_USER_CODE_MAX = 32 << 20, /* of functions that the user names and that patterns find */
};
/* *ret_more may be NULL. */
int trace_list_sites(int fd, const struct site_query *query,
		     int (*fn)(const struct trace_listing *listing, void *userdata), void *userdata,
		     struct site_more *ret_more);
