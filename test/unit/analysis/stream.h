// SPDX-License-Identifier: Apache-2.0
/* Generated streams of events for the tests of rules: a program whose steps a test describes. */
#pragma once

#include <stdbool.h>

#include "analysis/analysis.h"
#include "base/clock.h"
#include "base/macro.h"
#include "test.h"

#define MS ((uint64_t)NSEC_PER_MSEC)
#define US ((uint64_t)NSEC_PER_USEC)

/* A moment, and who acts at it. */
struct stream {
	struct analysis *analysis;
	uint64_t now_ns;
	uint32_t node, device, pid, tid;
	uint64_t noise; /* state of the generator; never 0 */
};

/* At 1000 s, pid 100 on "GPU 0" of "here". */
struct stream stream_begin(uint64_t window_ns);
void stream_end(struct stream *stream);
uint32_t stream_text(struct stream *stream, const char *text);
/* From 0 to 1, the same in every run. */
double stream_random(struct stream *stream);
/* Of mean 0 and variance 1. */
double stream_normal(struct stream *stream);

/* An event of the stream's process that takes so long from now on; now is then its end. */
void stream_add(struct stream *stream, struct analysis_event event, uint64_t ns);
/* The same at a time of one's own. */
void stream_put(struct stream *stream, struct analysis_event event, uint64_t begin_ns, uint64_t end_ns);
/* A figure of the device, now. */
void stream_counter(struct stream *stream, enum analysis_counter counter, double value);

/* The newest finding of a rule; NULL: none. */
const struct analysis_finding *stream_finding(const struct stream *stream, enum analysis_rule rule);
uint32_t stream_findings(const struct stream *stream, enum analysis_rule rule);
/* NAN: it has no such value. */
double finding_get(const struct analysis_finding *finding, const char *name);
