// SPDX-License-Identifier: Apache-2.0
/* Names of metrics of GPUs as members of /api/v1/gpus: "power_watts", "utilization_ratio.gpu". */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct metric;

enum { METRIC_NAME = 128 };
void metric_name(const struct metric *metric, char buf[static METRIC_NAME]);
/*
 * The indexes of those called so, at most @room, in @ret_list; how many there are. @name has @n bytes; a
 * family without label is all of its metrics, and its name on /metrics is as good.
 */
size_t gpu_metrics_named(const char *name, size_t n, uint16_t *ret_list, size_t room);
