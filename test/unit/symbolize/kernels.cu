// SPDX-License-Identifier: Apache-2.0
/*
 * A program whose kernels are to be named. It launches nothing: it tells where its host functions and handles lie, and waits. Lines are
 * "WHAT ADDRESS"; orders come one a line.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>

#ifndef THREADS
#define THREADS 128
#endif

namespace house {
template <typename T, int N> __global__ void __launch_bounds__(THREADS) templated(T *p)
{
	__shared__ T s[N];

	s[threadIdx.x % N] = p[threadIdx.x];
	__syncthreads();
	p[threadIdx.x] = s[(threadIdx.x + 1) % N];
}
}

namespace {
__global__ void anonymous(int *p)
{
	p[threadIdx.x] *= 3;
}
}

extern "C" __global__ void twin(float *p)
{
	__shared__ float s[THREADS];

	s[threadIdx.x] = p[threadIdx.x];
	__syncthreads();
	p[0] = s[THREADS - 1 - threadIdx.x];
}

template <typename F> __global__ void apply(F f, int *p)
{
	p[threadIdx.x] = f(p[threadIdx.x]);
}

static void tell(const char *what, const void *address)
{
	printf("%s %p\n", what, address);
	fflush(stdout);
}

template <typename F> static void tell_lambda(F f)
{
	tell("lambda", (const void *)apply<F>);
	if (getenv("LAUNCH"))
		apply<<<1, 1>>>(f, (int *)NULL);
}

extern "C" void tell_all(void)
{
	tell("templated", (const void *)house::templated<double, 32>);
	tell("anonymous", (const void *)anonymous);
	tell("twin", (const void *)twin);
	tell_lambda([] __device__(int x) { return x + 1; });
	if (getenv("LAUNCH")) {
		house::templated<double, 32><<<1, 1>>>(NULL);
		twin<<<1, 1>>>(NULL);
	}
}

#ifndef LIBRARY
/* A file's bytes in memory; at the same place each time. */
static void load(const char *path)
{
	static char *place;
	FILE *f = fopen(path, "rb");
	size_t n = 0;

	if (!place)
		place = (char *)mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(place, 0, 1 << 20);
	if (f) {
		n = fread(place, 1, 1 << 20, f);
		fclose(f);
	}
	tell(n ? "image" : "failed", place);
}

/* What a driver's function could look like: its name is one of many things that it points to. */
static void handle(char *names)
{
	char **words = (char **)calloc(4096, 1);
	unsigned n = 3;

	words[0] = (char *)words;
	words[1] = (char *)8;
	words[2] = strdup("not_a_kernel");
	for (char *name = strtok(names, " "); name; name = strtok(NULL, " "))
		words[n++] = strdup(name);
	tell("handle", words);
}

int main()
{
	static char line[8192];

	tell_all();
	tell("main", (const void *)main);
	while (printf("ready 0\n"), fflush(stdout), fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, "load ", 5) == 0)
			load(line + 5);
		else if (strncmp(line, "handle ", 7) == 0)
			handle(line + 7);
		else if (strncmp(line, "open ", 5) == 0) {
			void *library = dlopen(line + 5, RTLD_NOW | RTLD_LOCAL);
			void (*told)(void) = library ? (void (*)(void))dlsym(library, "tell_all") : NULL;

			if (told)
				told();
			else
				printf("failed 0\n");
		}
	}
	return 0;
}
#endif
