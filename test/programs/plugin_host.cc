// SPDX-License-Identifier: Apache-2.0
/*
 * plugin_host LIBRARY [--wait] [--reload]: loads a library with kernels (plugin.cu) and lets it launch them. With --wait it prints "ready" and waits for
 * a line, and then lets it launch again. With --reload it unloads the library after that, loads it at another address, and once more.
 */
#include <dlfcn.h>
#include <sys/mman.h>

#include "truth.hh"

static Truth truth;

static void add(const Launch *launch)
{
	truth.add(*launch);
}

static void *load(const char *path, void (**ret_launch)(Launched *))
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		std::fprintf(stderr, "%s\n", dlerror());
		return nullptr;
	}
	*ret_launch = (void (*)(Launched *))dlsym(library, "plugin_launch");
	return *ret_launch ? library : nullptr;
}

/* Where it was something else is put, so that it comes elsewhere. */
static bool reload(const char *path, void *library, void (**launch)(Launched *))
{
	struct link_map *map = nullptr;
	void *before, *after;

	dlinfo(library, RTLD_DI_LINKMAP, &map);
	before = (void *)map->l_addr;
	dlclose(library);
	if (mmap(before, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != before) {
		std::fprintf(stderr, "the library was not unloaded\n");
		return false;
	}
	library = load(path, launch);
	if (!library)
		return false;
	dlinfo(library, RTLD_DI_LINKMAP, &map);
	after = (void *)map->l_addr;
	return before != after;
}

int main(int argc, char **argv)
{
	void (*launch)(Launched *) = nullptr;
	bool wait = false, again = false;
	void *library;

	for (int i = 2; i < argc; i++) {
		wait |= std::strcmp(argv[i], "--wait") == 0;
		again |= std::strcmp(argv[i], "--reload") == 0;
	}
	/* The runtime stays, as in a program that has kernels of its own. */
	if (argc < 2 || !dlopen("libcudart.so.13", RTLD_NOW | RTLD_GLOBAL))
		return 2;
	library = load(argv[1], &launch);
	if (!library)
		return 1;
	launch(add);
	if (wait) {
		if (!wait_for_line())
			return 1;
		launch(add);
	}
	if (again) {
		if (!reload(argv[1], library, &launch))
			return 1;
		launch(add);
	}
	truth.print();
	return 0;
}
