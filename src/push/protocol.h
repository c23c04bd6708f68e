// SPDX-License-Identifier: Apache-2.0
/*
 * Between the agent (agent/push.c) and gpusonde-push: a question, with or without rows to push, and at once
 * an answer: how far what came before has got. Rows are in a file in memory, whose descriptor comes with the
 * question.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "model/contract.h"
#include "model/net_failure.h"

enum {
	PUSH_ROWS_MAX = 4096,
	PUSH_KEY_MAX = 4096, /* with its NUL */
};

/* One row of /container/metrics. Texts are UTF-8 and end with NUL. */
struct push_row {
	double v[CONTRACT_METRICS]; /* in DCGM's units up to 4.8 */
	uint32_t present; /* 1 << enum contract_metric: the others are not known */
	uint32_t reserved;
#define PUSH_LABEL(member_, bytes_, name_) char member_[bytes_];
#include "push/labels.def"
};

/* What a process is to do; as of the first question to it. Texts end with NUL. */
struct push_settings {
	char url[1024]; /* of the server, without a slash at its end */
	char cluster[256];
	char proxy[1024], no_proxy[1024]; /* as the environment says; "": none */
	char folder[PATH_MAX]; /* of the queue; "": nothing is kept */
	char ca_file[PATH_MAX]; /* to verify the server with; "": the system's certificates */
	uint64_t queue_bytes; /* that may lie there */
};

struct push_question {
	char version[32]; /* GPUSONDE_VERSION; of another one's question nothing else is read */
	char key[PUSH_KEY_MAX]; /* "": it is not known, and nothing is sent meanwhile */
	uint32_t rows; /* that the descriptor has; 0: it is only asked how things stand */
	uint32_t row_bytes; /* sizeof(struct push_row) */
	struct push_settings settings;
};

enum push_outcome {
	PUSH_BEGINS, /* nothing was tried yet */
	PUSH_OK, /* the server took the newest that was sent */
	PUSH_FAILS,
	PUSH_OUTCOMES,
};

/* Why a batch is lost. */
enum push_loss {
	PUSH_LOST_FULL, /* the queue is full: the oldest */
	PUSH_LOST_TORN, /* a file of the queue is not what was written */
	PUSH_LOST_UNKEPT, /* it was not sent, and could not be kept */
	PUSH_LOSSES,
};

struct push_end {
	uint32_t outcome; /* enum push_outcome */
	uint32_t batches; /* in the queue, as of now */
	uint64_t bytes; /* of them on the disk */
	/* since the answer before: */
	uint64_t sent, queued, refused; /* batches */
	uint64_t failures[NET_FAILURES]; /* requests that failed */
	uint64_t lost[PUSH_LOSSES]; /* batches */
	char error[256]; /* what does not work; "" */
};
