// SPDX-License-Identifier: Apache-2.0
/*
 * "gpusonde trace --raw": an event sink that writes each event as a line. It holds RAW_FLUSH bytes of text at
 * most and has no bound on its time: what is asked for is every event, and nobody else waits for them.
 */
#pragma once

#include "activity/event_sink.h"
#include "base/strbuf.h"

struct raw_sink {
	struct event_sink sink;
	bool json;
	struct strbuf text; /* events not yet written */
	int (*write)(const struct strbuf *text, void *userdata); /* -errno: no more is wanted */
	void *userdata; /* its */
	int failed; /* -errno of the first write that failed; 0 */
};

void raw_sink_init(struct raw_sink *raw, bool json, int (*write)(const struct strbuf *text, void *userdata),
		   void *userdata);
void raw_sink_done(struct raw_sink *raw);
/* Writes what is held. */
void raw_sink_flush(struct raw_sink *raw);
