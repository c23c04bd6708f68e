// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/errors.h"

#include <errno.h>
#include <stddef.h>

#include "base/macro.h"

#define ERROR(name, words)                      \
	{                                       \
#name, NVML_ERROR_##name, words \
	}
static const struct {
	const char *name;
	uint32_t error;
	const char *words;
} errors[] = {
	ERROR(UNINITIALIZED, "Uninitialized"),
	ERROR(INVALID_ARGUMENT, "Invalid Argument"),
	ERROR(NOT_SUPPORTED, "Not Supported"),
	ERROR(NO_PERMISSION, "Insufficient Permissions"),
	ERROR(ALREADY_INITIALIZED, "Already Initialized"),
	ERROR(NOT_FOUND, "Not Found"),
	ERROR(INSUFFICIENT_SIZE, "Insufficient Size"),
	ERROR(INSUFFICIENT_POWER, "Insufficient External Power"),
	ERROR(DRIVER_NOT_LOADED, "Driver Not Loaded"),
	ERROR(TIMEOUT, "Timeout"),
	ERROR(IRQ_ISSUE, "Interrupt Request Issue"),
	ERROR(LIBRARY_NOT_FOUND, "NVML Shared Library Not Found"),
	ERROR(FUNCTION_NOT_FOUND, "Function Not Found"),
	ERROR(CORRUPTED_INFOROM, "Corrupted infoROM"),
	ERROR(GPU_IS_LOST, "GPU is lost"),
	ERROR(RESET_REQUIRED, "GPU requires restart"),
	ERROR(OPERATING_SYSTEM, "The operating system has blocked the request"),
	ERROR(LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"),
	ERROR(IN_USE, "In use by another client"),
	ERROR(MEMORY, "Insufficient Memory"),
	ERROR(NO_DATA, "No data"),
	ERROR(INSUFFICIENT_RESOURCES, "Insufficient Resources"),
	ERROR(FREQ_NOT_SUPPORTED, "Frequency Not Supported"),
	ERROR(ARGUMENT_VERSION_MISMATCH, "Argument Version Mismatch"),
	ERROR(DEPRECATED, "Deprecated"),
	ERROR(NOT_READY, "System is not ready"),
	ERROR(GPU_NOT_FOUND, "GPU not found"),
	ERROR(INVALID_STATE, "Invalid state"),
	ERROR(RESET_TYPE_NOT_SUPPORTED, "Reset type not supported"),
	ERROR(UNKNOWN, "Unknown Error"),
};

int error_by_name(const char *name, uint32_t *ret_error)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		if (STRV_EQ(errors[i].name, name)) {
			*ret_error = errors[i].error;
			return 0;
		}
	}
	return -EINVAL;
}

const char *error_words(uint32_t error)
{
	if (error == NVML_SUCCESS)
		return "Success";
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		if (errors[i].error == error)
			return errors[i].words;
	}
	return "Unknown Error";
}
