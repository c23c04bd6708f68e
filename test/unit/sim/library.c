// SPDX-License-Identifier: Apache-2.0
#include "test.h"

#include "sim/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"

static void control_path(const struct library *library, char *path, size_t size)
{
	snprintf(path, size, "%s.control", library->path);
}

/* A function pointer is no object pointer to ISO C, so its bytes are copied. */
static void look_up(void *handle, const char *name, void *pointer)
{
	void *symbol = dlsym(handle, name);

	assert_non_null(symbol);
	memcpy(pointer, &symbol, sizeof(symbol));
}

void library_open(struct library *library, const char *scenario)
{
	char file[512], control[80];
	int fd;

	*library = (struct library){ .path = "/tmp/gpusonde-test-XXXXXX" };
	fd = mkstemp(library->path);
	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, scenario, strlen(scenario)), strlen(scenario));
	close(fd);
	control_path(library, control, sizeof(control));
	setenv("GPUSONDE_SIM_SCENARIO", library->path, 1);
	setenv("GPUSONDE_SIM_CONTROL", control, 1);
	snprintf(file, sizeof(file), "%s/sim/libnvidia-ml.so.1", test_build_root());
	library->handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library->handle)
		fail_msg("%s", dlerror());
	library->identity = dlsym(library->handle, "gpusonde_sim_identity");
	look_up(library->handle, "gpusonde_sim_advance", &library->advance);
#define X(name) look_up(library->handle, "nvml" #name, &library->name);
	LIBRARY_FUNCTIONS(X)
#undef X
}

void library_close(struct library *library)
{
	char control[80];

	control_path(library, control, sizeof(control));
	unlink(control);
	unlink(library->path);
	assert_int_equal(dlclose(library->handle), 0);
}

void library_control(struct library *library, const char *faults)
{
	char control[80];

	control_path(library, control, sizeof(control));
	if (faults)
		assert_int_equal(write_file_atomic(control, faults, strlen(faults), 0600), 0);
	else
		unlink(control);
	/* It looks at most every 50 ms of its own clock. */
	library->advance(100 * 1000000);
}

struct nvml_device *library_device(struct library *library, uint32_t index)
{
	struct nvml_device *device = NULL;

	if (library->DeviceGetHandleByIndex_v2(index, &device) == NVML_ERROR_UNINITIALIZED) {
		assert_int_equal(library->Init_v2(), NVML_SUCCESS);
		assert_int_equal(library->DeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
	}
	return device;
}
