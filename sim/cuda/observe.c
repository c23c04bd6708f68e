// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/observe.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "sim/cuda/driver.h"

static const struct sim_observer *observer; /* NULL: nobody looks */
static uint32_t correlations, numbers;

__attribute__((visibility("default"))) void gpusonde_sim_cuda_observe(const struct sim_observer *by);

void gpusonde_sim_cuda_observe(const struct sim_observer *by)
{
	__atomic_store_n(&observer, by, __ATOMIC_RELEASE);
}

uint32_t observe_call(uint32_t call)
{
	const struct sim_observer *by = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
	uint32_t correlation = by ? __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED) : 0;

	if (by && call)
		by->called(call, correlation);
	return correlation;
}

/* Within the driver's lock. */
static uint32_t number_of(uint32_t *number)
{
	if (*number == 0)
		*number = __atomic_add_fetch(&numbers, 1, __ATOMIC_RELAXED);
	return *number;
}

void observe_work(struct cu_stream *stream, struct sim_work *work)
{
	const struct sim_observer *by = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);

	if (!by || work->end_ns == 0 || work->correlation == 0)
		return;
	driver_lock();
	work->device = (uint32_t)stream->context->device;
	work->context = number_of(&stream->context->number);
	work->stream = number_of(&stream->number);
	driver_unlock();
	by->worked(work);
}

/* As the driver does once it is initialised. */
void observe_inject(void)
{
	const char *path = secure_getenv("CUDA_INJECTION64_PATH");
	void *library = path && *path ? dlopen(path, RTLD_NOW) : NULL;
	int (*inject)(void) = NULL;

	if (library)
		*(void **)&inject = dlsym(library, "InitializeInjection");
	if (inject)
		inject();
}
