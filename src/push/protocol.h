// SPDX-License-Identifier: Apache-2.0
/*
 * Between the agent (agent/outputs/push.c) and gpusonde-push, of which there is one for each destination: a
 * question, with or without something to push, and at once an answer: how far what came before has got. What
 * is to be pushed is in a file in memory, whose descriptor comes with the question: rows (struct push_row),
 * events (model/event.h) or a page of samples (samples/page.h), as the kind of the destination takes it.
 */
#pragma once

#include <limits.h>
#include <stdint.h>

#include "model/contract.h"
#include "model/net_failure.h"
#include "model/push_kinds.h"

enum {
	PUSH_ROWS_MAX = 4096,
	PUSH_EVENTS_MAX = 1024,
	PUSH_KEY_MAX = 4096, /* with its NUL */
	PUSH_PEM_MAX = 16384, /* the same */
	PUSH_HEADERS_MAX = 4096, /* the same */
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
	uint32_t kind; /* enum push_kind_id */
	uint32_t reserved;
	char url[1024]; /* of the server, without a slash at its end */
	char cluster[256]; /* PUSH_ROWS */
	char proxy[1024], no_proxy[1024]; /* as the environment says; "": none */
	char folder[PATH_MAX]; /* of the queue; "": nothing is kept */
	char ca_file[PATH_MAX]; /* to verify the server with; "": the system's certificates */
	uint64_t queue_bytes; /* that may lie there */
	int64_t queue_age_ns; /* what is older is dropped; 0: nothing is */
	uint32_t protocol; /* PUSH_REMOTE_WRITE: 1 or 2 */
	uint32_t samples_max; /* of a request */
	uint32_t native_histograms; /* PUSH_REMOTE_WRITE: 1 or 0 */
	uint32_t reserved2;
	char headers
		[PUSH_HEADERS_MAX]; /* of each request, besides its kind's: lines, each with its newline */
	char labels[4096]; /* of each series, besides its own: name=value, each with its newline */
};

struct push_question {
	char version[32]; /* GPUSONDE_VERSION; of another one's question nothing else is read */
	char key[PUSH_KEY_MAX]; /* as the kind's header has it; "": there is none */
	/* What is shown to the server in TLS, in PEM; "": nothing is. */
	char certificate[PUSH_PEM_MAX], certificate_key[PUSH_PEM_MAX];
	char headers[PUSH_HEADERS_MAX]; /* further ones that may be secret: lines, each with its newline */
	uint32_t bytes; /* that the descriptor has; 0: it is only asked how things stand */
	uint32_t waits; /* 1: the key or certificate is not known: nothing is sent meanwhile */
	uint32_t reserved;
	uint32_t ends; /* 1: the agent ends: it waits for a moment until all is sent or kept */
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
	PUSH_LOST_OLD, /* it has waited for too long */
	PUSH_LOSSES,
};

struct push_end {
	uint32_t outcome; /* enum push_outcome */
	uint32_t batches; /* in the queue, as of now */
	uint64_t bytes; /* of them on the disk */
	/* since the answer before: */
	uint64_t sent, queued, refused; /* batches */
	uint64_t refused_samples; /* of batches that were refused, and of those that were taken in part */
	uint64_t failures[NET_FAILURES]; /* requests that failed */
	uint64_t lost[PUSH_LOSSES]; /* batches */
	char error[600]; /* what does not work; "" */
};
