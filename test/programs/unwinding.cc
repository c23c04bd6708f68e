// SPDX-License-Identifier: Apache-2.0
/*
 * unwinding: from within a function that may be traced, takes a backtrace, and has its thread cancelled. Prints
 * {"frames":N,"destroyed":0|1}: how deep the backtrace was, and whether the destructor of a frame outside of the function ran.
 */
#include <cstdio>

#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>

extern "C" int cudaStreamSynchronize(void (*callback)());

static int frames, destroyed;

struct Outside {
	~Outside()
	{
		destroyed = 1;
	}
};

static void look()
{
	void *addresses[64];

	frames = backtrace(addresses, 64);
}

static void wait_for_the_end()
{
	for (;;)
		pause();
}

static void *cancelled(void *)
{
	Outside outside;

	cudaStreamSynchronize(wait_for_the_end);
	return nullptr;
}

int main()
{
	pthread_t thread;

	cudaStreamSynchronize(look);
	if (pthread_create(&thread, nullptr, cancelled, nullptr))
		return 1;
	pthread_cancel(thread);
	pthread_join(thread, nullptr);
	std::printf("{\"frames\":%d,\"destroyed\":%d}\n", frames, destroyed);
	return 0;
}
