// SPDX-License-Identifier: Apache-2.0
/* True times of GPUs' work, as CUPTI's plugin (src/cupti_plugin) sends them to cupti.socket. */
#pragma once

#include <sys/types.h>

#include <systemd/sd-event.h>

#include "model/cupti_wire.h"
#include "model/model.h"

struct cupti_times;
struct gpu_works;

/* What has come since the last time; belongs to the callee. */
typedef void cupti_works_fn(struct gpu_works *works, void *userdata);

/* @path: agent/plugin_socket.h; @wanted: how much the plugin is to measure. The error is logged. */
int cupti_times_new(sd_event *event, struct model *model, const char *path, const struct cupti_wanted *wanted,
		    cupti_works_fn *works, void *userdata, struct cupti_times **ret_times);
void cupti_times_free(struct cupti_times *times);
/* Once a second: asks for the rows. */
void cupti_times_tick(struct cupti_times *times);
/* Of the process that receives; 0: none. */
pid_t cupti_times_pid(const struct cupti_times *times);
