// SPDX-License-Identifier: Apache-2.0
#include "nvml/reader.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define BACKOFF_MIN_NS NSEC_PER_SEC
#define BACKOFF_MAX_NS (10 * NSEC_PER_SEC)

static const char *error_string(struct reader *reader, enum nvml_return result)
{
	const char *text = reader->api.nvmlErrorString ? reader->api.nvmlErrorString(result) : NULL;

	return text ? text : "unknown error";
}

static void explain(struct reader *reader, const char *call, enum nvml_return result)
{
	struct reading *reading = reader->reading;
	const char *remedy = "see the kernel log for lines of NVRM";

	reading->nvml_error = (int32_t)result;
	reading->state = READING_FAILED;
	switch (result) {
	case NVML_ERROR_DRIVER_NOT_LOADED:
	case NVML_ERROR_UNINITIALIZED:
		reading->state = READING_NO_DRIVER;
		remedy = "load NVIDIA's kernel module (modprobe nvidia) or install it";
		break;
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		remedy = "library and kernel module are of different versions: reboot, or reload the module "
			 "(modprobe -r nvidia)";
		break;
	case NVML_ERROR_NO_PERMISSION:
		remedy = "the agent's user needs access to /dev/nvidiactl and /dev/nvidia*";
		break;
	case NVML_ERROR_GPU_IS_LOST:
		remedy = "a GPU has fallen off the bus: reset it or reboot";
		break;
	default:
		if (reader->library.simulated)
			remedy = "this is the simulated driver: correct the scenario that "
				 "GPUSONDE_SIM_SCENARIO names; lines of gpusonde-sim on standard error, or "
				 "in the agent's log, say what is wrong with it";
		break;
	}
	snprintf(reading->error, sizeof(reading->error), "%s: %s (%d): %s", call,
		 error_string(reader, result), (int)result, remedy);
}

static void try_later(struct reader *reader)
{
	reader->backoff_ns = CLAMP(2 * reader->backoff_ns, BACKOFF_MIN_NS, BACKOFF_MAX_NS);
	reader->retry_ns = reader->now_ns + reader->backoff_ns;
}

static bool open_library(struct reader *reader)
{
	struct reading *reading = reader->reading;

	if (reader->fake)
		return true;
	if (nvml_library_open(reader->library_name, &reader->library, &reader->api, reading->error,
			      sizeof(reading->error)) < 0) {
		reading->state = READING_NO_LIBRARY;
		reading->nvml_error = NVML_ERROR_LIBRARY_NOT_FOUND;
		return false;
	}
	snprintf(reading->library, sizeof(reading->library), "%s", reader->library.path);
	reading->simulated = reader->library.simulated;
	return true;
}

/* After nvmlInit: reader_detach() undoes it if anything fails here. */
static enum nvml_return take_hold(struct reader *reader)
{
	enum nvml_return result;

	reader->attached = true;
	reader->shared->attach++;
	reader->reading->attach = reader->shared->attach;
	unrecognised_begin(reader);
	identity_system(reader);
	result = reader_enumerate(reader);
	if (result != NVML_SUCCESS)
		explain(reader, "listing the GPUs", result);
	return result;
}

void reader_attach(struct reader *reader)
{
	struct reading *reading = reader->reading;
	enum nvml_return result;

	reader->gone = reader->changed = reader->reattach = false;
	reading->entities_n = 0;
	reading->processes_n = 0;
	if (!open_library(reader)) {
		try_later(reader);
		return;
	}
	result = NVML_CALL(reader, nvmlInit_v2);
	if (result == NVML_SUCCESS) {
		result = take_hold(reader);
	} else {
		explain(reader, "nvmlInit", result);
		/* The next attempt opens the library again: an upgrade may have put another one there. */
		nvml_library_close(&reader->library);
		if (!reader->fake)
			memset(&reader->api, 0, sizeof(reader->api));
	}
	reader->gone = false;
	if (result != NVML_SUCCESS) {
		reader_detach(reader);
		try_later(reader);
		return;
	}
	reading->state = READING_OK;
	reading->nvml_error = NVML_SUCCESS;
	reading->error[0] = '\0';
	reader->backoff_ns = 0;
}

void reader_detach(struct reader *reader)
{
	if (reader->attached) {
		events_done(reader);
		for (uint32_t i = 0; i < reader->reading->entities_n; i++)
			gpm_done(reader, &reader->devices[i]);
		NVML_CALL(reader, nvmlShutdown);
	}
	nvml_library_close(&reader->library);
	if (!reader->fake)
		memset(&reader->api, 0, sizeof(reader->api));
	reader->attached = reader->gone = reader->changed = reader->reattach = false;
	reader->reading->entities_n = reader->reading->processes_n = reader->reading->events_n = 0;
	reader->reading->topology_n = 0;
	processes_forget(reader);
	reader->retry_ns = reader->now_ns + BACKOFF_MIN_NS;
}
