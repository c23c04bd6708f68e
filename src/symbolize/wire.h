// SPDX-License-Identifier: Apache-2.0
/*
 * Messages between the agent (client.c) and the helper that names kernels (serve.c): a fixed part and texts,
 * each with its NUL. What comes from the helper is hostile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "model/kernel.h"
#include "model/device_code.h"
#include "symbolize/progress.h"
#include "symbolize/symbolize.h"

enum wire_kind {
	/* to the helper */
	WIRE_START, /* first, with the memory of struct wire_shared as its descriptor */
	WIRE_QUESTION,
	WIRE_IMAGE,
	WIRE_LOOK, /* with the file as its descriptor */
	WIRE_FORGET,
	WIRE_ENVIRONMENT,
	WIRE_JOB, /* its path: names of variables, separated by commas */
	/* from it */
	WIRE_KERNEL,
	WIRE_LOOKED,
	WIRE_VARIABLES,
};

enum { WIRE_AVOIDED = 256, WIRE_VARIABLES_MAX = 16 << 10 };

struct wire_start {
	uint32_t kind;
	char version[32]; /* of gpusonde: both sides must be of one build */
	char proc_root[64];
	struct symbolizer_limits limits;
	int64_t again_ns;
	uint8_t read_memory;
	uint32_t avoided_n;
	struct file_mark avoided[WIRE_AVOIDED];
};

struct wire_request {
	uint32_t kind;
	uint32_t pid;
	uint64_t id, start_ticks, incarnation, seq;
	uint64_t function, image; /* WIRE_IMAGE: the address */
	uint64_t address, length, offset;
	uint32_t symbol_n, path_n; /* of the texts behind, with NUL; 0: none */
	uint16_t sm;
	uint8_t execution;
	uint8_t symbol_last;
};

struct wire_kernel {
	uint32_t kind;
	uint64_t id, offset;
	int64_t figures[KERNEL_FIGURES];
	uint32_t symbol_n, name_n, brief_n, file_n; /* with NUL */
	uint32_t source;
	uint16_t sm;
	uint8_t variant, jit;
};

struct wire_looked {
	uint32_t kind;
	int32_t error;
	uint64_t id;
};

struct wire_variables {
	uint32_t kind;
	int32_t state; /* enum proc_environment, or -errno */
	uint64_t id;
	uint32_t n; /* bytes behind: NAME=VALUE, each with NUL */
};

/* Figures of the helper's statistics, in memory that both sides map. */
enum wire_figure {
	WIRE_FILES,
	WIRE_FILES_READ,
	WIRE_FILES_FAILED,
	WIRE_EVICTED,
	WIRE_LEFT_OUT,
	WIRE_CPU_NS,
	WIRE_BYTES,
	WIRE_IMAGES, /* by enum cubin_compression */
	WIRE_FIGURES = WIRE_IMAGES + CUBIN_COMPRESSIONS
};

enum wire_lane { WIRE_LANE_MESSAGES, WIRE_LANE_WORK, WIRE_LANES };

struct wire_shared {
	struct progress_lane lanes[WIRE_LANES];
	_Atomic uint64_t figures[WIRE_FIGURES];
	_Atomic uint64_t handled; /* messages */
};

/* -EMSGSIZE: it does not fit into a message. */
int wire_put_question(struct strbuf *out, const struct symbolizer_question *question, uint64_t id);
/* A request with at most a path. */
int wire_put_request(struct strbuf *out, const struct wire_request *request, const char *path);
/* Points into @message. -EBADMSG. */
int wire_take_question(const void *message, size_t n, struct symbolizer_question *ret_question);

int wire_put_kernel(struct strbuf *out, const struct kernel *kernel, uint64_t id);
/*
 * *ret_kernel points into @message, whose texts become valid UTF-8 without control characters. -EBADMSG.
 */
int wire_take_kernel(void *message, size_t n, uint64_t *ret_id, struct kernel *ret_kernel);
