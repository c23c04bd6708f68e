// SPDX-License-Identifier: Apache-2.0
/* Values of columns that are no member of a page (columns.def). */
#pragma once

#include "cmd/top/columns.h"

value_fn value_gpu_index, value_gpu_name, value_gpu_state, value_throttled_by, value_given_to;
value_fn value_process_gpu, value_user, value_types, value_process_sm, value_cpu, value_host_memory;
value_fn value_threads, value_host_state, value_workload, value_owner, value_severity;

/* Sets a text. */
void value_set(struct value *value, const char *fmt, ...) _printf_(2, 3);
