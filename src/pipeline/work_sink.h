// SPDX-License-Identifier: Apache-2.0
/* Receivers of works of GPUs with their true times. activity/sink.h has the guarantees. */
#pragma once

#include <stdint.h>

#include "activity/sink_list.h"
#include "model/cupti_wire.h"

struct time_part {
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
};

/* Valid during the call. */
struct measured_work {
	uint32_t tgid;
	const char *uuid; /* of the device; "": not known */
	const char *symbol; /* of a kernel, as compiled; "": it is none, or not known */
	const struct cupti_work *work;
};

struct work_sink {
	struct sink sink;
	/* -errno: the sink drops it. */
	int (*work)(const struct measured_work *work, void *userdata);
	/* All work that began in this time is told, but for what still runs; may be NULL. */
	void (*measured)(uint32_t tgid, struct time_part part, void *userdata);
};

struct work_sinks {
	struct sink_list list;
};

static inline struct work_sink *work_sink_at(const struct work_sinks *list, uint32_t i)
{
	return (struct work_sink *)(void *)list->list.at[i];
}

/* As for other sinks: activity/span_sink.h. */
int work_sinks_add(struct work_sinks *list, struct work_sink *sink);
void work_sinks_remove(struct work_sinks *list, const struct work_sink *sink);
/* A turn is all that comes at once. */
void work_sinks_turn(struct work_sinks *list);
void work_sinks_work(struct work_sinks *list, const struct measured_work *work);
void work_sinks_measured(struct work_sinks *list, uint32_t tgid, struct time_part part);
uint64_t work_sinks_not_taken(const struct work_sinks *list);
