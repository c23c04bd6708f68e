// SPDX-License-Identifier: Apache-2.0
/* What the agent sends and writes for others: pushing to servers, StatsD, a file for node_exporter. */
#pragma once

#include "agent/agent.h"

/* What is configured wrongly is said, and does not keep the agent from its work. 0 or -errno. */
int outputs_begin(struct agent *agent, const struct options *options);
/* Before the collector ends, whose snapshots they have. */
void outputs_end(struct agent *agent);
void outputs_tick(struct agent *agent);
/* Copies how they are; the caller has agent->lock. */
void outputs_tell(struct agent *agent);
