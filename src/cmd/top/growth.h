// SPDX-License-Identifier: Apache-2.0
/*
 * How fast sums grow, from the document before to this one: the machine's own, and, from page to page of
 * theirs, tokens of inference servers. Each is by second; negative: it is not known.
 */
#pragma once

#include "cmd/top/sample.h"

/* Remembers in @sample what @previous, of the same machine, had; NULL: there is none. */
void growth_follow(struct sample *sample, const struct sample *previous);
void growth_free(struct growth *before);

double growth_host(const struct sample *sample, enum host_metric metric);
double growth_device(const struct sample *sample, enum host_kind kind, const struct host_device *device,
		     unsigned row);
/* @metric: SERVER_TOKENS_PROMPT or SERVER_TOKENS_GENERATED. */
double growth_server(const struct sample *sample, const struct inference_server *server,
		     enum server_metric metric);

/* Of the time of all processors, what they did something in; and what was one state's. */
double growth_busy(const struct sample *sample);
double growth_state(const struct sample *sample, enum host_metric state);
