// SPDX-License-Identifier: Apache-2.0
/*
 * throwing TURNS: C++ exceptions thrown and caught around calls of the CUDA driver, which fail. Prints
 * how many were thrown, caught, and cleaned up after; 1 if one was lost.
 */
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

static int (*allocate)(unsigned long long *address, size_t bytes);
static int cleaned;

struct Cleanup {
	~Cleanup()
	{
		cleaned++;
	}
};

static void fail(int depth)
{
	Cleanup cleanup;
	unsigned long long address;

	if (depth > 0)
		return fail(depth - 1);
	if (int code = allocate(&address, (size_t)1 << 60))
		throw code;
}

int main(int argc, char **argv)
{
	const int turns = argc > 1 ? std::atoi(argv[1]) : 100;
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : nullptr;
	int thrown = 0, caught = 0;

	allocate = library ? (int (*)(unsigned long long *, size_t))dlsym(library, "cuMemAlloc_v2") : nullptr;
	if (!init || !allocate || init(0) != 0)
		return 2;
	for (int i = 0; i < turns; i++) {
		try {
			thrown++;
			fail(5);
		} catch (int) {
			caught++;
		}
	}
	std::printf("{\"thrown\":%d,\"caught\":%d,\"cleaned\":%d}\n", thrown, caught, cleaned);
	return thrown == caught && cleaned == 6 * turns ? 0 : 1;
}
