// SPDX-License-Identifier: Apache-2.0
/*
 * Names of metrics of GPUs as members of /api/v1/gpus: "power_watts", "utilization_ratio.gpu"; of the machine
 * as on /metrics without "gpusonde_": "host_cpu_seconds_total.idle".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct metric;

enum { METRIC_NAME = 128 };
void metric_name(const struct metric *metric, char buf[static METRIC_NAME]);
/*
 * Those called so, by metric_code(), at most @room, in @ret_list; how many there are. @name has @n bytes; a
 * family without label is all of its metrics, and its name on /metrics is as good.
 */
size_t metrics_named(const char *name, size_t n, uint32_t *ret_list, size_t room);
