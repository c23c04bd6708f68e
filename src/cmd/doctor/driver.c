// SPDX-License-Identifier: Apache-2.0
/* doctor's checks of driver and devices. */
#include "cmd/doctor/doctor.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trace/attach.h"
#include "view/view.h"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const json_t *node_of(const struct doctor *d)
{
	return json_object_get(d->document, "node");
}

static bool no_gpu_here(const struct doctor *d)
{
	const char *state = text_of(node_of(d), "state");

	return d->gpus_on_bus <= 0 && (STRV_EQ(state, "no_library") || STRV_EQ(state, "no_driver"));
}

static bool has_gpus(const struct doctor *d)
{
	return json_array_size(json_object_get(d->document, "gpus")) > 0;
}

static void check_driver(const struct doctor *d, struct finding *f)
{
	const json_t *node = node_of(d);

	if (!node) {
		found(f, VERDICT_FAILED, "no data from agent or driver: %s", d->failure);
		remedy(f, "see the failed checks below");
	} else if (STRV_EQ(text_of(node, "state"), "ok") && json_is_false(json_object_get(node, "fresh"))) {
		const char *version = text_of(node, "driver_version");

		found(f, VERDICT_FAILED, "%s%s%s", version[0] ? "driver " : "", version,
		      version[0] ? " does not answer: see data" : "the driver has not answered: see data");
		remedy(f, "dmesg | grep -i -e xid -e nvrm; nvidia-smi must work");
	} else if (STRV_EQ(text_of(node, "state"), "ok")) {
		found(f, VERDICT_OK, "driver %s, NVML %s, CUDA %s", text_of(node, "driver_version"),
		      text_of(node, "nvml_version"), text_of(node, "cuda_version"));
	} else if (no_gpu_here(d)) {
		found(f, VERDICT_NOTE, "no %s, and no driver: %s",
		      attach_sys_is_missing() ? "/sys to search for GPUs" : "GPU on this machine's PCI bus",
		      text_of(node, "error"));
	} else {
		const char *error = text_of(node, "error");

		found(f, VERDICT_FAILED, "no data from the driver: %s", error[0] ? error : d->failure);
		remedy(f, "%s",
		       json_is_true(json_object_get(d->document, "simulated")) ?
			       "the driver is simulated: see the scenario that GPUSONDE_SIM_SCENARIO names" :
		       d->gpus_on_bus > 0 ?
			       "install or load NVIDIA's driver: modprobe nvidia; nvidia-smi must work" :
			       "gpusonde resume if the driver was released; else see dmesg");
	}
}

static void check_nvml_library(const struct doctor *d, struct finding *f)
{
	check_library(d, no_gpu_here(d), f);
}

static void check_recognised(const struct doctor *d, struct finding *f)
{
	const char *unrecognised = text_of(node_of(d), "unrecognised");

	if (unrecognised[0]) {
		found(f, VERDICT_WARNING,
		      "gpusonde does not recognise everything this driver reports; left out: %s",
		      unrecognised);
		remedy(f, "a newer gpusonde may know this driver");
	} else if (has_gpus(d)) {
		found(f, VERDICT_OK, "everything that this driver reports is recognised");
	} else {
		found(f, VERDICT_NOTE, "there is no GPU to read");
	}
}

static void check_simulated(const struct doctor *d, struct finding *f)
{
	if (json_is_true(json_object_get(d->document, "simulated")))
		found(f, VERDICT_NOTE,
		      "SIMULATED: none of these GPUs exists; nvml.library is gpusonde's simulated driver");
	else if (has_gpus(d))
		found(f, VERDICT_OK, "no: the data are the driver's");
	else
		found(f, VERDICT_NOTE, "there are no data");
}

