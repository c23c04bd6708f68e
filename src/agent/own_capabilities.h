// SPDX-License-Identifier: Apache-2.0
/*
 * What this process may do and lacks, as JSON: the agent hands it to doctor over its socket, which otherwise
 * knows only its own.
 *
 *   {"tracing": {"known": bool, "needed": bool, "text": "", "remedy": ""}, "kernel_log": {"text": "",
 *   "remedy": ""}, "capabilities": " CAP_...",
 *    "processes": "all" | "namespace" | "hidden"}
 *
 * An empty text: nothing is missing. "needed": without it nothing can be traced. Not "known": what the kernel
 * asks for, and this process lacks some of what it may be.
 */
#pragma once

#include <jansson.h>

/* NULL: out of memory. */
json_t *own_capabilities(void);
