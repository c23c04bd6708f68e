// SPDX-License-Identifier: Apache-2.0
#include "made.hh"

extern "C" {
int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(uint64_t *memory, size_t size);
int cuMemFree_v2(uint64_t memory);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);
}

/* So that the function begins with an instruction that can be probed. */
#if defined(__x86_64__)
#define SAVE_REGISTER() __asm__ volatile("" ::: "rbx")
#else
#define SAVE_REGISTER() __asm__ volatile("" ::: "x19")
#endif

static uint64_t device_address(void *memory)
{
	return (uint64_t)(uintptr_t)memory;
}

int madeInit(void)
{
	void *context = nullptr;
	int device = 0, r = cuInit(0);

	if (r == 0)
		r = cuDeviceGet(&device, 0);
	if (r == 0)
		r = cuDevicePrimaryCtxRetain(&context, device);
	return r ? r : cuCtxSetCurrent(context);
}

void *madeAlloc(size_t size)
{
	uint64_t memory = 0;

	return cuMemAlloc_v2(&memory, size) ? nullptr : (void *)(uintptr_t)memory;
}

int madeFree(void *memory)
{
	int r = cuMemFree_v2(device_address(memory));

	__asm__ volatile("" ::: "memory"); /* no jump instead of the call */
	return r;
}

int madeCopy(void *to, const void *from, size_t size)
{
	int r = cuMemcpyHtoD_v2(device_address(to), from, size);

	__asm__ volatile("" ::: "memory");
	return r;
}

int madeFail(int code)
{
	cuMemFree_v2(1);
	return code;
}

int madeRepeat(int times, void *to, const void *from, size_t size)
{
	int r = times > 1 ? madeRepeat(times - 1, to, from, size) : 0;

	return r ? r : madeCopy(to, from, size);
}

int madeTail(void *memory)
{
	SAVE_REGISTER();
	return cuMemFree_v2(device_address(memory));
}

int madeCall(void (*fn)(void *), void *userdata)
{
	fn(userdata);
	__asm__ volatile("" ::: "memory");
	return 0;
}

int madeNote(int value)
{
	SAVE_REGISTER();
	return value;
}

int madeThrow(void *to, const void *from, size_t size)
{
	cuMemcpyHtoD_v2(device_address(to), from, size);
	throw 1;
}
