// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/fault.h"

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"

enum { HANG_STEP_MS = 20 };

const char *const fault_kind_names[FAULT_KIND_COUNT] = {
	[FAULT_ERROR] = "error",           [FAULT_HANG] = "hang", [FAULT_CRASH] = "crash",
	[FAULT_SENTINEL] = "sentinel",     [FAULT_WRAP] = "wrap", [FAULT_STRIDE] = "stride",
	[FAULT_NAMESPACED] = "namespaced", [FAULT_LOST] = "lost", [FAULT_REMOVED] = "removed",
	[FAULT_UNLOADED] = "unloaded",
};

bool name_globs_match(const struct name_globs *globs, const char *name)
{
	for (uint32_t i = 0; i < globs->count; i++) {
		if (fnmatch(globs->pattern[i], name, 0) == 0)
			return true;
	}
	return false;
}

bool fault_active(const struct fault *fault, int64_t now_ms, int64_t began_ms)
{
	if (fault->since == FAULT_SINCE_LOAD)
		now_ms -= began_ms;
	return window_open(&fault->window, now_ms);
}

bool fault_matches(const struct fault *fault, const char *function, int gpu)
{
	if (fault->gpus != 0 && (gpu < 0 || !(fault->gpus >> gpu & 1)))
		return false;
	return fault->functions.count == 0 || name_globs_match(&fault->functions, function);
}

bool fault_has_field(const struct fault *fault, uint32_t field)
{
	for (uint32_t i = 0; i < fault->field_count; i++) {
		if (fault->fields[i] == field)
			return true;
	}
	return fault->field_count == 0;
}

void fault_hang(int64_t hang_ms, bool (*still)(void *), void *userdata)
{
	const struct timespec step = { .tv_nsec = HANG_STEP_MS * NSEC_PER_MSEC };
	int64_t start = clock_mono_ns();
	sigset_t all, before;

	/* A call stuck in the kernel's driver does not see signals either. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (;;) {
		if (hang_ms == FAULT_HANG_WHILE && !still(userdata))
			break;
		if (hang_ms >= 0 && clock_mono_ns() - start >= hang_ms * NSEC_PER_MSEC)
			break;
		nanosleep(&step, NULL);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/*
 * A page that may not be touched: the real thing, unlike raise(), also for handlers that look at the
 * address.
 */
_Noreturn void fault_crash(void)
{
	volatile char *page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*page = 1;
	abort();
}
