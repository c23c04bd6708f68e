// SPDX-License-Identifier: Apache-2.0
/* glibc's heap. */
#pragma once

/*
 * Keeps a process's memory small over months: one arena, and large buffers are returned to the kernel when
 * freed. Fixed thresholds also turn off glibc's dynamic adjustment. For main(), before other threads begin.
 */
void heap_keep_small(void);
