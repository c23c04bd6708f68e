// SPDX-License-Identifier: Apache-2.0
#include "nvml/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/macro.h"

enum { NAMES_MAX = 4 }; /* newest and older ones */

/* One row of nvml.def: names in the order in which they are tried, and where the address goes. */
struct entry {
	const char *names[NAMES_MAX];
	size_t offset;
};

static const struct entry entries[] = {
#define NVML_FUNCTION(name_, ...) { { #name_, ##__VA_ARGS__ }, offsetof(struct nvml_api, name_) },
#include "nvml/nvml.def"
};

static void *entry_find(void *handle, const struct entry *entry)
{
	for (size_t i = 0; i < NAMES_MAX && entry->names[i]; i++) {
		void *address = dlsym(handle, entry->names[i]);

		if (address)
			return address;
	}
	return NULL;
}

static void resolve(void *handle, struct nvml_api *ret_api)
{
	memset(ret_api, 0, sizeof(*ret_api));
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		void *address = entry_find(handle, &entries[i]);

		/* memcpy, since C has no conversion from object to function pointers. */
		memcpy((char *)ret_api + entries[i].offset, &address, sizeof(address));
	}
}

bool nvml_library_has(const struct nvml_api *api, unsigned function)
{
	void *address;

	/* Rows and function numbers come from the same table. */
	memcpy(&address, (const char *)api + entries[function - 1].offset, sizeof(address));
	return address != NULL;
}

static void find_path(const struct nvml_api *api, struct nvml_library *library)
{
	Dl_info info;
	void *address;

	memcpy(&address, &api->nvmlInit_v2, sizeof(address));
	library->path[0] = '\0';
	if (dladdr(address, &info) && info.dli_fname)
		snprintf(library->path, sizeof(library->path), "%s", info.dli_fname);
}

int nvml_library_open(const char *name, struct nvml_library *ret_library, struct nvml_api *ret_api,
		      char *error, size_t size)
{
	struct nvml_api api;
	void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		const char *why = dlerror();
		bool is_there = strchr(name, '/') && access(name, R_OK) == 0;

		/* The loader reports a file for another architecture as absent. */
		if (is_there && why && strstr(why, strerror(ENOENT)))
			why = "the file exists, but is no library for this machine";

		snprintf(error, size,
			 "cannot load %s (%s): install NVIDIA's driver, or name its library with the option "
			 "nvml.library",
			 name, why ? why : "no reason given");
		return -ENOENT;
	}
	resolve(handle, &api);
	if (!api.nvmlInit_v2 || !api.nvmlShutdown || !api.nvmlDeviceGetCount_v2 ||
	    !api.nvmlDeviceGetHandleByIndex_v2) {
		snprintf(error, size,
			 "%s is not NVIDIA's management library (no nvmlInit): correct the option "
			 "nvml.library",
			 name);
		dlclose(handle);
		return -EPROTO;
	}
	ret_library->handle = handle;
	ret_library->simulated = dlsym(handle, "gpusonde_sim_identity") != NULL;
	find_path(&api, ret_library);
	*ret_api = api;
	return 0;
}

void nvml_library_close(struct nvml_library *library)
{
	if (library->handle)
		dlclose(library->handle);
	library->handle = NULL;
}
