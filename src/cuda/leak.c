// SPDX-License-Identifier: Apache-2.0
/*
 * The verdict "suspected leak": for 30 windows of at least 10 seconds in a row, both the bytes that calls
 * allocated and did not free and the memory that NVML sees were higher at the end than at the end of the
 * window before. One window without a rise of both starts the count again; one in which NVML does not say is
 * none. A cache that fills or a model that loads step by step pauses or frees something at least once in five
 * minutes.
 */
#include "cuda/private.h"

#include "base/clock.h"

#define LEAK_WINDOW_NS (10 * NSEC_PER_SEC)
enum { LEAK_WINDOWS = 30 };

void leak_window(struct leak *leak, int64_t now_ns, uint64_t ledger_bytes, double nvml_bytes)
{
	if (nvml_bytes < 0 || (leak->started && now_ns - leak->last_ns < LEAK_WINDOW_NS))
		return;
	if (leak->started && ledger_bytes > leak->ledger && nvml_bytes > leak->nvml)
		leak->rises += leak->rises < LEAK_WINDOWS;
	else
		leak->rises = 0;
	leak->started = true;
	leak->last_ns = now_ns;
	leak->ledger = ledger_bytes;
	leak->nvml = nvml_bytes;
}

bool leak_verdict(const struct leak *leak)
{
	return leak->rises >= LEAK_WINDOWS;
}
