// SPDX-License-Identifier: Apache-2.0
/*
 * This process's capabilities, as JSON. The agent serves it on its socket to doctor, which otherwise knows
 * only the capabilities of its own process.
 *
 *   {"tracing": {"known": bool, "needed": bool, "text": "", "remedy": ""}, "kernel_log": {"text": "",
 *   "remedy": ""}, "capabilities": " CAP_...",
 *    "processes": "all" | "namespace" | "hidden"}
 *
 * An empty text: nothing is missing. "needed": nothing can be traced without it. "known" is false where it
 * cannot be determined which capabilities the kernel requires, and this process lacks some of the candidates.
 */
#pragma once

#include <jansson.h>

/* NULL: out of memory. */
json_t *own_capabilities(void);
