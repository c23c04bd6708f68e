// SPDX-License-Identifier: Apache-2.0
/*
 * The kind `otlp`: OpenTelemetry's protocol over HTTP, metrics (otlp.proto), packed by gzip. Names are those
 * of its semantic conventions where they have some (otlp.def), else gpusonde.* and the family's.
 *
 * Sums are cumulative, or of delta temporality: then a point has what was added since the page before, and a
 * series that was not there then only says where it stands, unless it is known to have begun since.
 */
#pragma once

#include "push/kind.h"

enum { OTLP_CUMULATIVE, OTLP_DELTA }; /* struct push_settings' protocol */

extern const struct push_kind otlp_kind;

/* Of metrics and logs the same: struct push_kind's headers(), refused(). */
const char *const *otlp_headers(uint32_t format);
uint64_t otlp_refused(const uint8_t *answer, size_t n, char *ret_words, size_t size);
