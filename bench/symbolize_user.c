// SPDX-License-Identifier: Apache-2.0
/*
 * A program that uses kernels of a library, as CUDA's runtime does for programs that link it: it maps the
 * library like a loader, loads an image from that memory, looks up kernels by name and launches them. No code
 * of the library runs, so its dependencies are not needed.
 *
 *	symbolize_user LIBCUDA LIBRARY KERNELS SYMBOLS
 *
 * SYMBOLS is a file that the first one writes the kernels' names to, for the others. Prints "ready", waits
 * for a line, launches, prints when it did (CLOCK_MONOTONIC, ns), launches again now and then until its input
 * ends.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "cubin/stub.h"
#include "elf/elf.h"

enum { PAGE = 4096, AGAIN_MS = 500 };

struct user {
	void *driver;
	void *library;
	unsigned wanted, n;
	FILE *symbols; /* being written; or NULL */
	void **functions;
};

static void *call(const struct user *user, const char *name)
{
	void *function = dlsym(user->driver, name);

	if (!function) {
		fprintf(stderr, "symbolize_user: no %s\n", name);
		exit(1);
	}
	return function;
}

static void must(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "symbolize_user: %s gives %d\n", what, result);
	exit(1);
}

/* The load address of linked address 0. */
static char *map_library(int fd, struct elf_file *elf)
{
	struct elf_range range;
	uint64_t end = 0;
	char *base;

	for (uint32_t i = 0; elf_range(elf, i, &range); i++)
		end = MAX(end, range.address + range.memory_size);
	base = mmap(NULL, end + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	for (uint32_t i = 0; elf_range(elf, i, &range); i++) {
		uint64_t skip = range.address % PAGE;
		int protection =
			PROT_READ | (range.executable ? PROT_EXEC : 0) | (range.writable ? PROT_WRITE : 0);

		if (mmap(base + range.address - skip, range.size + skip, protection, MAP_PRIVATE | MAP_FIXED,
			 fd, (off_t)(range.offset - skip)) == MAP_FAILED)
			return NULL;
	}
	return base;
}

static void ask_for(struct user *user, const char *symbol)
{
	int (*get_kernel)(void **, void *, const char *);
	int (*get_function)(void **, void *);
	void *kernel;

	*(void **)&get_kernel = call(user, "cuLibraryGetKernel");
	*(void **)&get_function = call(user, "cuKernelGetFunction");
	must(get_kernel(&kernel, user->library, symbol), "cuLibraryGetKernel");
	must(get_function(&user->functions[user->n++], kernel), "cuKernelGetFunction");
}

static int on_stub(const struct stub *stub, void *userdata)
{
	struct user *user = userdata;

	fprintf(user->symbols, "%s\n", stub->symbol);
	ask_for(user, stub->symbol);
	return user->n == user->wanted;
}

static void ask_for_all(struct user *user, int fd, const char *path)
{
	FILE *known = fopen(path, "r");
	static char line[1 << 16];
	uint64_t skipped;

	while (known && user->n < user->wanted && fgets(line, sizeof(line), known)) {
		line[strcspn(line, "\n")] = 0;
		ask_for(user, line);
	}
	if (known) {
		fclose(known);
		return;
	}
	user->symbols = fopen(path, "w");
	if (!user->symbols || stubs_read(fd, -1, on_stub, user, &skipped) < 0) {
		fprintf(stderr, "symbolize_user: no kernels, or no room for their names at %s\n", path);
		exit(1);
	}
	fclose(user->symbols);
}

static void begin(struct user *user, const char *libcuda)
{
	int (*init)(unsigned), (*retain)(void **, int), (*set)(void *);
	void *context;

	user->driver = dlopen(libcuda, RTLD_NOW);
	if (!user->driver) {
		fprintf(stderr, "symbolize_user: %s\n", dlerror());
		exit(1);
	}
	*(void **)&init = call(user, "cuInit");
	*(void **)&retain = call(user, "cuDevicePrimaryCtxRetain");
	*(void **)&set = call(user, "cuCtxSetCurrent");
	must(init(0), "cuInit");
	must(retain(&context, 0), "cuDevicePrimaryCtxRetain");
	must(set(context), "cuCtxSetCurrent");
}

static void launch(const struct user *user)
{
	int (*kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
		      void **, void **);

	*(void **)&kernel = call(user, "cuLaunchKernel");
	for (unsigned i = 0; i < user->n; i++)
		must(kernel(user->functions[i], 1, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
}

static void load(struct user *user, const char *path, const char *symbols)
{
	int (*load_data)(void **, const void *, void *, void **, unsigned, void *, void **, unsigned);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t offset, size, address;
	struct elf_file *elf;
	char *base;

	if (fd < 0 || elf_open(fd, &elf) < 0 || elf_section(elf, ".nv_fatbin", &offset, &size) < 0 ||
	    elf_address(elf, offset, &address) < 0 || !(base = map_library(fd, elf))) {
		fprintf(stderr, "symbolize_user: %s cannot be mapped\n", path);
		exit(1);
	}
	*(void **)&load_data = call(user, "cuLibraryLoadData");
	must(load_data(&user->library, base + address, NULL, NULL, 0, NULL, NULL, 0), "cuLibraryLoadData");
	user->functions = calloc(user->wanted, sizeof(void *));
	if (!user->functions)
		exit(1);
	ask_for_all(user, fd, symbols);
	elf_close(elf);
}

int main(int argc, char **argv)
{
	struct user user = { 0 };
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	char c;

	if (argc != 5)
		return 2;
	user.wanted = (unsigned)atoi(argv[3]);
	begin(&user, argv[1]);
	load(&user, argv[2], argv[4]);
	printf("ready\n");
	fflush(stdout);
	if (read(STDIN_FILENO, &c, 1) != 1)
		return 0;
	launch(&user);
	printf("%lld\n", (long long)clock_mono_ns());
	fflush(stdout);
	while (poll(&input, 1, AGAIN_MS) == 0)
		launch(&user);
	return 0;
}
