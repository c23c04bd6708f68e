// SPDX-License-Identifier: Apache-2.0
/*
 * The driver's interface alone, looked up in libcuda.so.1 at run time: the library is another on each machine, and
 * on many there is none. Prints each call's result, or that there is no driver.
 */
#include <cstdio>
#include <dlfcn.h>

#include <cuda.h>

static void *library;

template <typename Function, typename... Arguments>
static void call(const char *symbol, Arguments... arguments)
{
	Function *function = (Function *)dlsym(library, symbol);

	std::printf("%s %d\n", symbol, function ? (int)function(arguments...) : -1);
}

int main()
{
	CUdevice device = 0;
	CUcontext context = nullptr;
	CUdeviceptr memory = 0;

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		std::printf("no driver\n");
		return 0;
	}
	call<decltype(cuInit)>("cuInit", 0);
	call<decltype(cuDeviceGet)>("cuDeviceGet", &device, 0);
	call<decltype(cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain", &context, device);
	call<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent", context);
	call<decltype(cuMemAlloc)>("cuMemAlloc_v2", &memory, (size_t)4096);
	call<decltype(cuCtxSynchronize)>("cuCtxSynchronize");
	call<decltype(cuMemFree)>("cuMemFree_v2", memory);
	return 0;
}
