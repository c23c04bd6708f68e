// SPDX-License-Identifier: Apache-2.0
/*
 * What "gpusonde trace --raw" prints: one event per line, as text or as a JSON object. The command fills
 * struct raw_event from what the kernel side reported.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

enum raw_type { RAW_LAUNCH, RAW_CALL, RAW_NAME, RAW_PROCESS, RAW_EXEC, RAW_EXIT, RAW_TYPES };

/* Operands of a call other than a launch. */
enum raw_operand { RAW_ADDR, RAW_SIZE, RAW_STREAM, RAW_HANDLE, RAW_KIND, RAW_OPERANDS };

struct raw_event {
	enum raw_type type;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t pid, tid;
	const char *api; /* the function called, of RAW_LAUNCH, RAW_CALL and RAW_NAME */
	const char *comm; /* of RAW_PROCESS, RAW_EXEC and RAW_EXIT */
	/* of RAW_LAUNCH and RAW_CALL */
	bool has_result;
	int32_t result;
	uint64_t duration_ns;
	union {
		struct {
			uint64_t function, stream;
			uint32_t grid[3], block[3];
			uint32_t shared_bytes;
		} launch;
		struct {
			bool has[RAW_OPERANDS];
			uint64_t value[RAW_OPERANDS];
		} call;
		struct {
			uint64_t handle;
			uint64_t parent; /* module or library of the handle; 0: none */
			const char *text; /* NULL: it could not be read */
			bool is_file; /* a file's path, not a name */
			bool truncated;
		} name;
	};
};

/* Each appends one line. 0, or -ENOMEM/-E2BIG. */
int view_raw_event(const struct raw_event *event, bool json, struct strbuf *out);
/* In place of @events events that were lost. */
int view_raw_lost(uint64_t events, bool json, struct strbuf *out);
