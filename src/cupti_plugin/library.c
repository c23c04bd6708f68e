// SPDX-License-Identifier: Apache-2.0
#include "cupti_plugin/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names by which programs and distributions have it, newest first, with the least CUDA of the driver. */
static const struct {
	const char *name;
	int cuda;
} names[] = {
	{ "libcupti.so.13", 13 },   { "libcupti.so.12", 12 },   { "libcupti.so.11.8", 11 },
	{ "libcupti.so.11.7", 11 }, { "libcupti.so.11.6", 11 }, { "libcupti.so.11.5", 11 },
	{ "libcupti.so.11.4", 11 }, { "libcupti.so.11.3", 11 }, { "libcupti.so.11.2", 11 },
	{ "libcupti.so.11.1", 11 }, { "libcupti.so.11.0", 11 },
};

static const char *const folders[] = { "/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64" };

static char named[PATH_MAX]; /* by the user; "": not */

void library_init(void)
{
	const char *path = secure_getenv("GPUSONDE_CUPTI_LIBRARY");

	if (path && strlen(path) < sizeof(named))
		strcpy(named, path);
}

static void *driver(void)
{
	return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
}

/* 12; 0: not known. */
static int driver_cuda(void)
{
	void *library = driver();
	int (*version)(int *) = NULL;
	int found = 0;

	if (library)
		*(void **)&version = dlsym(library, "cuDriverGetVersion");
	return version && version(&found) == 0 ? found / 1000 : 0;
}

static void *open_named(int flags)
{
	int cuda = driver_cuda();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *library = cuda && names[i].cuda > cuda ? NULL : dlopen(names[i].name, flags);

		if (library)
			return library;
	}
	return NULL;
}

static void *open_in_folders(void)
{
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char path[128];
		void *library;

		snprintf(path, sizeof(path), "%s/libcupti.so", folders[i]);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (library)
			return library;
	}
	return NULL;
}

/* The one that the program has, if any: two of them would be two subscribers. */
static void *library_open(void)
{
	void *library;

	if (named[0])
		return dlopen(named, RTLD_NOW | RTLD_LOCAL);
	library = open_named(RTLD_NOW | RTLD_NOLOAD);
	if (!library)
		library = open_named(RTLD_NOW | RTLD_LOCAL);
	return library ? library : open_in_folders();
}

const struct cupti *library_cupti(void)
{
	static struct cupti cupti;
	static bool tried, found;
	void *library;

	if (tried)
		return found ? &cupti : NULL;
	tried = true;
	library = library_open();
	if (!library)
		return NULL;
#define FUNCTION(name_, needed_, parameters_)                    \
	*(void **)&cupti.name_ = dlsym(library, "cupti" #name_); \
	if (needed_ && !cupti.name_)                             \
		return NULL;
	CUPTI_FUNCTIONS
#undef FUNCTION
	found = cupti.GetVersion(&cupti.version) == CUPTI_SUCCESS;
	return found ? &cupti : NULL;
}

bool library_device_uuid(uint32_t device, uint8_t uuid[static 16])
{
	static const char *const functions[] = { "cuDeviceGetUuid_v2", "cuDeviceGetUuid" }; /* of MIG first */
	void *library = driver();

	for (unsigned i = 0; library && i < sizeof(functions) / sizeof(functions[0]); i++) {
		int (*get)(void *, int);

		*(void **)&get = dlsym(library, functions[i]);
		if (get)
			return get(uuid, (int)device) == 0;
	}
	return false;
}
