// SPDX-License-Identifier: Apache-2.0
/*
 * What "gpusonde trace --raw" prints: one event per line, as text or as a JSON object. The command fills
 * struct raw_event from what the kernel side reported.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

enum raw_type {
	RAW_LAUNCH,
	RAW_CALL,
	RAW_USER,
	RAW_FIELDS, /* a call whose operands have names of their own */
	RAW_NAME,
	RAW_VARIABLE,
	RAW_PROCESS,
	RAW_EXEC,
	RAW_EXIT,
	RAW_TYPES
};

/* Operands of a call other than a launch. */
enum raw_operand { RAW_ADDR, RAW_SIZE, RAW_STREAM, RAW_HANDLE, RAW_KIND, RAW_OPERANDS };

/* How an argument of a function that the user named is shown. */
enum raw_number { RAW_UNSIGNED, RAW_SIGNED, RAW_HEX, RAW_ID /* 64 bits; hexadecimal in JSON, too */ };

struct raw_argument {
	unsigned position; /* from 0 */
	bool is_text;
	bool truncated; /* the text is longer */
	enum raw_number number;
	uint64_t value; /* of a signed one, extended */
	const char *text; /* NULL: it could not be read */
};

enum { RAW_ARGUMENTS_MAX = 4, RAW_FIELDS_MAX = 8 };

struct raw_field {
	const char *name;
	enum raw_number number;
	uint64_t value; /* of a signed one, extended */
	const char *text; /* in place of the value; NULL: it has none */
};

struct raw_event {
	enum raw_type type;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t pid, tid;
	uint32_t cpu;
	const char *api; /* the function called; NULL for RAW_PROCESS, RAW_EXEC and RAW_EXIT */
	const char *comm; /* the process's name; NULL: not known */
	/* of RAW_LAUNCH, RAW_CALL, RAW_USER and RAW_FIELDS */
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
			unsigned n;
			struct raw_argument at[RAW_ARGUMENTS_MAX];
		} user; /* a function that the user named */
		struct {
			unsigned n;
			struct raw_field at[RAW_FIELDS_MAX];
		} fields;
		struct {
			uint64_t handle;
			uint64_t parent; /* module or library of the handle; 0: none */
			const char *text; /* NULL: it could not be read */
			bool is_file; /* a file's path, not a name */
			bool truncated;
		} name;
		struct {
			const char *name;
			const char *value; /* NULL: it is not set, or not known */
			bool known;
		} variable;
	};
};

/* Each appends one line. 0, or -ENOMEM/-E2BIG. */
int view_raw_event(const struct raw_event *event, bool json, struct strbuf *out);
/* In place of @events events that were lost. */
int view_raw_lost(uint64_t events, bool json, struct strbuf *out);
