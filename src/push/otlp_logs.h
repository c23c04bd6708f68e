// SPDX-License-Identifier: Apache-2.0
/*
 * The kind `otlp_logs`: events (model/event.h) by OpenTelemetry's protocol over HTTP as log records, packed
 * by gzip.
 */
#pragma once

#include "push/kind.h"

extern const struct push_kind otlp_logs_kind;