static void check_devices(const struct doctor *d, struct finding *f)
{
	const json_t *gpus = json_object_get(node_of(d), "gpus");
	json_int_t present = json_integer_value(json_object_get(gpus, "present"));
	json_int_t absent = json_integer_value(json_object_get(gpus, "absent"));
	json_int_t unidentified = json_integer_value(json_object_get(gpus, "unidentified"));
	bool no_bus = attach_sys_is_missing();

	if (absent + unidentified > 0) {
		found(f, VERDICT_FAILED, "%lld GPU%s, and %lld that %s lost or not accessible",
		      (long long)present, present == 1 ? "" : "s", (long long)(absent + unidentified),
		      absent + unidentified == 1 ? "is" : "are");
		remedy(f, "gpusonde gpus shows which; dmesg | grep -i xid may say why; a lost GPU needs a "
			  "reset or a reboot");
	} else if (no_bus) {
		found(f, present > 0 ? VERDICT_OK : VERDICT_NOTE,
		      "%lld GPU%s; no /sys to read the PCI bus from", (long long)present,
		      present == 1 ? "" : "s");
	} else {
		found(f, present > 0 ? VERDICT_OK : VERDICT_NOTE,
		      "%lld GPU%s, %d NVIDIA device%s on the PCI bus", (long long)present,
		      present == 1 ? "" : "s", MAX(d->gpus_on_bus, 0), d->gpus_on_bus == 1 ? "" : "s");
	}
}

static void check_xids(const struct doctor *d, struct finding *f)
{
	const json_t *gpu, *xid;
	struct strbuf text;
	size_t i, k;

	strbuf_init(&text, sizeof(f->text));

	json_array_foreach(json_object_get(d->document, "gpus"), i, gpu)
		json_array_foreach(json_object_get(gpu, "xids"), k, xid) {
			if (!STRV_EQ(text_of(xid, "severity"), "critical"))
				continue;
			strbuf_addf(&text, "%sGPU %lld: XID %lld, %lld time%s since boot: %s",
				    text.len ? "; " : "",
				    (long long)json_integer_value(json_object_get(gpu, "gpu")),
				    (long long)json_integer_value(json_object_get(xid, "xid")),
				    (long long)json_integer_value(json_object_get(xid, "count")),
				    json_integer_value(json_object_get(xid, "count")) == 1 ? "" : "s",
				    text_of(xid, "name"));
			remedy(f, "%s%s",
			       f->remedy[0] ? "gpusonde gpus has the remedy for each; for the last: " : "",
			       text_of(xid, "action"));
		}
	if (text.len == 0)
		found(f, VERDICT_OK, "no critical XID errors since boot");
	else
		found(f, VERDICT_WARNING, "%s%s", text.data, text.failed ? "..." : "");
	strbuf_done(&text);
}

static void check_health(const struct doctor *d, struct finding *f)
{
	struct gpu_warning warning;
	struct strbuf all;

	strbuf_init(&all, sizeof(f->text));
	for (uint32_t i = 0; d->snapshot && i < d->snapshot->entities_n; i++) {
		const struct entity *gpu = &d->snapshot->entities[i];

		for (unsigned k = 0; gpu->id.parent == READING_NONE && k < GPU_WARNINGS; k++)
			if (gpu_warning(gpu, k, &warning))
				strbuf_addf(&all, "%sGPU %" PRIu32 ": %s", all.len ? "; " : "", gpu->id.index,
					    warning.text);
	}
	if (!has_gpus(d))
		found(f, VERDICT_NOTE, "there is no GPU");
	else if (all.len == 0)
		found(f, VERDICT_OK,
		      "no GPU needs a reset or a memory repair, has links down, or is too hot");
	else
		found(f, VERDICT_WARNING, "%s%s", all.data, all.failed ? "..." : "");
	strbuf_done(&all);
}

