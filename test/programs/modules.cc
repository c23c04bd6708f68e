// SPDX-License-Identifier: Apache-2.0
/*
 * modules CUBIN FATBIN [--wait]: loads device code through the driver's interface in each way that there is, and launches its kernels, as Triton does.
 * --wait as in kernels.cu: what it loads is loaded before that.
 */
#include <dlfcn.h>
#include <fstream>
#include <iterator>

#include <cuda.h>

#include "truth.hh"

static void *driver;
static Truth truth;

template <typename Function, typename... Arguments>
static CUresult call(const char *symbol, Arguments... arguments)
{
	Function *function = (Function *)dlsym(driver, symbol);
	CUresult result = function ? function(arguments...) : CUDA_ERROR_NOT_FOUND;

	if (result != CUDA_SUCCESS)
		std::fprintf(stderr, "%s: %d\n", symbol, (int)result);
	return result;
}
#define CALL(function, ...) call<decltype(function)>(#function, __VA_ARGS__)

static const char triton_like[] = "triton_like", loaded[] = "_Z6loadedPfi";

struct Kernel {
	const char *name, *how;
	CUfunction function;
};
static std::vector<Kernel> kernels;

static std::vector<char> read(const char *path)
{
	std::ifstream file(path, std::ios::binary);

	return std::vector<char>(std::istreambuf_iterator<char>(file), {});
}

static void load_modules(const char *path, const std::vector<char> &cubin)
{
	CUmodule from_memory = nullptr, from_file = nullptr;
	CUfunction function = nullptr;

	CALL(cuModuleLoadData, &from_memory, cubin.data());
	for (const char *name : { triton_like, loaded })
		if (CALL(cuModuleGetFunction, &function, from_memory, name) == CUDA_SUCCESS)
			kernels.push_back({ name, "cuModuleLoadData", function });
	CALL(cuModuleLoad, &from_file, path);
	if (CALL(cuModuleGetFunction, &function, from_file, triton_like) == CUDA_SUCCESS)
		kernels.push_back({ triton_like, "cuModuleLoad", function });
}

static void load_library(const std::vector<char> &fatbin)
{
	CUlibrary library = nullptr;
	CUkernel kernel = nullptr;
	CUfunction function = nullptr;

	CALL(cuLibraryLoadData, &library, fatbin.data(), nullptr, nullptr, 0U, nullptr, nullptr, 0U);
	/* A kernel is launched as it is, or its function in the context. */
	if (CALL(cuLibraryGetKernel, &kernel, library, loaded) == CUDA_SUCCESS)
		kernels.push_back({ loaded, "cuLibraryGetKernel", (CUfunction)kernel });
	if (CALL(cuLibraryGetKernel, &kernel, library, triton_like) == CUDA_SUCCESS &&
	    CALL(cuKernelGetFunction, &function, kernel) == CUDA_SUCCESS)
		kernels.push_back({ triton_like, "cuKernelGetFunction", function });
}

static void launch_all()
{
	for (unsigned i = 0; i < kernels.size(); i++) {
		const Kernel &kernel = kernels[i];
		CUdeviceptr memory = 0;
		int n = 0;
		void *arguments[] = { &memory, &n };
		unsigned grid = i + 1, block = 32 * (i + 1);
		CUresult result = CALL(cuLaunchKernel, kernel.function, grid, 1U, 1U, block, 1U, 1U, 64U,
				       nullptr, arguments, nullptr);

		truth.add(Launch{
			kernel.name, kernel.how, nullptr, { grid, 1, 1 }, { block, 1, 1 }, 64, (int)result });
	}
	call<decltype(cuCtxSynchronize)>("cuCtxSynchronize");
}

int main(int argc, char **argv)
{
	std::vector<char> cubin, fatbin;
	CUcontext context = nullptr;
	CUdevice device = 0;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver || argc < 3)
		return 2;
	cubin = read(argv[1]);
	fatbin = read(argv[2]);
	if (cubin.empty() || fatbin.empty() || CALL(cuInit, 0U) != CUDA_SUCCESS)
		return 2;
	CALL(cuDeviceGet, &device, 0);
	CALL(cuDevicePrimaryCtxRetain, &context, device);
	CALL(cuCtxSetCurrent, context);
	load_modules(argv[1], cubin);
	load_library(fatbin);
	launch_all();
	if (argc > 3 && std::strcmp(argv[3], "--wait") == 0) {
		if (!wait_for_line())
			return 1;
		launch_all();
	}
	truth.print();
	return kernels.size() == 5 ? 0 : 1;
}
