// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde trace --raw": an event sink that writes each event as a line. It buffers at most RAW_FLUSH bytes
 * of text. Its time is not limited: every event must be written, and no other sink needs them in time.
 */
#pragma once

#include "activity/event_sink.h"
#include "base/strbuf.h"
#include "blas/blas.h"

struct raw_sink_ops {
	int (*write)(const struct strbuf *text, void *userdata); /* -errno: ends the output */
	const char *(*comm)(uint32_t pid, void *userdata); /* a process's name; NULL: not known */
};

struct raw_sink {
	struct event_sink sink;
	bool json;
	const struct blas *blas; /* for cublasLt's sizes; a sink before this one; NULL: not known */
	struct strbuf text; /* events not yet written */
	struct raw_sink_ops ops;
	void *userdata; /* for ops */
	int failed; /* -errno of the first failed write, or 0 */
};

void raw_sink_init(struct raw_sink *raw, bool json, const struct raw_sink_ops *ops, void *userdata);
void raw_sink_done(struct raw_sink *raw);
/* Writes the buffered text. */
void raw_sink_flush(struct raw_sink *raw);