static void check_device_files(const struct doctor *d, struct finding *f)
{
	glob_t files = { 0 };
	const char *denied = NULL;
	size_t n;

	glob("/dev/nvidia*", GLOB_NOSORT, NULL, &files);
	n = files.gl_pathc;
	for (size_t i = 0; i < n && !denied; i++)
		if (strncmp(files.gl_pathv[i], "/dev/nvidia-caps", 16) != 0 &&
		    access(files.gl_pathv[i], R_OK | W_OK) < 0)
			denied = files.gl_pathv[i];
	if (denied) {
		found(f, VERDICT_FAILED, "no permission for %s", denied);
		remedy(f, "run as a user with permission to open it (ls -l /dev/nvidia*), or as root");
	} else if (n > 0) {
		found(f, VERDICT_OK, "/dev/nvidia*: %zu found, all accessible", n);
	} else if (d->gpus_on_bus > 0) {
		found(f, VERDICT_WARNING,
		      "no /dev/nvidia*, although there are NVIDIA devices on the PCI bus");
		remedy(f, "nvidia-modprobe -u -c=0 creates them; in a container or unit, check "
			  "PrivateDevices= and device rules");
	} else {
		found(f, VERDICT_NOTE, "no /dev/nvidia*");
	}
	globfree(&files);
}

static void check_data(const struct doctor *d, struct finding *f)
{
	const char *why = text_of(d->status, "why");

	if (!d->status && !d->failure[0] && !has_gpus(d))
		found(f, VERDICT_NOTE, "there is no GPU to read");
	else if (!d->status && d->failure[0]) {
		found(f, VERDICT_FAILED, "%s", d->failure);
		remedy(f, "see driver, nvml-library and nvml-helper");
	} else if (!d->status)
		found(f, VERDICT_OK, "sampled just now");
	else if (json_is_true(json_object_get(d->status, "ready")) &&
		 !STRV_EQ(text_of(d->status, "state"), "ok"))
		found(f, VERDICT_NOTE, "%s", why); /* a node without GPU */
	else if (json_is_true(json_object_get(d->status, "ready")))
		found(f, VERDICT_OK, "fresh: %s", why);
	else {
		found(f, VERDICT_FAILED, "not fresh: %s", why);
		remedy(f, "%s",
		       json_is_true(json_object_get(d->status, "released")) ? "gpusonde resume" :
									      "see driver and driver-call");
	}
}

static void check_call(const struct doctor *d, struct finding *f)
{
	int stuck = (int)json_integer_value(json_object_get(d->status, "stuck"));
	double seconds = json_real_value(json_object_get(d->status, "call_seconds"));
	bool ready = json_is_true(json_object_get(d->status, "ready"));
	char left[80] = "";

	if (stuck > 0)
		snprintf(left, sizeof(left), "%d process%s stuck in the driver and cannot be killed", stuck,
			 stuck == 1 ? " is" : "es are");
	if (!d->status && d->failure[0]) {
		found(f, VERDICT_NOTE, "not known without an agent: see data");
	} else if (d->status && !ready && seconds > 0 && *text_of(d->status, "call")) {
		found(f, VERDICT_FAILED, "the driver hangs: no reading for %.0f s, %s does not return%s%s",
		      seconds, text_of(d->status, "call"), left[0] ? "; " : "", left);
		remedy(f,
		       "dmesg | grep -i -e xid -e nvrm; a reset of the GPU or a reboot; the agent recovers "
		       "by itself");
	} else if (stuck > 0) {
		found(f, VERDICT_WARNING, "%s", left);
		remedy(f, "dmesg | grep -i -e xid -e nvrm; a reset of the GPU or a reboot");
	} else {
		found(f, VERDICT_OK, "no call is stuck in the driver");
	}
}

const struct check driver_checks[] = {
	{ "driver", check_driver },
	{ "library", check_nvml_library },
	{ "understood", check_recognised },
	{ "simulated", check_simulated },
	{ "devices", check_devices },
	{ "device-files", check_device_files },
	{ "xid", check_xids },
	{ "health", check_health },
	{ "data", check_data },
	{ "driver-call", check_call },
	{ 0 },
};
