// SPDX-License-Identifier: Apache-2.0
/* What atop is answered, from a collector's snapshots; the last statistics are kept. For one thread. */
#pragma once

#include <stdatomic.h>

#include "agent/driver/collector.h"
#include "serve/atop_server.h"

struct atop_answers {
	struct collector *collector;
	atomic_uint_fast64_t truncated; /* answers that did not hold everything; any thread may read it */
	/* The last rendered statistics and their inputs; the same request is answered from here. */
	struct {
		struct strbuf text;
		uint64_t seq, exit_seq, next_exit_seq;
		unsigned version;
	} cached;
};

void atop_answers_init(struct atop_answers *answers, struct collector *collector);
void atop_answers_done(struct atop_answers *answers);

/* Its userdata is the struct atop_answers. */
extern const struct atop_source atop_answers;
/* What atop_answers says of this snapshot. */
uint64_t atop_newest_exit(const struct snapshot *snapshot);
