// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/call.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "sim/scenario/errors.h"

enum nvml_return nvmlInit(void)
{
	return library_init(FN_nvmlInit);
}

enum nvml_return nvmlInit_v2(void)
{
	return library_init(FN_nvmlInit_v2);
}

enum nvml_return nvmlInitWithFlags(_unused_ uint32_t flags)
{
	return library_init(FN_nvmlInitWithFlags);
}

enum nvml_return nvmlShutdown(void)
{
	return library_shutdown();
}

const char *nvmlErrorString(enum nvml_return result)
{
	return error_words(result);
}

enum nvml_return nvmlSystemGetDriverVersion(char *version, uint32_t length)
{
	CALL_NODE(nvmlSystemGetDriverVersion);

	return put_text(version, length, call_node()->scenario->driver_version);
}

enum nvml_return nvmlSystemGetNVMLVersion(char *version, uint32_t length)
{
	CALL_NODE(nvmlSystemGetNVMLVersion);

	return put_text(version, length, call_node()->scenario->nvml_version);
}

enum nvml_return nvmlSystemGetCudaDriverVersion(int *version)
{
	CALL_NODE(nvmlSystemGetCudaDriverVersion);

	NEED(version);
	put_u32(call, (uint32_t *)version, call_node()->scenario->cuda_version);
	return NVML_SUCCESS;
}

enum nvml_return nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	CALL_NODE(nvmlSystemGetCudaDriverVersion_v2);

	NEED(version);
	put_u32(call, (uint32_t *)version, call_node()->scenario->cuda_version);
	return NVML_SUCCESS;
}

enum nvml_return nvmlSystemGetDriverBranch(struct nvml_driver_branch *branch, uint32_t length)
{
	CALL_NODE(nvmlSystemGetDriverBranch);

	NEED(branch);
	NEED_VERSION(branch, 1);
	return put_text(branch->branch, MIN(length, (uint32_t)sizeof(branch->branch)),
			call_node()->scenario->driver_branch);
}

/* Of a simulated process. */
static const char *scenario_process_name(const struct call *call, uint32_t pid)
{
	struct node *node = call_node();

	for (uint32_t i = 0; i < node->scenario->gpu_count; i++) {
		struct gpu *gpu = &node->gpus[i];

		gpu_seek(gpu, call->now_ms);
		for (uint32_t slot = 0; slot < gpu->slot_count; slot++) {
			const struct slot_now *now = &gpu->slots_now[slot];

			if (now->running && now->pid == pid &&
			    gpu->slots[slot].process->pid_source != PID_MATCH)
				return gpu->slots[slot].process->name;
		}
	}
	return NULL;
}

/*
 * The driver gives the first word of a process's command line; so for real ones. Cut where it does not fit.
 */
enum nvml_return nvmlSystemGetProcessName(uint32_t pid, char *name, uint32_t length)
{
	CALL_NODE(nvmlSystemGetProcessName);
	char path[32], command[256] = "";
	const char *text = scenario_process_name(call, pid);

	NEED(name && length > 0);
	if (!text) {
		/* Longer ones fail with -E2BIG, and what fits has been read. */
		snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
		if (read_file(path, command, sizeof(command), NULL) == -ENOENT)
			return NVML_ERROR_NOT_FOUND;
		command[sizeof(command) - 1] = '\0';
		text = command;
	}
	snprintf(name, length, "%s", text);
	return NVML_SUCCESS;
}

enum nvml_return nvmlSystemGetConfComputeCapabilities(struct nvml_conf_compute_caps *caps)
{
	CALL_NODE(nvmlSystemGetConfComputeCapabilities);

	NEED(caps);
	*caps = (struct nvml_conf_compute_caps){ 0 };
	return NVML_SUCCESS;
}

enum nvml_return nvmlSystemGetConfComputeState(struct nvml_conf_compute_state *state)
{
	CALL_NODE(nvmlSystemGetConfComputeState);

	NEED(state);
	*state = (struct nvml_conf_compute_state){ 0 };
	return NVML_SUCCESS;
}

enum nvml_return nvmlSystemGetConfComputeSettings(struct nvml_conf_compute_settings *settings)
{
	CALL_NODE(nvmlSystemGetConfComputeSettings);

	NEED(settings);
	NEED_VERSION(settings, 1);
	*settings = (struct nvml_conf_compute_settings){ .version = settings->version };
	return NVML_SUCCESS;
}

enum nvml_return nvmlSystemGetConfComputeGpusReadyState(uint32_t *accepting)
{
	CALL_NODE(nvmlSystemGetConfComputeGpusReadyState);

	NEED(accepting);
	return NVML_ERROR_NOT_SUPPORTED;
}

enum nvml_return nvmlUnitGetCount(uint32_t *count)
{
	CALL_NODE(nvmlUnitGetCount);

	NEED(count);
	*count = 0;
	return NVML_SUCCESS;
}

enum nvml_return nvmlGetExcludedDeviceCount(uint32_t *count)
{
	CALL_NODE(nvmlGetExcludedDeviceCount);

	NEED(count);
	*count = 0;
	return NVML_SUCCESS;
}

/* All other functions; their arguments are ignored. */
#define UNSUPPORTED(name, since)                                            \
	__attribute__((visibility("default"))) enum nvml_return name(void); \
	enum nvml_return name(void)                                         \
	{                                                                   \
		CALL_NODE(name);                                            \
                                                                            \
		return NVML_ERROR_NOT_SUPPORTED;                            \
	}
#include "sim/nvml/nvml_unsupported.def"
#undef UNSUPPORTED
