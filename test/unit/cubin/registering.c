// SPDX-License-Identifier: Apache-2.0
#include "registering.h"

static const char fatbin[64] __attribute__((section(".nv_fatbin"), used)) = "\x50\xed\x55\xba";
static struct wrapper wrapper
	__attribute__((section(".nvFatBinSegment"), used)) = { 0x466243b1, 1, fatbin, 0 };
static void **fatbin_handle;
static int variable;

#ifdef LEGACY
#define START(kernel) cudaLaunchKernel((const void *)kernel, grid, block, arguments, shared, stream)
#define HANDLE(kernel)
#else
/* At file scope, so that symbols tell which is whose. */
#define HANDLE(kernel)                \
	static void *handle_##kernel; \
	static char asked_##kernel;
#define START(kernel)                                                                                  \
	if (!asked_##kernel)                                                                           \
		asked_##kernel = __cudaGetKernel(&handle_##kernel, (const void *)kernel) == 0 ? 1 : 2; \
	__cudaLaunchKernel(handle_##kernel, grid, block, arguments, shared, stream)
#endif

#define LAUNCH(kernel)                                                                \
	{                                                                             \
		struct dim3 grid, block;                                              \
		unsigned long shared;                                                 \
		void *stream, *arguments[] = { &p };                                  \
                                                                                      \
		if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) != 0) \
			return;                                                       \
		START(kernel);                                                        \
	}

#ifdef CLANG_NAMES
/* The function itself has the name that nvcc gives the one that it calls. */
#define STUB(linkage, kernel, clang, nvcc)          \
	linkage void kernel(int *p) __asm__(clang); \
	HANDLE(kernel)                              \
	linkage __attribute__((used)) void kernel(int *p) LAUNCH(kernel) struct dim3
#else
#define STUB(linkage, kernel, clang, nvcc)                                             \
	linkage void kernel(int *p);                                                   \
	static void twin_##kernel(int *p) __asm__(nvcc);                               \
	HANDLE(kernel)                                                                 \
	static __attribute__((used)) void twin_##kernel(int *p) LAUNCH(kernel) linkage \
		__attribute__((used)) void                                             \
		kernel(int *p)                                                         \
	{                                                                              \
		twin_##kernel(p);                                                      \
	}                                                                              \
	struct dim3
#endif

STUB(, plain, "__device_stub__plain", "_Z24__device_stub__Z5plainPiPi");
STUB(, _Z7mangledPi, "_Z22__device_stub__mangledPi", "_Z26__device_stub__Z7mangledPiPi");
STUB(static, local, "_ZL20__device_stub__localPi", "_ZL24__device_stub__Z5localPiPi");

#ifndef UNREGISTERED
#define REGISTER(kernel, name) \
	__cudaRegisterFunction(handle, (const char *)kernel, (char *)name, name, -1, 0, 0, 0, 0, 0)

static void registered(void **handle)
{
	fatbin_handle = handle;
	REGISTER(plain, "plain");
	REGISTER(_Z7mangledPi, "_Z7mangledPi");
	REGISTER(local, "_Z5localPi");
	__cudaRegisterVar(handle, (char *)&variable, (char *)"variable", "variable", 0, 4, 0, 0);
}

static __attribute__((constructor)) void register_all(void)
{
	void (*callback)(void **) = registered;

	callback(__cudaRegisterFatBinary(&wrapper));
	__cudaRegisterFatBinaryEnd(fatbin_handle);
}
#endif

/* Calls that are like those that register, and are not. */
__attribute__((used)) int others(const char *given)
{
	unlike(0, (const void *)others, "other", "other", 0); /* another number */
	unlike(0, (const void *)others, "one", "two", -1); /* two names */
	unlike(0, (const void *)others, "no name", "no name", -1);
	unlike(0, (const void *)given, "given", "given", -1); /* no function that is known */
	unlike(0, &variable, "variable", "variable", -1);
	return 0;
}

#ifdef PROGRAM
int main(void)
{
	plain(0);
	_Z7mangledPi(0);
	local(0);
	return others("");
}
#endif
