// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/nvml/call.h"

/* Numbers that more than one function gives. */

/* For how long a policy has held clocks down since the driver was loaded, in nanoseconds. */
uint64_t violation_ns(const struct call *call, uint32_t policy);
/* The same for reasons of enum nvml_clocks_event_reason: the sum over those in the mask. */
uint64_t reason_ns(const struct call *call, uint64_t mask);

/* Whole degrees. */
uint32_t temperature_c(const struct call *call);
uint32_t memory_temperature_c(const struct call *call);

/* Links that are up; all of them carry the same. */
uint32_t active_links(const struct call *call);
/* Bytes of one link since the driver was loaded. */
uint64_t link_bytes(const struct call *call, enum traffic traffic);

/* Errors of a link, or of all (UINT32_MAX), since the driver was loaded. */
uint64_t link_errors(const struct call *call, uint32_t link, enum counter_kind kind);
