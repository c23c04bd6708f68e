// SPDX-License-Identifier: Apache-2.0
/* Values of columns that are no member of a page (columns.def). */
#pragma once

#include "cmd/top/columns.h"
#include "view/view.h"

value_fn value_gpu_index, value_gpu_name, value_gpu_state, value_throttled_by, value_given_to;
value_fn value_process_gpu, value_user, value_types, value_process_sm, value_cpu, value_host_memory;
value_fn value_host, value_worst_state, value_total_gpus, value_total_load, value_total_memory;
value_fn value_total_memory_of, value_total_power, value_total_heat, value_total_processes;
value_fn value_host_age, value_host_trouble;
value_fn value_command, value_age;
value_fn value_server_state, value_tokens_in, value_tokens_out;
value_fn value_threads, value_host_state, value_workload, value_owner, value_severity;

/* How a state of a GPU looks. */
enum role value_severity_role(enum gpu_severity severity);
/* Sets a text. */
void value_set(struct value *value, const char *fmt, ...) _printf_(2, 3);
